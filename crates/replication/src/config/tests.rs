//! URLs as people write them.

use super::*;

fn read(url: &str) -> ReplicationConfig {
    ReplicationConfig::from_url(url).unwrap()
}

#[test]
fn every_part_of_a_url_is_read() {
    let config = read(
        "postgresql://relay:p%40ss%2Fw%25rd@db.example:5433/tide%20line?connect_timeout=3\
         &application_name=tideline-relay&sslmode=prefer&options=-c%20geqo%3Doff&keepalives=1",
    );
    assert_eq!(config.host, "db.example");
    assert_eq!(config.port, 5433);
    assert_eq!(config.user, "relay");
    assert_eq!(config.password, Some(Password::new("p@ss/w%rd")));
    assert_eq!(config.database, "tide line");
    assert_eq!(config.connect_timeout, Duration::from_secs(3));
    assert_eq!(config.application_name, "tideline-relay");
    assert_eq!(config.options.as_deref(), Some("-c geqo=off"));
}

#[test]
fn what_is_left_out_has_a_default() {
    let config = read("postgres://127.0.0.1");
    assert_eq!((config.host.as_str(), config.port), ("127.0.0.1", 5432));
    assert_eq!(
        (config.user.as_str(), config.database.as_str()),
        ("postgres", "postgres")
    );
    assert_eq!(config.password, None);
    assert_eq!(read("postgresql://someone@h/").database, "someone");
    assert_eq!(
        read("postgresql://h/?connect_timeout=0").connect_timeout,
        Duration::from_secs(10)
    );
}

#[test]
fn addresses_with_colons_stand_in_brackets() {
    assert_eq!(read("postgresql://[::1]:17400/x").host, "::1");
    assert_eq!(read("postgresql://[::1]:17400/x").port, 17400);
    assert_eq!(read("postgresql://u@[fe80::2]/x").port, 5432);
}

#[test]
fn parameters_may_replace_the_parts() {
    let config = read("postgresql:///?host=h&port=17&user=u&password=p&dbname=d");
    assert_eq!((config.host.as_str(), config.port), ("h", 17));
    assert_eq!((config.user.as_str(), config.database.as_str()), ("u", "d"));
    assert_eq!(config.password, Some(Password::new("p")));
}

#[test]
fn a_url_that_requires_tls_is_refused_with_the_reason() {
    for mode in ["require", "verify-ca", "verify-full"] {
        let error = ReplicationConfig::from_url(&format!("postgresql://h/x?sslmode={mode}"));
        assert_eq!(
            error.unwrap_err().to_string(),
            format!("sslmode={mode}: tls for the replication connection is not built yet")
        );
    }
    let bound = ReplicationConfig::from_url("postgresql://h/x?channel_binding=require");
    assert!(matches!(bound, Err(ConfigError::Tls { .. })));
}

#[test]
fn what_cannot_be_used_is_refused() {
    let part = |part| ConfigError::Part { part };
    let value = |name: &str| ConfigError::Value {
        name: name.to_owned(),
    };
    for (url, error) in [
        ("mysql://h/x", ConfigError::Scheme),
        ("postgresql:///x", part("host")),
        ("postgresql://h:port/x", part("port")),
        ("postgresql://h:+17/x", part("port")),
        ("postgresql://h:99999/x", part("port")),
        ("postgresql://[::1/x", part("host")),
        ("postgresql://[::1]17/x", part("port")),
        ("postgresql://u:%0@h/x", part("password")),
        ("postgresql://u:%zz@h/x", part("password")),
        ("postgresql://u:%+1@h/x", part("password")),
        ("postgresql://u%00@h/x", part("user")),
        ("postgresql://h/%ff", part("database")),
        ("postgresql://a,b/x", ConfigError::SeveralHosts),
        ("postgresql://x/?host=a,b", ConfigError::SeveralHosts),
        ("postgresql://%2Frun%2Fpg/x", ConfigError::UnixSocket),
        ("postgresql://h/x?sslmode=maybe", value("sslmode")),
        (
            "postgresql://h/x?connect_timeout=soon",
            value("connect_timeout"),
        ),
        ("postgresql://h/x?password=%é", value("password")),
        (
            "postgresql://h/x?sslmod=prefer",
            ConfigError::Unknown {
                name: "sslmod".to_owned(),
            },
        ),
    ] {
        assert_eq!(ReplicationConfig::from_url(url), Err(error), "{url}");
    }
}

#[test]
fn passwords_do_not_show() {
    let config = read("postgresql://relay:secret@h/x");
    assert!(!format!("{config:?}").contains("secret"));
}
