//! `load`: see `load --help` and docs/specs/load.md.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use load::args::Args;
use load::play::{self, Played};
use load::scenario::{BUILT_IN, Overrides, Scenario};
use load::screen::Screen;
use load::stage;
use load::target::Unfit;
use report::Outcome;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// The promise or a threshold did not hold.
const BROKEN: u8 = 1;
/// The run proves nothing.
const INVALID: u8 = 2;
/// The call or the scenario is wrong.
const USAGE: u8 = 64;
/// Something that is needed does not answer.
const GONE: u8 = 69;
/// Somebody asked to stop.
const INTERRUPTED: u8 = 130;

/// Two threads are enough for the rates a scenario has, and leave cores to what is measured.
const THREADS: usize = 2;

fn main() -> ExitCode {
    let args = match Args::read() {
        Ok(args) => args,
        Err(error) => {
            let wrong = error.use_stderr();
            let _ = error.print();
            return ExitCode::from(if wrong { USAGE } else { 0 });
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(run(args)),
        Err(error) => {
            eprintln!("error: making the runtime: {error}");
            ExitCode::from(GONE)
        }
    }
}

async fn run(args: Args) -> ExitCode {
    if args.list {
        return list();
    }
    let Some(name) = &args.scenario else {
        eprintln!("error: no scenario is named; --list lists those that come along");
        return ExitCode::from(USAGE);
    };
    let scenario = match Scenario::read(name, &args.overrides()) {
        Ok(scenario) => scenario,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(USAGE);
        }
    };
    if args.dry_run {
        return dry_run(&scenario);
    }
    let folder = args.out.clone().unwrap_or_else(|| {
        PathBuf::from(format!("target/load/{}-{}", scenario.name, scenario.seed))
    });
    let screen = Arc::new(Screen::new(Duration::from_secs(1)));
    let stop = interrupts();
    let command = command(&scenario, &args);
    let target = args.target();
    let played = play::play(&scenario, &target, &folder, command, &screen, stop.clone());
    let played = played.await;
    screen.freeze();
    match played {
        Ok(played) => end(&played, &folder),
        Err(_) if *stop.borrow() => ExitCode::from(INTERRUPTED),
        Err(Unfit::Usage(error)) => {
            eprintln!("error: {error:#}");
            ExitCode::from(USAGE)
        }
        Err(Unfit::Gone(error)) => {
            eprintln!("error: {error:#}");
            ExitCode::from(GONE)
        }
    }
}

/// Writes the report, prints it with the last line last, and answers the exit code.
fn end(played: &Played, folder: &std::path::Path) -> ExitCode {
    println!("{}", report::text(&played.run).trim_end());
    let code = match played.run.outcome() {
        _ if played.stopped => INTERRUPTED,
        _ if played.nothing_answered => GONE,
        Outcome::Held => 0,
        Outcome::Missed | Outcome::Broken => BROKEN,
        Outcome::Invalid => INVALID,
    };
    let code = match report::write(&played.run, folder) {
        Ok(written) => {
            println!("report: {}", written.page.display());
            code
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            code.max(BROKEN)
        }
    };
    println!("{}", played.last_line);
    ExitCode::from(code)
}

fn list() -> ExitCode {
    for (name, _) in BUILT_IN {
        if let Ok(scenario) = Scenario::read(name, &Overrides::default()) {
            println!("{name:<34}{}", scenario.about);
        }
    }
    ExitCode::SUCCESS
}

fn dry_run(scenario: &Scenario) -> ExitCode {
    match stage::rehearse(scenario) {
        Ok(summary) => {
            println!(
                "{} (seed {}): {}",
                scenario.name, scenario.seed, scenario.about
            );
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(USAGE)
        }
    }
}

/// The call that runs the same again; addresses are the deployment's and left out.
fn command(scenario: &Scenario, args: &Args) -> String {
    let name = args.scenario.as_deref().unwrap_or_default();
    let mut words = format!("./x load {name} --seed {}", scenario.seed);
    if let Some(duration) = args.duration {
        words.push_str(&format!(" --duration {}ms", duration.as_millis()));
    }
    for set in &args.set {
        words.push_str(&format!(" --set {set}"));
    }
    words
}

/// Turns true at the first Ctrl-C or SIGTERM; the second one ends the process.
fn interrupts() -> watch::Receiver<bool> {
    let (told, stop) = watch::channel(false);
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        // Without handlers a signal ends the process at once.
        return stop;
    };
    let _task = tokio::spawn(async move {
        for last in [false, true] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if last {
                std::process::exit(i32::from(INTERRUPTED));
            }
            println!("stopping: what is on its way is awaited for a moment, then judged …");
            let _all = told.send(true);
        }
    });
    stop
}
