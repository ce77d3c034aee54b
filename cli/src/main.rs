//! `tideline`: reads the arguments, runs the command, ends with its exit code.

use std::process::ExitCode;

use clap::Parser;
use runtime::exit::finish;

#[tokio::main]
async fn main() -> ExitCode {
    finish("tideline", cli::run(cli::Arguments::parse()).await)
}
