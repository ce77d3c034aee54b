//! `up`, `down`, `status`, `reset`: the sandbox, with its progress shown.

use std::time::Instant;

use sandbox::State;

use crate::failure::Failure;
use crate::repository;
use crate::screen;

/// Prints one line of progress.
pub(crate) fn say(line: &str) {
    screen::line(format!("  {line}"));
}

pub(crate) fn up() -> Result<(), Failure> {
    let begun = Instant::now();
    let mut sandbox = repository::sandbox();
    sandbox.up(&mut say)?;
    screen::line(format!(
        "servers are up ({:.1} s); configuration:",
        begun.elapsed().as_secs_f64()
    ));
    for (key, value) in sandbox.env() {
        screen::line(format!("  {key}={value}"));
    }
    screen::line(format!(
        "source it with: . {}",
        sandbox.dir().join("env").display()
    ));
    Ok(())
}

pub(crate) fn down() -> Result<(), Failure> {
    repository::sandbox().down(&mut say)?;
    screen::line(format!(
        "all stopped; data stays in {}",
        repository::sandbox().dir().display()
    ));
    Ok(())
}

pub(crate) fn reset() -> Result<(), Failure> {
    repository::sandbox().reset(&mut say)?;
    screen::line("all data wiped; ./x up starts afresh");
    Ok(())
}

pub(crate) fn status() -> Result<(), Failure> {
    for line in repository::sandbox().status() {
        screen::line(format!(
            "  {:<10} {:<16} {}",
            line.name,
            line.address,
            describe(line.state)
        ));
    }
    Ok(())
}

fn describe(state: State) -> String {
    match state {
        State::Running { pid, mebibytes } => format!("running, pid {pid}, {mebibytes} MiB"),
        State::Silent { pid } => format!("pid {pid} runs but does not answer (starting, or stuck)"),
        State::Stopped => "stopped".to_owned(),
        State::Died { pid } => {
            format!("died: pid {pid} is gone without having been stopped; ./x up starts it again")
        }
        State::PidReused { pid } => {
            format!("died: pid {pid} is another program now (left alone); ./x up starts it again")
        }
    }
}
