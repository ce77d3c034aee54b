//! `tideline`: reads the arguments, runs the command, ends with its exit code.

use std::process::ExitCode;

use clap::Parser;
use cli::Answer;
use runtime::exit::finish;

#[tokio::main]
async fn main() -> ExitCode {
    match cli::run(cli::Arguments::parse()).await {
        Ok(Answer::Differs) => ExitCode::from(1),
        outcome => finish("tideline", outcome.map(drop)),
    }
}
