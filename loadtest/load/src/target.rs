//! Which deployment is loaded: addresses and the secret, nothing else.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use database::Pool;
use events::{PostId, UserId};
use report::Fact;
use timeline_store::{CqlConfig, CqlTimelines};

use crate::client::{Client, Failure, Tokens};

/// Connections to Postgres: one loads or judges, one reads deliveries.
const CONNECTIONS: usize = 3;

/// Why a run cannot begin.
#[derive(Debug)]
pub enum Unfit {
    /// The call is wrong; nothing was started.
    Usage(anyhow::Error),
    /// Something that is needed does not answer.
    Gone(anyhow::Error),
}

/// Where a deployment is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// `host:port` or a URL of write-api.
    pub write_api: String,
    /// `host:port` or a URL of read-api.
    pub read_api: String,
    /// The file with the secret that signs tokens.
    pub secret_file: PathBuf,
    /// URL of Postgres; none: the APIs alone.
    pub postgres: Option<String>,
    /// Contact points of the CQL store, comma separated.
    pub cql: Option<String>,
    /// The keyspace of the timelines.
    pub keyspace: String,
    /// `host:port` or URLs of the services' metrics.
    pub metrics: Vec<String>,
    /// What is told of it, for the report.
    pub notes: Vec<Fact>,
}

impl Target {
    /// A client, after both APIs have answered it.
    ///
    /// # Errors
    /// [`Unfit`].
    pub async fn client(&self) -> Result<Client, Unfit> {
        let client = self.unproved_client().map_err(Unfit::Usage)?;
        // Nobody has such a post: whoever says so has taken the token.
        let write = client.delete(UserId(1), PostId(1)).await;
        prove("write-api", &self.write_api, write.err())?;
        let read = client.delivery(UserId(1), PostId(1)).await;
        prove("read-api", &self.read_api, read.err())?;
        Ok(client)
    }

    fn unproved_client(&self) -> anyhow::Result<Client> {
        ensure!(
            !self.write_api.is_empty() && !self.read_api.is_empty(),
            "no deployment is named; give --write-api and --read-api, or source target/sandbox/env"
        );
        let name = self.secret_file.display();
        let secret = std::fs::read_to_string(&self.secret_file).with_context(|| {
            format!("reading the token secret {name:?}; --secret-file names it")
        })?;
        let tokens = Tokens::new(secret.trim_end_matches(['\r', '\n']).as_bytes())
            .with_context(|| format!("the token secret in {name}"))?;
        Client::new(base(&self.write_api), base(&self.read_api), tokens)
    }

    /// Connections to Postgres, if its address is known.
    ///
    /// # Errors
    /// [`Unfit`].
    pub async fn pool(&self) -> Result<Option<Pool>, Unfit> {
        let Some(url) = &self.postgres else {
            return Ok(None);
        };
        let pool = Pool::new(url, CONNECTIONS, "tideline-load")
            .context("--postgres")
            .map_err(Unfit::Usage)?;
        let answer = pool.ping().await.context("asking Postgres");
        answer.map(|()| Some(pool)).map_err(Unfit::Gone)
    }

    /// The timeline store, if its address is known.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn timelines(&self) -> anyhow::Result<Option<CqlTimelines>> {
        let Some(nodes) = &self.cql else {
            return Ok(None);
        };
        let config = CqlConfig::at(nodes, &self.keyspace);
        let store = CqlTimelines::connect(&config)
            .await
            .context("connecting to the timeline store")?;
        Ok(Some(store))
    }

    /// Base of read-api.
    pub fn read_base(&self) -> String {
        base(&self.read_api)
    }

    /// Where metrics are read.
    pub fn metric_urls(&self) -> Vec<String> {
        let url = |address: &String| match base(address) {
            whole if whole.ends_with("/metrics") => whole,
            base => format!("{base}/metrics"),
        };
        self.metrics.iter().map(url).collect()
    }
}

/// An address as a URL without a slash at its end.
fn base(address: &str) -> String {
    let address = address.trim_end_matches('/');
    if address.contains("://") {
        address.to_owned()
    } else {
        format!("http://{address}")
    }
}

/// An API that refused the request for its own reasons is there and took the token.
fn prove(api: &str, address: &str, failure: Option<Failure>) -> Result<(), Unfit> {
    match failure {
        None => Ok(()),
        Some(Failure::Refused(status, body)) if status.as_u16() == 401 => {
            Err(Unfit::Usage(anyhow::anyhow!(
                "{api} at {address} does not take our tokens: {body}\n--secret-file has to be the deployment's own"
            )))
        }
        Some(Failure::Refused(..)) => Ok(()),
        Some(failure) => Err(Unfit::Gone(anyhow::anyhow!(
            "{api} at {address}: {failure}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_be_urls() {
        assert_eq!(base("127.0.0.1:1"), "http://127.0.0.1:1");
        assert_eq!(base("https://a.test/"), "https://a.test");
        let target = Target {
            metrics: vec!["h:1".to_owned(), "http://h:2/metrics".to_owned()],
            ..Target::default()
        };
        let urls = target.metric_urls();
        assert_eq!(urls, ["http://h:1/metrics", "http://h:2/metrics"]);
    }
}
