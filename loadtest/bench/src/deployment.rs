//! Databases and topics of its own, beside everybody else's on the servers.
//!
//! Promise: a run that ended in whatever way is cleaned up after by the next one; what does not
//! begin with the bench's prefix is never touched. One bench at a time on a server.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use database::{Pool, migrations, outbox};
use kafka::KafkaConfig;
use tokio_postgres::{Client, NoTls};

/// Every name of a bench begins with this.
const PREFIX: &str = "tideline_bench_";
/// The lock that a bench holds while it runs: "bench" as a number.
const LOCK: i64 = 0x62_656e_6368;
/// Outbox days behind today, as with the default retention.
const DAYS_BEHIND: u32 = 7;
const POOL: usize = 4;

/// Where the servers are, locked for this bench.
#[derive(Debug)]
pub(crate) struct Servers {
    /// URL of Postgres without a database.
    postgres: String,
    brokers: String,
    /// On database `postgres`; holds the lock as long as it lives.
    maintenance: Client,
}

/// One database with its topics.
#[derive(Clone, Debug)]
pub(crate) struct Deployment {
    pub(crate) name: String,
    postgres: String,
    brokers: String,
}

impl Servers {
    /// The servers that `./x bench` names in the environment, cleaned of earlier runs.
    pub(crate) async fn lock() -> anyhow::Result<Self> {
        let url = setting("TIDELINE_POSTGRES__URL")?;
        let (postgres, _) = url
            .rsplit_once('/')
            .context("TIDELINE_POSTGRES__URL ends in no /database")?;
        let maintenance = connect(&format!("{postgres}/postgres")).await?;
        let row = maintenance
            .query_one("select pg_try_advisory_lock($1)", &[&LOCK])
            .await?;
        ensure!(
            row.try_get::<_, bool>(0)?,
            "another bench runs on these servers"
        );
        let servers = Self {
            postgres: postgres.to_owned(),
            brokers: setting("TIDELINE_KAFKA__BROKERS")?,
            maintenance,
        };
        servers
            .remove_all()
            .await
            .context("removing what an earlier run left")?;
        Ok(servers)
    }

    /// A connection to the server, for questions about it.
    pub(crate) const fn maintenance(&self) -> &Client {
        &self.maintenance
    }

    /// Makes a deployment: schema, outbox days, topics. Its name tells what it is for.
    pub(crate) async fn deploy(&self, purpose: &str) -> anyhow::Result<Deployment> {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .context("the clock is before 1970")?;
        let deployment = Deployment {
            name: format!("{PREFIX}{purpose}_{:x}", since.as_millis()),
            postgres: self.postgres.clone(),
            brokers: self.brokers.clone(),
        };
        let options = migrations::Options {
            url: &deployment.url(),
            slot: &deployment.name,
            publication: "tideline_outbox",
        };
        let _report = migrations::migrate(&options)
            .await
            .context("migrating Postgres")?;
        // A slot that nobody reads keeps the WAL of everything that is about to be written.
        self.drop_slots(&deployment.name).await?;
        let client = deployment.pool()?.get().await?;
        let _days = outbox::ensure_days(&client, DAYS_BEHIND).await?;
        let _report = kafka::topics::create(&deployment.kafka()?).await?;
        Ok(deployment)
    }

    /// Removes every database, slot and topic of every bench.
    pub(crate) async fn remove_all(&self) -> anyhow::Result<()> {
        self.drop_slots(PREFIX).await?;
        const NAMES: &str = "select datname::text from pg_database where starts_with(datname, $1)";
        for row in self.maintenance.query(NAMES, &[&PREFIX]).await? {
            let name: String = row.try_get(0)?;
            ensure!(is_ours(&name), "{name:?} is no name of a bench");
            let deployment = Deployment {
                name,
                postgres: self.postgres.clone(),
                brokers: self.brokers.clone(),
            };
            kafka::topics::remove(&deployment.kafka()?).await?;
            let name = &deployment.name;
            let drop = format!("drop database if exists {name} with (force)");
            self.maintenance.batch_execute(&drop).await?;
        }
        Ok(())
    }

    /// Drops the slots whose names begin so; whoever still reads one is ended first.
    async fn drop_slots(&self, prefix: &str) -> anyhow::Result<()> {
        const END: &str = "select pg_terminate_backend(active_pid, 5000) from pg_replication_slots
            where starts_with(slot_name, $1) and active_pid is not null";
        const DROP: &str = "select pg_drop_replication_slot(slot_name) from pg_replication_slots
            where starts_with(slot_name, $1)";
        self.maintenance.execute(END, &[&prefix]).await?;
        self.maintenance.execute(DROP, &[&prefix]).await?;
        Ok(())
    }
}

impl Deployment {
    /// URL of its database.
    pub(crate) fn url(&self) -> String {
        format!("{}/{}", self.postgres, self.name)
    }

    /// Where its topics are.
    pub(crate) fn kafka(&self) -> anyhow::Result<KafkaConfig> {
        Ok(KafkaConfig::new(&self.brokers, &self.name, 1)?)
    }

    /// The product's connections to its database.
    pub(crate) fn pool(&self) -> anyhow::Result<Pool> {
        Ok(Pool::new(&self.url(), POOL, "tideline-bench")?)
    }

    /// A connection without any limit of time, for filling and for comparisons.
    pub(crate) async fn sql(&self) -> anyhow::Result<Client> {
        connect(&self.url()).await
    }

    /// The configuration of its services, with this slot.
    pub(crate) fn env(&self, slot: &str) -> Vec<(String, String)> {
        [
            ("TIDELINE_POSTGRES__URL", self.url()),
            ("TIDELINE_POSTGRES__SLOT", slot.to_owned()),
            ("TIDELINE_KAFKA__BROKERS", self.brokers.clone()),
            ("TIDELINE_KAFKA__NAMESPACE", self.name.clone()),
            ("TIDELINE_KAFKA__REPLICATION_FACTOR", "1".to_owned()),
            // Any port: nobody asks.
            ("TIDELINE_RELAY__ADMIN", "127.0.0.1:0".to_owned()),
            ("TIDELINE_SWEEP__ADMIN", "127.0.0.1:0".to_owned()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }
}

fn setting(key: &str) -> anyhow::Result<String> {
    std::env::var(key).with_context(|| format!("{key} is not set; start this as ./x bench"))
}

async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .context("connecting to Postgres")?;
    // Ends when the client is dropped.
    let _connection = tokio::spawn(connection);
    client.batch_execute("set timezone = 'UTC'").await?;
    Ok(client)
}

/// Whether a name can only be one that [`Servers::deploy`] made.
fn is_ours(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|rest| {
        !rest.is_empty()
            && rest
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_benches_are_ever_removed() {
        let rows = [
            ("tideline_bench_find_19a", true),
            ("tideline_bench_", false),
            ("tideline_bench_x;", false),
            ("tideline", false),
            ("tideline_demo_19a", false),
        ];
        for (name, expected) in rows {
            assert_eq!(is_ours(name), expected, "{name}");
        }
    }
}
