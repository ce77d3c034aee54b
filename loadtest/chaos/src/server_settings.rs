//! A server setting that is changed for a moment and comes back however the run ends.
//!
//! Promise: the setting is restored by [`Changed::restore`], by dropping (a failed, timed-out or
//! interrupted run), and at the start of the next run, which covers a run that was killed.

use anyhow::Context;
use tokio_postgres::{Client, NoTls};

/// What is changed in any run.
const CHANGED: [&str; 2] = ["max_slot_wal_keep_size", "wal_sender_timeout"];

const RELOAD: &str = "select pg_reload_conf()";

/// A setting is another one while this lives.
#[derive(Debug)]
pub struct Changed {
    url: String,
    restored: bool,
}

impl Changed {
    /// The WAL that a slot may keep is so many MiB.
    ///
    /// # Errors
    /// When Postgres does not answer.
    pub async fn slot_wal(url: String, mebibytes: u32) -> anyhow::Result<Self> {
        let statement = format!("alter system set max_slot_wal_keep_size = '{mebibytes}MB'");
        Self::new(url, &statement).await
    }

    /// A walsender that has not heard of its client for so many seconds ends.
    ///
    /// # Errors
    /// When Postgres does not answer.
    pub async fn walsender_timeout(url: String, seconds: u32) -> anyhow::Result<Self> {
        let statement = format!("alter system set wal_sender_timeout = '{seconds}s'");
        Self::new(url, &statement).await
    }

    async fn new(url: String, statement: &str) -> anyhow::Result<Self> {
        let client = connect(&url).await?;
        // From here on it is restored, whether or not the statements come through.
        let changed = Self {
            url,
            restored: false,
        };
        client.batch_execute(statement).await?;
        client.batch_execute(RELOAD).await?;
        Ok(changed)
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

impl Drop for Changed {
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
            eprintln!("a server setting is not restored; the next run does that");
        }
    }
}

/// Puts every setting back to what the server's configuration file says.
///
/// # Errors
/// When Postgres does not answer.
pub async fn reset(url: &str) -> anyhow::Result<()> {
    let client = connect(url).await?;
    // ALTER SYSTEM refuses to run together with another statement.
    for setting in CHANGED {
        client
            .batch_execute(&format!("alter system reset {setting}"))
            .await
            .with_context(|| format!("restore {setting}"))?;
    }
    client
        .batch_execute(RELOAD)
        .await
        .context("restore the settings")
}

async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // Ends when the client is dropped.
    let _connection = tokio::spawn(connection);
    Ok(client)
}
