//! `tideline-read-api`: reads the configuration, runs the service, ends with its exit code.

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use read_api::config::Config;
use runtime::{
    Shutdown,
    config::{Sources, load},
    exit::{Exit, finish},
    telemetry,
};

/// Serves timelines, posts and their delivery status over HTTP.
#[derive(Debug, Parser)]
#[command(name = "tideline-read-api", version)]
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
    finish("tideline-read-api", run(Arguments::parse()).await)
}

async fn run(arguments: Arguments) -> Result<(), Exit> {
    let config: Config = load(&Sources::of_process(arguments.config)).map_err(Exit::config)?;
    telemetry::init(&config.log).map_err(Exit::config)?;
    if arguments.check {
        return config.auth.read_secret().map(drop).map_err(Exit::config);
    }
    let shutdown = Shutdown::on_signals().map_err(Exit::bug)?;
    read_api::run(config, shutdown).await
}
