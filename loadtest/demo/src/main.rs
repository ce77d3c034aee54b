//! `./x demo`: posts travel, parts are killed, and every timeline is compared with the promise.

mod api;
mod args;
mod deployment;
mod fleet;
mod graph;
mod input;
mod judgement;
mod kills;
mod loading;
mod plan;
mod play;
mod progress;
mod report;
mod stage;
mod traffic;
mod view;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::Args;
use crate::stage::{Leave, Stage};
use crate::view::View;

/// The promise was broken, or nothing was proved.
const BROKEN: u8 = 1;
/// A file is malformed.
const MALFORMED: u8 = 64;
/// Interrupted.
const INTERRUPTED: u8 = 130;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let input = match input::read(&args) {
        Ok(input) => input,
        Err(malformed) => {
            eprintln!("{malformed}");
            return ExitCode::from(MALFORMED);
        }
    };
    let view = Arc::new(View::new());
    let stage = match Stage::prepare(Arc::clone(&view)) {
        Ok(stage) => stage,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::from(BROKEN);
        }
    };
    let outcome = tokio::select! {
        outcome = play::play(&stage, &args, &input) => Some(outcome),
        () = interrupted() => None,
    };
    // Whoever asks a second time does not want to wait.
    let impatient = tokio::spawn(async {
        interrupted().await;
        std::process::exit(i32::from(INTERRUPTED));
    });
    view.freeze();
    let code = end(&stage, &args, outcome).await;
    impatient.abort();
    ExitCode::from(code)
}

/// Leaves the stage, prints the report last, and answers the exit code.
async fn end(stage: &Stage, args: &Args, outcome: Option<anyhow::Result<play::Played>>) -> u8 {
    let (leave, code) = match &outcome {
        None => (Leave::Clean, INTERRUPTED),
        Some(Ok(played)) if played.report.holds() => (
            if args.keep {
                Leave::Running
            } else {
                Leave::Clean
            },
            0,
        ),
        // What is wrong can be looked at: the data stays until the next run.
        Some(_) => (
            if args.keep {
                Leave::Running
            } else {
                Leave::Data
            },
            BROKEN,
        ),
    };
    if outcome.is_none() {
        println!("interrupted, stopping what was started …");
    }
    if let Some(Err(error)) = &outcome {
        eprintln!("error: {error:#}");
    }
    let left = stage.leave(leave).await;
    if let Some(Ok(played)) = &outcome {
        println!("{}", played.report.table().trim_end());
        if leave == Leave::Running {
            println!("{}", played.hints);
        }
    }
    let code = match left {
        Ok(()) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            code.max(BROKEN)
        }
    };
    if let Some(Ok(played)) = &outcome {
        println!("{}", played.report.last_line());
    }
    code
}

/// Returns at Ctrl-C or SIGTERM.
async fn interrupted() {
    // Without a handler the signal ends this process at once, and the servers stay up.
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
