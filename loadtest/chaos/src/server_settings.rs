//! A server setting that is lowered for a moment and comes back however the run ends.
//!
//! Promise: the setting is restored by [`Lowered::restore`], by dropping (a failed, timed-out or
//! interrupted run), and at the start of the next run, which covers a run that was killed.

use anyhow::Context;
use tokio_postgres::{Client, NoTls};

/// What `max_slot_wal_keep_size` is lowered to, MiB. Slots that are up with the server keep far
/// less.
pub const RETAINED: u32 = 64;

const RESET: [&str; 2] = [
    "alter system reset max_slot_wal_keep_size",
    "select pg_reload_conf()",
];

/// `max_slot_wal_keep_size` is low while this lives.
#[derive(Debug)]
pub struct Lowered {
    url: String,
    restored: bool,
}

impl Lowered {
    /// Lowers it.
    ///
    /// # Errors
    /// When Postgres does not answer.
    pub async fn new(url: String) -> anyhow::Result<Self> {
        let client = connect(&url).await?;
        // From here on it is restored, whether or not the statements come through.
        let lowered = Self {
            url,
            restored: false,
        };
        let set = format!("alter system set max_slot_wal_keep_size = '{RETAINED}MB'");
        client.batch_execute(&set).await?;
        client.batch_execute("select pg_reload_conf()").await?;
        Ok(lowered)
    }

    /// Restores it.
    ///
    /// # Errors
    /// When Postgres does not answer; it is tried again when this is dropped.
    pub async fn restore(mut self) -> anyhow::Result<()> {
        reset(&self.url).await?;
        self.restored = true;
        Ok(())
    }
}

impl Drop for Lowered {
    fn drop(&mut self) {
        if self.restored {
            return;
        }
        let url = self.url.clone();
        // The run's runtime may be ending, so this one is its own.
        let restore = std::thread::spawn(move || -> anyhow::Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(reset(&url))
        });
        if !matches!(restore.join(), Ok(Ok(()))) {
            eprintln!("max_slot_wal_keep_size is not restored; the next run does that");
        }
    }
}

/// Puts the setting back to what the server's configuration file says.
///
/// # Errors
/// When Postgres does not answer.
pub async fn reset(url: &str) -> anyhow::Result<()> {
    let client = connect(url).await?;
    // ALTER SYSTEM refuses to run together with another statement.
    for statement in RESET {
        client
            .batch_execute(statement)
            .await
            .context("restore max_slot_wal_keep_size")?;
    }
    Ok(())
}

async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // Ends when the client is dropped.
    let _connection = tokio::spawn(connection);
    Ok(client)
}
