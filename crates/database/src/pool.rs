//! Connections: one bounded pool per process.
//!
//! Promise: no wait is unbounded. Getting a connection takes at most [`WAIT`]; the server gives a
//! statement up after [`STATEMENT_TIMEOUT`], and this side stops waiting a little later, when the
//! server does not even answer that.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, QueueMode, RecyclingMethod, Runtime};
use tokio_postgres::NoTls;

use crate::{Error, statement};

/// Longest wait for a free connection, for making one and for checking one.
pub const WAIT: Duration = Duration::from_secs(5);

/// The server's `statement_timeout`.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// A pooled connection. It derefs to [`tokio_postgres::Client`].
pub type Client = deadpool_postgres::Object;

/// A bounded pool of connections to one database.
#[derive(Clone, Debug)]
pub struct Pool {
    inner: deadpool_postgres::Pool,
}

impl Pool {
    /// A pool of at most `size` connections; none is opened yet. `application_name` is what
    /// `pg_stat_activity` shows.
    ///
    /// # Errors
    /// When the URL is not one of Postgres, or `size` is zero.
    pub fn new(url: &str, size: usize, application_name: &str) -> Result<Self, Error> {
        if size == 0 {
            return Err(Error::PoolSize);
        }
        let mut config = parse(url)?;
        config
            .application_name(application_name)
            .options(session_options(STATEMENT_TIMEOUT));
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let inner =
            deadpool_postgres::Pool::builder(Manager::from_config(config, NoTls, recycling))
                .max_size(size)
                // The one that was used last: its process has plans and catalogs at hand.
                .queue_mode(QueueMode::Lifo)
                .runtime(Runtime::Tokio1)
                .wait_timeout(Some(WAIT))
                .create_timeout(Some(WAIT))
                .recycle_timeout(Some(WAIT))
                .build()
                .map_err(|source| Error::Pool {
                    source: Box::new(source),
                })?;
        Ok(Self { inner })
    }

    /// A connection; it goes back to the pool when dropped.
    ///
    /// # Errors
    /// When none is free or none can be made within [`WAIT`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn get(&self) -> Result<Client, Error> {
        self.inner.get().await.map_err(|source| Error::Get {
            source: Box::new(source),
        })
    }

    /// Whether the server answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<(), Error> {
        let client = self.get().await?;
        statement::one(&client, "ping", "select 1", &[])
            .await
            .map(drop)
    }
}

/// Reads a connection URL and adds the settings that notice a dead peer.
pub(crate) fn parse(url: &str) -> Result<tokio_postgres::Config, Error> {
    let mut config: tokio_postgres::Config = url.parse().map_err(|source| Error::Url { source })?;
    config
        .connect_timeout(WAIT)
        .keepalives_idle(Duration::from_secs(15))
        .keepalives_interval(Duration::from_secs(5))
        .keepalives_retries(3)
        .tcp_user_timeout(Duration::from_secs(30));
    Ok(config)
}

/// Session settings that hold for every connection of this crate. Without `jit`: it compiled for
/// a second what then ran for 70 ms, since estimates over all partitions are high.
pub(crate) fn session_options(statement_timeout: Duration) -> String {
    format!(
        "-c statement_timeout={} -c idle_in_transaction_session_timeout=60000 -c timezone=UTC -c jit=off -c default_transaction_isolation=read\\ committed",
        statement_timeout.as_millis()
    )
}
