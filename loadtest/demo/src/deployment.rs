//! One run's own database, topics, keyspace and slot, beside everybody else's on the servers.
//!
//! Promise: a run that ended in whatever way leaves its name in a file, so the next one removes
//! what it left; what belongs to no demo is never touched.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use kafka::KafkaConfig;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use timeline_store::{CqlConfig, CqlTimelines};
use tokio_postgres::NoTls;

/// Every name of a demo begins with this.
const PREFIX: &str = "tideline_demo_";

/// How long the removal of topics may take.
const KAFKA_TIMEOUT: Duration = Duration::from_secs(15);

/// How long the timeline store is asked for a connection: one attempt ends when it stalls.
const CONNECTED_WITHIN: Duration = Duration::from_secs(60);

/// The names of one run, and the servers they are on.
#[derive(Clone, Debug)]
pub(crate) struct Deployment {
    pub(crate) name: String,
    /// The sandbox's configuration.
    servers: Vec<(String, String)>,
}

impl Deployment {
    /// A name that no run had before.
    pub(crate) fn fresh(servers: Vec<(String, String)>) -> anyhow::Result<Self> {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .context("the clock is before 1970")?;
        Ok(Self {
            name: format!("{PREFIX}{:x}", since.as_millis()),
            servers,
        })
    }

    /// The configuration of this run's services.
    pub(crate) fn env(&self) -> Vec<(String, String)> {
        let mut env = self.servers.clone();
        let own = [
            ("TIDELINE_POSTGRES__URL", self.database_url()),
            ("TIDELINE_KAFKA__NAMESPACE", self.name.clone()),
            ("TIDELINE_CQL__KEYSPACE", self.name.clone()),
            ("TIDELINE_POSTGRES__SLOT", self.slot()),
            // A person watches: the sweep looks more often than it has to.
            ("TIDELINE_SWEEP__INTERVAL", "1s".to_owned()),
            ("TIDELINE_SWEEP__GRACE", "2s".to_owned()),
            // Static membership: a killed worker has its partitions again as soon as it is back.
            (
                "TIDELINE_FANOUT__INSTANCE_ID",
                format!("{}_worker", self.name),
            ),
        ];
        env.retain(|(key, _)| own.iter().all(|(own, _)| own != key));
        env.extend(own.map(|(key, value)| (key.to_owned(), value)));
        env
    }

    /// URL of its database.
    pub(crate) fn database_url(&self) -> String {
        let url = self.setting("TIDELINE_POSTGRES__URL");
        let server = url.rsplit_once('/').map_or(url, |(server, _)| server);
        format!("{server}/{}", self.name)
    }

    /// Its replication slot.
    pub(crate) fn slot(&self) -> String {
        format!("{}_relay", self.name)
    }

    /// One value of the sandbox's configuration.
    pub(crate) fn setting(&self, key: &str) -> &str {
        self.servers
            .iter()
            .find(|(name, _)| name == key)
            .map_or("", |(_, value)| value)
    }

    /// A pool of connections to its database.
    pub(crate) fn pool(&self, size: usize) -> anyhow::Result<database::Pool> {
        Ok(database::Pool::new(
            &self.database_url(),
            size,
            "tideline-demo",
        )?)
    }

    /// A connection to its timelines.
    pub(crate) async fn timelines(&self) -> anyhow::Result<CqlTimelines> {
        let config = CqlConfig::at(self.setting("TIDELINE_CQL__NODES"), &self.name);
        let begun = Instant::now();
        loop {
            match CqlTimelines::connect(&config).await {
                Err(error) if error.class().is_retried() && begun.elapsed() < CONNECTED_WITHIN => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                connected => return connected.context("connecting to the timeline store"),
            }
        }
    }

    /// Removes everything that has its name.
    pub(crate) async fn remove(&self) -> anyhow::Result<()> {
        self.remove_database()
            .await
            .context("removing the database and its slot")?;
        self.remove_topics().await.context("removing the topics")?;
        let node = self.setting("TIDELINE_CQL__NODES").to_owned();
        timeline_store::schema::remove(&[node], &self.name)
            .await
            .context("removing the keyspace")
    }

