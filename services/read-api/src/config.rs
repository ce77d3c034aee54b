//! The configuration of read-api. The defaults run on the sandbox, but for the token secret.

use http_api::config::Section;
use runtime::config::sections::{Auth, Cql, Log, Postgres, Startup, Timelines};
use serde::{Deserialize, Serialize};
use timeline_store::CqlConfig;

/// All that read-api reads from the tree of all services.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where bodies, own posts and follows are.
    pub postgres: Postgres,
    /// Where timelines are.
    pub cql: Cql,
    /// How far back timelines are shown.
    pub timelines: Timelines,
    /// The secret of the tokens; cursors are signed with a key derived from it.
    pub auth: Auth,
    /// Log level and form.
    pub log: Log,
    /// Start-up budget.
    pub startup: Startup,
    /// Its own section.
    pub read_api: Section,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            postgres: Postgres::default(),
            cql: Cql::default(),
            timelines: Timelines::default(),
            auth: Auth::default(),
            log: Log::default(),
            startup: Startup::default(),
            read_api: Section::at("127.0.0.1:17409", "127.0.0.1:17413"),
        }
    }
}

impl Config {
    /// The settings of the timeline store.
    #[must_use]
    pub fn cql_config(&self) -> CqlConfig {
        CqlConfig::at(&self.cql.nodes, &self.cql.keyspace)
    }
}
