//! The configuration of write-api. The defaults run on the sandbox, but for the token secret.

use http_api::config::Section;
use runtime::config::sections::{Auth, Log, Postgres, Startup};
use serde::{Deserialize, Serialize};

/// All that write-api reads from the tree of all services.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where posts go.
    pub postgres: Postgres,
    /// The secret of the tokens.
    pub auth: Auth,
    /// Log level and form.
    pub log: Log,
    /// Start-up budget.
    pub startup: Startup,
    /// Its own section.
    pub write_api: Section,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            postgres: Postgres::default(),
            auth: Auth::default(),
            log: Log::default(),
            startup: Startup::default(),
            write_api: Section::at("127.0.0.1:17408", "127.0.0.1:17410"),
        }
    }
}

#[cfg(test)]
mod tests {
    use runtime::config::{Sources, load};

    use super::*;

    #[test]
    fn the_environment_of_all_services_is_a_configuration() {
        let variables = [
            ("TIDELINE_WRITE_API__LISTEN", "127.0.0.1:0"),
            ("TIDELINE_WRITE_API__REQUEST_TIMEOUT", "250ms"),
            ("TIDELINE_READ_API__LISTEN", "127.0.0.1:1"),
            ("TIDELINE_CQL__KEYSPACE", "other"),
        ];
        let variables = variables.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let config: Config = load(&Sources::of_variables(variables.to_vec())).unwrap();
        assert_eq!(config.write_api.listen, "127.0.0.1:0");
        assert_eq!(config.write_api.limits(1).request_timeout.as_millis(), 250);
    }
}
