//! `chaos`: runs faults by name and ends with one line for each.
//!
//! Exit code 0: every fault was hit and the promise held. 1: something else. 64: no such fault.

use std::process::ExitCode;

use chaos::{Scenario, report::Report, scenario, server_settings};
use clap::Parser;
use testkit::Servers;

const USAGE: u8 = 64;

/// Faults against the whole system, on real servers, with load going on.
#[derive(Debug, Parser)]
#[command(name = "chaos")]
struct Arguments {
    /// The fault; `--list` shows all.
    scenario: Option<String>,
    /// What chance decides follows from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Shows every fault and ends.
    #[arg(long)]
    list: bool,
    /// Runs every fault, one after the other.
    #[arg(long, conflicts_with = "scenario")]
    all: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list {
        for scenario in scenario::ALL {
            println!("{:<23} {}", scenario.name, scenario.about);
        }
        return ExitCode::SUCCESS;
    }
    let chosen: Vec<&'static Scenario> = match &arguments.scenario {
        Some(name) => Scenario::find(name).into_iter().collect(),
        None if arguments.all => scenario::ALL.iter().collect(),
        None => Vec::new(),
    };
    if chosen.is_empty() {
        let name = arguments.scenario.unwrap_or_default();
        eprintln!("chaos: no scenario {name:?}; --list shows all");
        return ExitCode::from(USAGE);
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("chaos: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    if runtime.block_on(run_until_interrupted(chosen, arguments.seed)) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs them one after the other. An interrupt drops the run, which puts everything back.
async fn run_until_interrupted(chosen: Vec<&'static Scenario>, seed: u64) -> bool {
    let all = async {
        let mut good = true;
        for scenario in chosen {
            good &= run(scenario, seed).await;
        }
        good
    };
    tokio::select! {
        good = all => good,
        _ = tokio::signal::ctrl_c() => {
            eprintln!("chaos: interrupted");
            false
        }
    }
}

async fn run(scenario: &'static Scenario, seed: u64) -> bool {
    let url = Servers::get().await.postgres_url("postgres");
    // A run that was killed may have left it lowered.
    if let Err(error) = server_settings::reset(&url).await {
        eprintln!("chaos: {error:#}");
        return false;
    }
    let report = match attempt(scenario, seed).await {
        Ok(report) => report,
        Err(error) => {
            eprintln!("chaos: {} seed {seed}: {error:#}", scenario.name);
            return false;
        }
    };
    if let Some(proof) = &report.proof {
        eprintln!("{}: hit: {proof}", scenario.name);
    }
    let faults = report.faults(scenario.sweep);
    for fault in &faults {
        eprintln!("{}: {fault}", scenario.name);
    }
    println!("{}", report.line(scenario.name, seed));
    faults.is_empty()
}

/// In place, so that an interrupt drops it; a panic of testkit has said why and ends the program.
async fn attempt(scenario: &'static Scenario, seed: u64) -> anyhow::Result<Report> {
    Box::pin(scenario.run(seed)).await
}
