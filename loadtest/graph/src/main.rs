//! `graph`: makes follow graphs, describes them, and loads edge lists.
//!
//! Results go to standard output, progress and failures to standard error. Exit code 0: done. 64:
//! the arguments are wrong. 65: the list has bad lines, nothing was loaded. 66: the list cannot be
//! read. 69: the database did not answer or refused. 74: the output cannot be written.

mod command;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use command::{Failure, describe, generate, load};

/// Follow graphs: made to published figures, or loaded from a list.
#[derive(Debug, Parser)]
#[command(name = "graph")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Writes the edges of a generated graph, `follower followee` on each line.
    Generate(generate::Arguments),
    /// Measures a generated graph and holds it against published figures.
    Describe(describe::Arguments),
    /// Loads an edge list into Postgres: accounts and follows.
    ///
    /// A line is `follower followee`, separated by spaces, tabs or a comma; lines that are empty or
    /// start with # or % say nothing. A first line that names both columns decides their order.
    /// Loading the same list again changes nothing.
    ///
    /// A bulk load writes no outbox rows: there are no follow events, and nobody's timeline gets
    /// posts from before the load. Load before the traffic, or while nobody changes the same edges.
    Load(load::Arguments),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help is asked for; everything else is a mistake.
            let code = if error.use_stderr() {
                Failure::USAGE
            } else {
                0
            };
            return match error.print() {
                Ok(()) => ExitCode::from(code),
                Err(_) => ExitCode::from(Failure::OUTPUT),
            };
        }
    };
    let outcome = match arguments.command {
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Describe(arguments) => describe::run(&arguments),
        Command::Load(arguments) => load::run(arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("graph: {:#}", failure.error);
            ExitCode::from(failure.code)
        }
    }
}
