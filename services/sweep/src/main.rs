//! `tideline-sweep`: reads the configuration, runs the daemon or one round, ends with its exit
//! code.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Parser;
use runtime::{
    Shutdown,
    config::{self, Sources, value::Span},
    exit::{self, Exit},
    telemetry,
};
use sweep::{Command, Config};

/// Finds what was committed and is in no account, and delivers it again.
///
/// Without options it runs until it is stopped. Any option but --config asks for one round.
#[derive(Debug, Parser)]
#[command(name = "tideline-sweep", version)]
struct Arguments {
    /// TOML file; the environment (`TIDELINE_…`) wins over it.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Look once at every stage, send again what was lost, tell what was done, end.
    #[arg(long)]
    once: bool,
    /// Only these outbox ids, both ends included: 1000..2000.
    #[arg(long, value_name = "A..B")]
    range: Option<String>,
    /// Only events of this time or later: 2026-11-29T18:00:00Z, or 2h for two hours ago.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only events before this time.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only this stage: published or delivered.
    #[arg(long)]
    stage: Option<String>,
    /// Tell what is missing and what would be done with it; send nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    /// How long to wait until the relay and the groups have passed a look.
    #[arg(long, value_name = "SPAN")]
    patience: Option<Span>,
}

fn main() -> ExitCode {
    exit::finish("tideline-sweep", start(Arguments::parse()))
}

fn start(arguments: Arguments) -> Result<(), Exit> {
    let command = command(&arguments)?;
    let config: Config =
        config::load(&Sources::of_process(arguments.config)).map_err(Exit::config)?;
    config.check().map_err(Exit::config)?;
    telemetry::init(&config.log).map_err(Exit::config)?;
    // Named crash points come from the environment variable FAILPOINTS; without the feature
    // `crash-points` this is nothing.
    let _crash_points = fail::FailScenario::setup();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Exit::bug)?;
    let outcome = runtime.block_on(async {
        let shutdown = Shutdown::on_signals().map_err(Exit::bug)?;
        match command {
            None => sweep::run(config, shutdown).await,
            Some(command) => sweep::once(config, command, shutdown).await.map(|summary| {
                print!("{}", summary.text(arguments.json));
            }),
        }
    });
    // A question to a broker that is down may still wait for its answer on a thread.
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

/// The one round that is asked for; `None`: the daemon.
fn command(arguments: &Arguments) -> Result<Option<Command>, Exit> {
    let asked = arguments.once
        || arguments.dry_run
        || arguments.json
        || arguments.patience.is_some()
        || [
            &arguments.range,
            &arguments.since,
            &arguments.until,
            &arguments.stage,
        ]
        .into_iter()
        .any(Option::is_some);
    if !asked {
        return Ok(None);
    }
    let mut command = Command::new(
        arguments.stage.as_deref(),
        arguments.range.as_deref(),
        arguments.since.as_deref(),
        arguments.until.as_deref(),
    )
    .map_err(Exit::config)?;
    command.dry_run = arguments.dry_run;
    if let Some(patience) = arguments.patience {
        command.patience = patience.0;
    }
    Ok(Some(command))
}
