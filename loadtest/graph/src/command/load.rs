//! `graph load`: an edge list into Postgres.

use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
    time::Instant,
};

use anyhow::Context;
use graph::loader::{self, Accounts, Input, LoadError, Options, Outcome, Progress};

use super::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The list; - is standard input. For a packed one: `zcat FILE.gz | graph load -`.
    file: PathBuf,
    /// Where to load it; the schema has to be there (`tideline migrate`).
    #[arg(
        long,
        value_name = "URL",
        env = "TIDELINE_POSTGRES__URL",
        hide_env_values = true,
        default_value = "postgresql://postgres@127.0.0.1:17400/tideline"
    )]
    postgres: String,
    /// Fields are account ids; without it they are handles, also when they look like numbers.
    #[arg(long)]
    ids: bool,
    /// Is added to each id.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "ids")]
    add: u64,
    /// First part of the handle of an account that is new; its id is the second.
    #[arg(long, value_name = "TEXT", default_value = "user", requires = "ids")]
    prefix: String,
    /// Lines are `followee follower`.
    #[arg(long)]
    followee_first: bool,
    /// Follows made in one transaction.
    #[arg(long, value_name = "EDGES", default_value_t = Options::default().batch,
        value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Leaves bad lines out and goes on.
    #[arg(long)]
    skip_bad: bool,
    /// How many bad lines are told.
    #[arg(long, value_name = "N", default_value_t = Options::default().show_bad)]
    show_bad: usize,
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()
        .context("cannot start")
        .map_err(|error| Failure::new(Failure::SERVER, error))?;
    let begun = Instant::now();
    let outcome = runtime.block_on(load(arguments));
    // The reader may wait for input that never comes.
    runtime.shutdown_background();
    let outcome = outcome.map_err(|error| Failure::new(code(&error), error))?;
    print(&outcome, begun.elapsed().as_secs_f64()).map_err(Failure::output)
}

async fn load(arguments: Arguments) -> Result<Outcome, LoadError> {
    let input = if arguments.file.as_os_str() == "-" {
        Input::Stdin
    } else {
        Input::File(arguments.file)
    };
    let accounts = if arguments.ids {
        Accounts::Ids {
            add: arguments.add,
            prefix: arguments.prefix,
        }
    } else {
        Accounts::Handles
    };
    let options = Options {
        accounts,
        followee_first: arguments.followee_first,
        batch: arguments.batch,
        skip_bad: arguments.skip_bad,
        show_bad: arguments.show_bad,
    };
    let mut view = View::new();
    let outcome = loader::load(input, &arguments.postgres, &options, |progress| {
        view.show(progress);
    });
    let outcome = outcome.await;
    view.end();
    outcome
}

fn code(error: &LoadError) -> u8 {
    match error {
        LoadError::Bad(_) => Failure::DATA,
        LoadError::Read { .. } => Failure::INPUT,
        LoadError::HandleTaken { .. } | LoadError::GraphByHandles => Failure::USAGE,
        _ => Failure::SERVER,
    }
}

fn print(outcome: &Outcome, seconds: f64) -> io::Result<()> {
    let mut to = io::stdout();
    if outcome.bad.count > 0 {
        writeln!(to, "{}", outcome.bad)?;
    }
    writeln!(
        to,
        "LOADED edges={} follows_made={} already={} duplicates={} self_follows={} bad_lines={} \
         accounts_made={} seconds={seconds:.1} edges_per_second={:.0}",
        outcome.edges,
        outcome.follows_made,
        outcome.already,
        outcome.duplicates,
        outcome.self_follows,
        outcome.bad.count,
        outcome.accounts_made,
        outcome.edges as f64 / seconds.max(0.001)
    )
}

/// Progress on standard error: one line that is written over on a terminal, else line by line.
struct View {
    terminal: bool,
    begun: Instant,
    /// When the present step began.
    step: Instant,
    last: Option<std::mem::Discriminant<Progress>>,
}

impl View {
    fn new() -> Self {
        Self {
            terminal: io::stderr().is_terminal(),
            begun: Instant::now(),
            step: Instant::now(),
            last: None,
        }
    }

    fn show(&mut self, progress: Progress) {
        let kind = std::mem::discriminant(&progress);
        if self.last != Some(kind) {
            self.end();
            (self.step, self.last) = (Instant::now(), Some(kind));
        }
        let text = words(progress, self.step.elapsed().as_secs_f64());
        let since = self.begun.elapsed().as_secs();
        // Nobody is told when standard error is gone.
        let _ = if self.terminal {
            write!(io::stderr(), "\r{since:>4} s  {text:<70}")
        } else {
            writeln!(io::stderr(), "{since:>4} s  {text}")
        };
    }

    fn end(&mut self) {
        if self.terminal && self.last.is_some() {
            let _ = writeln!(io::stderr());
        }
    }
}

fn words(progress: Progress, seconds: f64) -> String {
    let rate = |edges: u64| edges as f64 / seconds.max(0.001);
    match progress {
        Progress::Reading { edges: 0, .. } => "reading".to_owned(),
        Progress::Reading { edges, share } => {
            let share = share.map_or(String::new(), |share| format!(", {:.0} %", share * 100.0));
            format!("reading: {edges} edges, {:.0} edges/s{share}", rate(edges))
        }
        Progress::Accounts => "making accounts".to_owned(),
        Progress::Sorting => "sorting".to_owned(),
        Progress::Following { edges, of } => format!(
            "following: {edges} of {of} edges, {:.0} edges/s, {:.0} %",
            rate(edges),
            edges as f64 * 100.0 / of.max(1) as f64
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_tells_edges_rate_and_share() {
        let reading = |share| Progress::Reading {
            edges: 5_000,
            share,
        };
        assert_eq!(
            words(reading(Some(0.25)), 2.0),
            "reading: 5000 edges, 2500 edges/s, 25 %"
        );
        assert_eq!(
            words(reading(None), 2.0),
            "reading: 5000 edges, 2500 edges/s"
        );
        let following = Progress::Following {
            edges: 300,
            of: 1_200,
        };
        assert_eq!(
            words(following, 3.0),
            "following: 300 of 1200 edges, 100 edges/s, 25 %"
        );
    }
}
