//! One connection outside the pool: the session that holds the migration lock.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, NoTls, error::SqlState};

use crate::{Error, pool, statement};

/// Migrations may wait for locks and for running transactions longer than a request may.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);
const LIMIT: Duration = STATEMENT_TIMEOUT.saturating_add(Duration::from_secs(5));

/// A connection and the task that drives it, which ends with it.
pub(super) struct Session {
    client: Client,
    driver: JoinHandle<()>,
}

impl Session {
    /// Connects, making the database first when the server says that it lacks it. Answers whether
    /// it was made.
    pub(super) async fn open_or_create(config: &Config) -> Result<(Self, bool), Error> {
        match Self::open(config).await {
            Err(error) if error.sql_state() == Some(&SqlState::INVALID_CATALOG_NAME) => {}
            other => return other.map(|session| (session, false)),
        }
        let name = config
            .get_dbname()
            .or_else(|| config.get_user())
            .unwrap_or("postgres")
            .to_owned();
        let mut maintenance = config.clone();
        maintenance.dbname("postgres");
        let create = format!("create database \"{}\"", name.replace('"', "\"\""));
        let created = match Self::open(&maintenance)
            .await?
            .run("create the database", &create)
            .await
        {
            Ok(()) => true,
            // Somebody else made it meanwhile; the second code is the race inside Postgres.
            Err(error)
                if matches!(
                    error.sql_state(),
                    Some(&SqlState::DUPLICATE_DATABASE) | Some(&SqlState::UNIQUE_VIOLATION)
                ) =>
            {
                false
            }
            Err(error) => return Err(error),
        };
        Self::open(config).await.map(|session| (session, created))
    }

    /// Runs statements without parameters.
    pub(super) async fn run(&self, doing: &'static str, sql: &str) -> Result<(), Error> {
        statement::bounded(doing, LIMIT, self.client.batch_execute(sql)).await
    }

    /// Runs a statement that answers one boolean.
    pub(super) async fn flag(&self, doing: &'static str, sql: &str) -> Result<bool, Error> {
        let row = statement::bounded(doing, LIMIT, self.client.query_one(sql, &[])).await?;
        statement::column(&row, 0)
    }

    /// The bare connection, for the migration runner.
    pub(super) fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    async fn open(config: &Config) -> Result<Self, Error> {
        let mut config = config.clone();
        config
            .application_name("tideline migrate")
            .options(pool::session_options(STATEMENT_TIMEOUT));
        let (client, connection) =
            statement::bounded("connect", LIMIT, config.connect(NoTls)).await?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                // The statement that was running reports it.
                tracing::debug!(%error, "postgres connection ended");
            }
        });
        Ok(Self { client, driver })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
