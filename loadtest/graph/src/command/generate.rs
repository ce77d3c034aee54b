//! `graph generate`: the edges as lines.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::PathBuf,
};

use anyhow::Context;
use graph::Graph;

use super::{Failure, ShapeArguments};

/// Text gathered before it is written.
const BUFFER_BYTES: usize = 1 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    shape: ShapeArguments,
    /// Where to write; - is standard output.
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let graph = arguments.shape.graph()?;
    if arguments.out.as_os_str() == "-" {
        return match write(&graph, io::stdout().lock()) {
            // Who reads has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            outcome => outcome.map_err(Failure::output),
        };
    }
    let written = File::create(&arguments.out).and_then(|file| write(&graph, file));
    written
        .with_context(|| format!("cannot write {}", arguments.out.display()))
        .map_err(|error| Failure::new(Failure::OUTPUT, error))
}

fn write(graph: &Graph, to: impl Write) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(BUFFER_BYTES, to);
    let shape = graph.shape();
    writeln!(
        to,
        "# follower followee; {} users, exponent {}, audiences {} to {}, at most {} follows \
         (sigma {}), celebrities {:?}, seed {}",
        shape.users,
        shape.exponent,
        shape.smallest,
        shape.largest,
        shape.most_follows,
        shape.follows_sigma,
        shape.celebrities,
        shape.seed
    )?;
    for (follower, followee) in graph.edges() {
        writeln!(to, "{follower} {followee}")?;
    }
    to.flush()
}
