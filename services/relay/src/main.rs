//! `tideline-relay`: reads the configuration, runs the service, ends with its exit code.

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use relay::config::Config;
use runtime::{
    Shutdown,
    config::{Sources, load},
    exit::{Exit, finish},
    telemetry,
};

/// Streams the outbox from a replication slot into Kafka.
#[derive(Debug, Parser)]
#[command(name = "tideline-relay", version)]
struct Arguments {
    /// TOML file; TIDELINE_ variables win over it.
    #[arg(long)]
    config: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    #[cfg(feature = "crash-points")]
    let _crash_points = fail::FailScenario::setup();
    finish("tideline-relay", run(Arguments::parse()).await)
}

async fn run(arguments: Arguments) -> Result<(), Exit> {
    let config: Config = load(&Sources::of_process(arguments.config)).map_err(Exit::config)?;
    telemetry::init(&config.log).map_err(Exit::config)?;
    let shutdown = Shutdown::on_signals().map_err(Exit::bug)?;
    relay::run(config, shutdown).await
}
