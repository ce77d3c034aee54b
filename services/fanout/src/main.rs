//! Fan-out: one timeline row for each follower of a post.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Parser;
use fanout::Config;
use runtime::{
    Shutdown,
    config::{self, Sources},
    exit::{self, Exit},
    telemetry,
};

/// Delivers posts from Kafka to the timelines of followers.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// TOML file; the environment (`TIDELINE_…`) wins over it.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Check the configuration and end.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    exit::finish("tideline-fanout", start(Arguments::parse()))
}

fn start(arguments: Arguments) -> Result<(), Exit> {
    let config: Config =
        config::load(&Sources::of_process(arguments.config)).map_err(Exit::config)?;
    config.check().map_err(Exit::config)?;
    if arguments.check {
        return Ok(());
    }
    telemetry::init(&config.log).map_err(Exit::config)?;
    // Named crash points come from the environment variable FAILPOINTS; without the feature
    // `crash-points` this is nothing.
    let _crash_points = fail::FailScenario::setup();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Exit::bug)?;
    let outcome = runtime.block_on(async {
        let shutdown = Shutdown::on_signals().map_err(Exit::bug)?;
        fanout::run(config, shutdown).await
    });
    // A question to a broker that is down may still wait for its answer on a thread.
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}