    async fn remove_database(&self) -> anyhow::Result<()> {
        let url = self.setting("TIDELINE_POSTGRES__URL");
        let server = url.rsplit_once('/').map_or(url, |(server, _)| server);
        let (client, connection) =
            tokio_postgres::connect(&format!("{server}/postgres"), NoTls).await?;
        let connection = tokio::spawn(connection);
        let slot = self.slot();
        let ready = async {
            // The walsender of a relay that was just stopped may need a moment to notice.
            while client
                .query_opt(
                    "select from pg_replication_slots where slot_name = $1 and active",
                    &[&slot],
                )
                .await?
                .is_some()
            {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok::<_, tokio_postgres::Error>(())
        };
        tokio::time::timeout(Duration::from_secs(10), ready)
            .await
            .context("somebody still uses the slot")??;
        const DROP: &str = "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1";
        client.execute(DROP, &[&slot]).await?;
        // The name is made of letters, digits and '_' only.
        client
            .batch_execute(&format!(
                "drop database if exists {} with (force)",
                self.name
            ))
            .await?;
        drop(client);
        connection.await??;
        Ok(())
    }

    async fn remove_topics(&self) -> anyhow::Result<()> {
        let config = self.kafka()?;
        let admin: AdminClient<DefaultClientContext> =
            kafka::settings::admin_config(&config).create()?;
        let topics = kafka::topics::declared(&config.namespace);
        let names: Vec<&str> = topics.iter().map(|topic| topic.name.as_str()).collect();
        let options = AdminOptions::new()
            .operation_timeout(Some(KAFKA_TIMEOUT))
            .request_timeout(Some(KAFKA_TIMEOUT));
        // A topic or group that is not there is as good as removed.
        let _topics = admin.delete_topics(&names, &options).await?;
        let group = config.namespace.fanout_posts_group();
        let _groups = admin.delete_groups(&[&group], &options).await?;
        Ok(())
    }

    /// Where its topics are.
    pub(crate) fn kafka(&self) -> anyhow::Result<KafkaConfig> {
        let brokers = self.setting("TIDELINE_KAFKA__BROKERS");
        Ok(KafkaConfig::new(brokers, &self.name, 1)?)
    }
}

/// The file that remembers which runs have left something on the servers.
#[derive(Clone, Debug)]
pub(crate) struct Remembered(PathBuf);

impl Remembered {
    /// The file at this place; it need not exist.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Removes what earlier runs left.
    pub(crate) async fn remove_all(&self, servers: &[(String, String)]) -> anyhow::Result<()> {
        for name in self.names()? {
            let deployment = Deployment {
                name: name.clone(),
                servers: servers.to_vec(),
            };
            deployment
                .remove()
                .await
                .with_context(|| format!("removing what the run {name} left"))?;
            self.forget(&name)?;
        }
        Ok(())
    }

    /// Notes a run before it makes anything.
    pub(crate) fn note(&self, name: &str) -> anyhow::Result<()> {
        let mut names = self.names()?;
        names.push(name.to_owned());
        self.write(&names)
    }

    /// Forgets a run of which nothing is left.
    pub(crate) fn forget(&self, name: &str) -> anyhow::Result<()> {
        let mut names = self.names()?;
        names.retain(|known| known != name);
        self.write(&names)
    }

    fn names(&self) -> anyhow::Result<Vec<String>> {
        match fs::read_to_string(&self.0) {
            Ok(text) => {
                let names: Vec<String> = text.lines().map(str::to_owned).collect();
                if let Some(strange) = names.iter().find(|name| !ours(name)) {
                    bail!(
                        "{} names {strange:?}, which is no run of the demo",
                        self.0.display()
                    );
                }
                Ok(names)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error).with_context(|| format!("reading {}", self.0.display())),
        }
    }

    fn write(&self, names: &[String]) -> anyhow::Result<()> {
        let text: String = names.iter().map(|name| format!("{name}\n")).collect();
        fs::write(&self.0, text).with_context(|| format!("writing {}", self.0.display()))
    }
}

/// Whether a name can only be one that [`Deployment::fresh`] made.
fn ours(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_demos_are_ever_removed() {
        let rows = [
            ("tideline_demo_19a", true),
            ("tideline", false),
            ("tideline_demo_", false),
            ("tideline_demo_x;", false),
        ];
        for (name, expected) in rows {
            assert_eq!(ours(name), expected, "{name}");
        }
    }

    #[test]
    fn runs_are_remembered_until_they_are_forgotten() {
        let path = std::env::temp_dir().join(format!("tideline-demo-runs-{}", std::process::id()));
        let file = Remembered::at(path.clone());
        assert!(file.names().unwrap().is_empty());
        file.note("tideline_demo_1").unwrap();
        file.note("tideline_demo_2").unwrap();
        file.forget("tideline_demo_1").unwrap();
        assert_eq!(file.names().unwrap(), ["tideline_demo_2"]);
        fs::write(&path, "tideline\n").unwrap();
        assert!(file.names().is_err());
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_run_overrides_only_its_own_names() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let servers = vec![
            pair(
                "TIDELINE_POSTGRES__URL",
                "postgresql://postgres@127.0.0.1:1/tideline",
            ),
            pair("TIDELINE_KAFKA__BROKERS", "127.0.0.1:2"),
        ];
        let run = Deployment {
            name: "tideline_demo_1".into(),
            servers,
        };
        let env = run.env();
        let get = |key: &str| {
            let found: Vec<_> = env
                .iter()
                .filter(|(name, _)| name == key)
                .map(|(_, value)| value.as_str())
                .collect();
            assert_eq!(found.len(), 1, "{key}");
            found[0]
        };
        assert_eq!(
            get("TIDELINE_POSTGRES__URL"),
            "postgresql://postgres@127.0.0.1:1/tideline_demo_1"
        );
        assert_eq!(get("TIDELINE_KAFKA__BROKERS"), "127.0.0.1:2");
        assert_eq!(get("TIDELINE_POSTGRES__SLOT"), "tideline_demo_1_relay");
    }
}
