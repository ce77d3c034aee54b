//! `judge`: reads the journal of a run and says whether the promise held.
//!
//! Owns the arguments and the exit code. The verdict stands on standard output, in words or as
//! JSON; the last line is one for machines. Exit code 0: the promise held. 1: it did not. 64: the
//! arguments or the journal are wrong. 69: a server did not answer.

mod program;

use std::process::ExitCode;

use clap::Parser;

use program::{Arguments, Failure};

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
            // Nobody is told when the output is gone.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let outcome = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::new(Failure::SERVER, error))
        .and_then(|runtime| runtime.block_on(program::run(&arguments)));
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => {
            eprintln!("judge: {:#}", failure.error);
            ExitCode::from(failure.code)
        }
    }
}
