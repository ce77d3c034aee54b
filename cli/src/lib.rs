//! The operator's command line.
//!
//! Owns: the subcommands, one file each, and what they print. Does not own: any knowledge of a
//! server, which the crates below have.
//!
//! Promise: results go to standard output, logs and failures to standard error; the exit code is
//! one of [`runtime::exit`]. Every command can be run again.

pub mod config;
pub mod migrate;
pub mod token;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use runtime::{
    config::{Sources, load},
    exit::Exit,
    telemetry,
};

use config::Config;

/// Operates a Tideline deployment.
///
/// The configuration is that of the services: a TOML file, then TIDELINE_ variables, which win.
/// Without either, the defaults reach the local sandbox. Exit codes: 64 the configuration is
/// wrong, 69 a server stayed away for longer than startup.budget, 70 a bug.
#[derive(Debug, Parser)]
#[command(name = "tideline", version)]
pub struct Arguments {
    /// TOML file; TIDELINE_ variables win over it.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Brings Postgres, the CQL store and the topics to what this version needs.
    ///
    /// Does what is missing and says what it did; running it again, or twice at once, changes
    /// nothing more. Waits for servers that are still booting, for at most startup.budget.
    Migrate(migrate::Arguments),
    /// Mints a bearer token for the APIs and prints it.
    Token(token::Arguments),
}

/// Carries out one command.
///
/// # Errors
/// [`Exit`], with the reason.
pub async fn run(arguments: Arguments) -> Result<(), Exit> {
    let config: Config = load(&Sources::of_process(arguments.config)).map_err(Exit::config)?;
    telemetry::init(&config.log).map_err(Exit::config)?;
    match arguments.command {
        Command::Migrate(arguments) => migrate::run(&config, &arguments).await,
        Command::Token(arguments) => token::run(&config, &arguments),
    }
}
