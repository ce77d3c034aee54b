//! `tideline-write-api`: reads the configuration, runs the service, ends with its exit code.

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use runtime::{
    Shutdown,
    config::{Sources, load},
    exit::{Exit, finish},
    telemetry,
};
use write_api::config::Config;

/// Accepts posts and follows over HTTP.
#[derive(Debug, Parser)]
#[command(name = "tideline-write-api", version)]
struct Arguments {
    /// TOML file; TIDELINE_ variables win over it.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Check the configuration and end.
    #[arg(long)]
    check: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    #[cfg(feature = "crash-points")]
    let _crash_points = fail::FailScenario::setup();
    finish("tideline-write-api", run(Arguments::parse()).await)
}

async fn run(arguments: Arguments) -> Result<(), Exit> {
    let config: Config = load(&Sources::of_process(arguments.config)).map_err(Exit::config)?;
    telemetry::init(&config.log).map_err(Exit::config)?;
    if arguments.check {
        return config.auth.read_secret().map(drop).map_err(Exit::config);
    }
    let shutdown = Shutdown::on_signals().map_err(Exit::bug)?;
    write_api::run(config, shutdown).await
}
