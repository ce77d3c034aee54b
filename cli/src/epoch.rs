//! `tideline epoch`: which life of the outbox ids this is, and the beginning of a new one.

use database::epoch;
use runtime::exit::Exit;

use crate::{
    config::Config,
    error::Error,
    servers,
    sql::{self, column},
};

/// The arguments.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Clone, Copy, Debug, clap::Subcommand)]
enum Command {
    /// Begins a new epoch, after a restore from a backup.
    ///
    /// Raises the outbox ids by N, so that none is given twice that was given after the backup
    /// was taken: choose N above the number of events since then, ten times as many does no harm.
    /// What was entered in the ledger during the last hour of the backup is doubted and delivered
    /// again, which changes no timeline. Relay and sweep follow by themselves.
    Bump {
        /// By how much the outbox ids are raised.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=1_000_000_000_000))]
        by: i64,
    },
}

/// Shows the epoch, or begins one and says what it did.
///
/// # Errors
/// [`Exit`] when Postgres does not answer.
pub async fn run(config: &Config, arguments: &Arguments) -> Result<(), Exit> {
    let pool = servers::pool(config)?;
    let mut client = servers::client(&pool).await?;
    let outcome = match arguments.command {
        None => show(&client).await,
        Some(Command::Bump { by }) => bump(&mut client, by).await,
    };
    outcome.map_err(Error::into_exit)
}

async fn show(client: &database::Client) -> Result<(), Error> {
    let current = epoch::current(client).await?;
    let here = epoch::here(client).await?;
    let (highest, next) = ids(client).await?;
    println!(
        "epoch     {}, begun on system {} timeline {}",
        current.epoch, current.system_id, current.pg_timeline
    );
    let recovery = if here.in_recovery {
        ", in recovery: a standby"
    } else {
        ""
    };
    println!(
        "server    system {} timeline {}{recovery}",
        here.system_id, here.pg_timeline
    );
    if (&here.system_id, here.pg_timeline) != (&current.system_id, current.pg_timeline) {
        println!(
            "          differs from the epoch's: relay or sweep begin a new epoch at their next look"
        );
    }
    println!("ids       highest in the outbox {highest}, last one drawn {next}");
    Ok(())
}

async fn bump(client: &mut database::Client, by: i64) -> Result<(), Error> {
    let before = epoch::current(client).await?;
    let (_, drawn) = ids(client).await?;
    let begun = epoch::bump(client, by).await?;
    let (_, now) = ids(client).await?;
    println!("epoch     {} begun, it was {}", begun.epoch, before.epoch);
    println!("ids       raised from {drawn} to {now}");
    println!(
        "ledger    {} ids doubted: they are delivered again",
        begun.doubted
    );
    Ok(())
}

/// The highest id in the outbox and the last one that was drawn.
async fn ids(client: &database::Client) -> Result<(i64, i64), Error> {
    const SQL: &str = "select coalesce((select max(id) from tideline.outbox), 0),
        coalesce(pg_sequence_last_value(pg_get_serial_sequence('tideline.outbox', 'id')::regclass), 0)";
    let row = sql::first(client, "read the outbox ids", SQL, &[])
        .await?
        .ok_or(database::Error::Value { what: "outbox ids" })?;
    Ok((column(&row, 0)?, column(&row, 1)?))
}
