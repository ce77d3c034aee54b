//! The operator's command line.
//!
//! Owns: the subcommands, one file each, and what they print. Does not own: any knowledge of a
//! server, which the crates below have.
//!
//! Promise: results go to standard output, logs and failures to standard error; the exit code is
//! one of [`runtime::exit`], or 1 for a question whose answer is "no" or "there are differences".
//! Every command can be run again.

mod audience;
pub mod config;
pub mod epoch;
pub mod error;
pub mod explain;
pub mod migrate;
mod moment;
mod point_reads;
pub mod reconcile;
mod servers;
mod sql;
pub mod token;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use runtime::{
    Running,
    config::{Sources, load},
    exit::Exit,
    telemetry,
};

use config::Config;

/// Operates a Tideline deployment.
///
/// The configuration is that of the services: a TOML file, then TIDELINE_ variables, which win.
/// Without either, the defaults reach the local sandbox. Exit codes: 0 done, 1 the answer is no
/// (explain: nobody knows the post; reconcile: there are differences), 64 the configuration is
/// wrong, 69 a server did not answer (migrate: for longer than startup.budget), 70 a bug.
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
    Migrate,
    /// Mints a bearer token for the APIs and prints it.
    Token(token::Arguments),
    /// Tells the whole story of one post: its rows, its events in Kafka, their account, its
    /// timelines, and what the sweep would do now and why.
    ///
    /// Reads only. Exit code 1 when no server knows the post.
    Explain(explain::Arguments),
    /// Compares posts, outbox, ledger and timelines over a range of time, and names each kind of
    /// difference with the command that repairs it.
    ///
    /// Exit code 0 when nothing differs, 1 when something does.
    Reconcile(reconcile::Arguments),
    /// Shows the epoch of the outbox ids, or begins a new one after a restore.
    Epoch(epoch::Arguments),
}

/// How a command ended that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// As asked. Exit code 0.
    Yes,
    /// The answer to the question is no: nobody knows it, or there are differences. Exit code 1.
    Differs,
}

/// Carries out one command.
///
/// # Errors
/// [`Exit`], with the reason.
pub fn run(arguments: Arguments) -> Running<Answer> {
    Box::pin(run_here(arguments))
}

async fn run_here(arguments: Arguments) -> Result<Answer, Exit> {
    let config: Config = load(&Sources::of_process(arguments.config)).map_err(Exit::config)?;
    telemetry::init(&config.log).map_err(Exit::config)?;
    match arguments.command {
        Command::Migrate => migrate::run(&config).await?,
        Command::Token(arguments) => token::run(&config, &arguments)?,
        Command::Epoch(arguments) => epoch::run(&config, &arguments).await?,
        Command::Explain(arguments) => return explain::run(&config, &arguments).await,
        Command::Reconcile(arguments) => return reconcile::run(&config, &arguments).await,
    }
    Ok(Answer::Yes)
}
