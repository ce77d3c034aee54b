//! The task runner behind `./x`: everything a developer or CI calls.
//!
//! It depends on the sandbox and otherwise on `std` only, so that it builds in
//! seconds on a fresh machine. It knows which commands there are and in which
//! order their steps run; servers are the sandbox's business, the demo and the
//! judge are programs of their own.

mod bench;
mod cargo;
mod chaos;
mod ci;
mod command;
mod demo;
mod failure;
mod load;
mod program;
mod repository;
mod run;
mod screen;
mod servers;
mod services;
mod supervise;
mod test;
mod tidy;

use std::process::ExitCode;

use crate::command::Command;
use crate::failure::Failure;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "help".to_owned());
    let rest: Vec<String> = arguments.collect();
    match Command::parse(&name).and_then(|command| perform(command, &rest)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("x: {failure}");
            ExitCode::from(failure.code())
        }
    }
}

fn perform(command: Command, rest: &[String]) -> Result<(), Failure> {
    if rest.iter().any(|word| word == "--help" || word == "-h") && !command.passes_arguments() {
        screen::line(command::help());
        return Ok(());
    }
    match command {
        Command::Up => command.without_arguments(rest).and_then(|()| servers::up()),
        Command::Down => command
            .without_arguments(rest)
            .and_then(|()| servers::down()),
        Command::Status => command
            .without_arguments(rest)
            .and_then(|()| servers::status()),
        Command::Reset => command
            .without_arguments(rest)
            .and_then(|()| servers::reset()),
        Command::Run => run::run(rest),
        Command::Supervise => supervise::supervise(rest),
        Command::Demo => demo::demo(rest),
        Command::Test => test::test(rest),
        Command::Chaos => chaos::chaos(rest),
        Command::Sim => program::hand_over("sim", rest),
        Command::Load => load::load(rest),
        Command::Judge => program::hand_over("judge", rest),
        Command::Graph => program::hand_over("graph", rest),
        Command::Bench => bench::bench(rest),
        Command::Tidy => command.without_arguments(rest).and_then(|()| tidy::tidy()),
        Command::Ci => command.without_arguments(rest).and_then(|()| ci::ci()),
        Command::Help => {
            screen::line(command::help());
            Ok(())
        }
    }
}
