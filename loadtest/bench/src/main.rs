//! `./x bench sweep`: what the account costs, and what finding in it takes. `./x bench generator`:
//! what the load generator costs, and how late it is.
//!
//! Owns the order of the measurements. Each of them checks that it has measured what it says: the
//! very ids that are missing are found, the ledger has every row that a relay has published, every
//! row that a sweep sent again is counted. Whether a target is met is told, and is no failure: the
//! machine may be busy. Exit code 0: everything was measured. 1: something could not be. 130:
//! interrupted.

mod answer;
mod comparison;
mod deployment;
mod find;
mod flow;
mod generator;
mod idle;
mod ledger;
mod machine;
mod numbers;
mod outbox;
mod plan;
mod process;
mod records;
mod report;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::deployment::Servers;

/// Interrupted.
const INTERRUPTED: u8 = 130;

/// Benchmarks on real servers.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The account and the sweep.
    Sweep(Scale),
    /// The load generator, against a server that only answers.
    Generator(generator::Scale),
    /// That server.
    #[command(hide = true)]
    Answer,
}

/// How much is measured.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Scale {
    /// Rows of the largest outbox; the others have a tenth and a fifth of it. A backlog that is
    /// drained has a tenth of it.
    #[arg(long, default_value_t = 5_000_000, value_parser = clap::value_parser!(i64).range(100_000..=50_000_000))]
    rows: i64,
    /// How often each thing is measured; the median counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: u32,
    /// Measures only this part.
    #[arg(long, value_enum)]
    only: Option<Part>,
}

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Looks into a large outbox.
    Find,
    /// Rows that travel, with and without the account.
    Flow,
}

fn main() -> ExitCode {
    let what = Arguments::parse().what;
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("bench: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    match what {
        What::Sweep(scale) => runtime.block_on(sweep(scale)),
        What::Generator(scale) => told(runtime.block_on(generator::measure(scale))),
        What::Answer => told(runtime.block_on(answer::serve())),
    }
}

fn told(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Measures, and removes what was made whatever happens.
async fn sweep(scale: Scale) -> ExitCode {
    let servers = match Servers::lock().await {
        Ok(servers) => servers,
        Err(error) => {
            eprintln!("bench: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let outcome = tokio::select! {
        outcome = Box::pin(plan::measure(&servers, scale)) => Some(outcome),
        _ = tokio::signal::ctrl_c() => None,
    };
    let removed = servers.remove_all().await;
    let code = match outcome {
        None => {
            eprintln!("bench: interrupted");
            ExitCode::from(INTERRUPTED)
        }
        Some(Err(error)) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
        Some(Ok(report)) => {
            println!("{}", report.table());
            println!("{}", report.last_line());
            ExitCode::SUCCESS
        }
    };
    match removed {
        Ok(()) => code,
        Err(error) => {
            eprintln!("bench: removing what was made: {error:#}");
            ExitCode::FAILURE
        }
    }
}
