//! Where to connect and as whom, from a `postgresql://` URL.
//!
//! Accepts what the SQL pool accepts, so that both can share one URL: options
//! without a meaning here are skipped, unknown ones are refused by name, and
//! everything that would need TLS is refused rather than left out silently.

use std::fmt;
use std::time::Duration;

/// How to reach a server for replication. Starts from [`Self::from_url`]; the
/// public fields may be changed afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicationConfig {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Role; needs REPLICATION.
    pub user: String,
    /// Its password.
    pub password: Option<Password>,
    /// Database that holds the slot.
    pub database: String,
    /// Name in `pg_stat_replication`.
    pub application_name: String,
    /// More settings for the session, as in `PGOPTIONS`.
    pub options: Option<String>,
    /// Limit for opening the socket and logging in together.
    pub connect_timeout: Duration,
    /// Limit for one query, for the start of the stream and for one write.
    pub query_timeout: Duration,
    /// Asks the server for this `wal_sender_timeout` on this connection instead
    /// of its own.
    pub wal_sender_timeout: Option<Duration>,
    /// Largest frame that is accepted: a row must fit.
    pub max_frame_bytes: usize,
}

/// A password. Its debug form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Keeps the text away from logs.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(hidden)")
    }
}

/// A URL that cannot be used. Never shows the URL, which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Another scheme than `postgresql://` or `postgres://`.
    #[error("postgres url does not start with postgresql://")]
    Scheme,
    /// A part that cannot be read.
    #[error("postgres url has no valid {part}")]
    Part {
        /// Which part.
        part: &'static str,
    },
    /// A parameter with a value that cannot be read.
    #[error("postgres url parameter {name} has an invalid value")]
    Value {
        /// The parameter.
        name: String,
    },
    /// A parameter that nobody knows.
    #[error("postgres url parameter {name} is unknown")]
    Unknown {
        /// The parameter.
        name: String,
    },
    /// More than one host: a slot lives on one server.
    #[error("postgres url names several hosts, replication needs exactly one")]
    SeveralHosts,
    /// A Unix socket.
    #[error("postgres url names a unix socket, the replication connection needs tcp")]
    UnixSocket,
    /// The URL insists on encryption.
    #[error("{name}={value}: tls for the replication connection is not built yet")]
    Tls {
        /// The parameter that asks for it.
        name: String,
        /// Its value.
        value: String,
    },
}

impl ReplicationConfig {
    /// Reads `postgresql://user:password@host:port/database?parameter=value`.
    ///
    /// Known parameters: `sslmode`, `connect_timeout` (seconds),
    /// `application_name`, `options`, `user`, `password`, `host`, `port`,
    /// `dbname`. The user defaults to `postgres`, the database to the user's
    /// name, the port to 5432.
    ///
    /// # Errors
    /// When a part is missing or unreadable, or asks for what is not built.
    pub fn from_url(url: &str) -> Result<Self, ConfigError> {
        let rest = url
            .strip_prefix("postgresql://")
            .or_else(|| url.strip_prefix("postgres://"))
            .ok_or(ConfigError::Scheme)?;
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, address) = authority.rsplit_once('@').unwrap_or(("", authority));

        let mut draft = Draft::default();
        draft.login(login)?;
        draft.address(address)?;
        draft.database = non_empty(decode(database, "database")?);
        for parameter in parameters
            .split('&')
            .filter(|parameter| !parameter.is_empty())
        {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let name = decode(name, "parameter")?;
            let value = decode(value, "parameter")
                .map_err(|_| ConfigError::Value { name: name.clone() })?;
            draft.parameter(name, value)?;
        }
        draft.finish()
    }
}

/// A URL as far as it has been read.
#[derive(Default)]
struct Draft {
    host: Option<String>,
    port: Option<u16>,
    user: Option<String>,
    password: Option<Password>,
    database: Option<String>,
    application_name: Option<String>,
    options: Option<String>,
    connect_timeout: Option<Duration>,
}

impl Draft {
    fn login(&mut self, login: &str) -> Result<(), ConfigError> {
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(decode(password, "password")?)),
            None => (login, None),
        };
        self.user = non_empty(decode(user, "user")?);
        self.password = password.map(Password);
        Ok(())
    }

    fn address(&mut self, address: &str) -> Result<(), ConfigError> {
        if address.contains(',') {
            return Err(ConfigError::SeveralHosts);
        }
        // An IPv6 address stands in brackets, because it has colons itself.
        let (host, port) = match address.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest
                    .split_once(']')
                    .ok_or(ConfigError::Part { part: "host" })?;
                match port {
                    "" => (host, None),
                    port => {
                        let port = port.strip_prefix(':');
                        (host, Some(port.ok_or(ConfigError::Part { part: "port" })?))
                    }
                }
            }
            None => match address.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (address, None),
            },
        };
        self.host = non_empty(decode(host, "host")?);
        self.port = port
            .map(|port| number(port).ok_or(ConfigError::Part { part: "port" }))
            .transpose()?;
        Ok(())
    }

    fn parameter(&mut self, name: String, value: String) -> Result<(), ConfigError> {
        match name.as_str() {
            "sslmode" => match value.as_str() {
                "disable" | "allow" | "prefer" => {}
                "require" | "verify-ca" | "verify-full" => {
                    return Err(ConfigError::Tls { name, value });
                }
                _ => return Err(ConfigError::Value { name }),
            },
            "channel_binding" => match value.as_str() {
                "disable" | "prefer" => {}
                // Binds to the certificate of a TLS connection.
                "require" => return Err(ConfigError::Tls { name, value }),
                _ => return Err(ConfigError::Value { name }),
            },
            "connect_timeout" => {
                let seconds = number(&value).ok_or(ConfigError::Value { name })?;
                // As in libpq, 0 stands for no limit; waits here always end.
                self.connect_timeout = (seconds > 0).then(|| Duration::from_secs(seconds));
            }
            "port" => self.port = Some(number(&value).ok_or(ConfigError::Value { name })?),
            "host" => self.host = non_empty(value),
            "user" => self.user = non_empty(value),
            "password" => self.password = Some(Password(value)),
            "dbname" => self.database = non_empty(value),
            "application_name" => self.application_name = non_empty(value),
            "options" => self.options = non_empty(value),
            // Tuning of ordinary SQL connections; this one has its own.
            "target_session_attrs"
            | "load_balance_hosts"
            | "hostaddr"
            | "tcp_user_timeout"
            | "keepalives"
            | "keepalives_idle"
            | "keepalives_interval"
            | "keepalives_retries"
            | "keepalives_count"
            | "sslnegotiation" => {}
            _ => return Err(ConfigError::Unknown { name }),
        }
        Ok(())
    }

    fn finish(self) -> Result<ReplicationConfig, ConfigError> {
        let host = self.host.ok_or(ConfigError::Part { part: "host" })?;
        if host.contains(',') {
            return Err(ConfigError::SeveralHosts);
        }
        if host.starts_with('/') {
            return Err(ConfigError::UnixSocket);
        }
        let user = self.user.unwrap_or_else(|| "postgres".to_owned());
        Ok(ReplicationConfig {
            host,
            port: self.port.unwrap_or(5432),
            database: self.database.unwrap_or_else(|| user.clone()),
            user,
            password: self.password,
            application_name: self
                .application_name
                .unwrap_or_else(|| "tideline".to_owned()),
            options: self.options,
            connect_timeout: self.connect_timeout.unwrap_or(Duration::from_secs(10)),
            query_timeout: Duration::from_secs(30),
            wal_sender_timeout: None,
            max_frame_bytes: 64 * 1024 * 1024,
        })
    }
}

fn non_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Only digits: the number parser would take a plus sign.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

/// Resolves `%2F`. Zero bytes are refused: the start-up message ends strings
/// with them.
fn decode(text: &str, part: &'static str) -> Result<String, ConfigError> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut pieces = text.split('%');
    decoded.extend(pieces.next().unwrap_or_default().bytes());
    for piece in pieces {
        let (digits, rest) = piece
            .split_at_checked(2)
            .ok_or(ConfigError::Part { part })?;
        let hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let byte = u8::from_str_radix(digits, 16).ok().filter(|_| hexadecimal);
        decoded.push(byte.ok_or(ConfigError::Part { part })?);
        decoded.extend(rest.bytes());
    }
    if decoded.contains(&0) {
        return Err(ConfigError::Part { part });
    }
    String::from_utf8(decoded).map_err(|_| ConfigError::Part { part })
}

#[cfg(test)]
mod tests;
