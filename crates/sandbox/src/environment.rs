//! The services' configuration for one instance: `TIDELINE_…` pairs and the
//! sourceable file that holds them.

use std::path::Path;

use crate::ports::Ports;

/// Every address of the instance, plus what only a single-node set of servers needs.
pub(crate) fn pairs(ports: Ports, secret_file: &Path) -> Vec<(String, String)> {
    let local = |port: u16| format!("127.0.0.1:{port}");
    let postgres = format!(
        "postgresql://postgres@127.0.0.1:{}/tideline",
        ports.postgres()
    );
    [
        ("TIDELINE_POSTGRES__URL", postgres),
        ("TIDELINE_KAFKA__BROKERS", local(ports.kafka())),
        ("TIDELINE_KAFKA__NAMESPACE", "tideline".to_owned()),
        ("TIDELINE_KAFKA__REPLICATION_FACTOR", "1".to_owned()),
        ("TIDELINE_CQL__NODES", local(ports.cql())),
        ("TIDELINE_CQL__KEYSPACE", "tideline".to_owned()),
        ("TIDELINE_CQL__REPLICATION_FACTOR", "1".to_owned()),
        (
            "TIDELINE_AUTH__SECRET_FILE",
            secret_file.display().to_string(),
        ),
        ("TIDELINE_WRITE_API__LISTEN", local(ports.write_api())),
        ("TIDELINE_WRITE_API__ADMIN", local(ports.write_api_admin())),
        ("TIDELINE_RELAY__ADMIN", local(ports.relay_admin())),
        ("TIDELINE_FANOUT__ADMIN", local(ports.fanout_admin())),
        ("TIDELINE_READ_API__LISTEN", local(ports.read_api())),
        ("TIDELINE_READ_API__ADMIN", local(ports.read_api_admin())),
        ("TIDELINE_SWEEP__ADMIN", local(ports.sweep_admin())),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect()
}

/// The pairs as a file that any POSIX shell can source.
pub(crate) fn render(pairs: &[(String, String)]) -> String {
    let mut text = String::from("# Written by ./x up. Source it: . target/sandbox/env\n");
    for (key, value) in pairs {
        text.push_str(&format!("export {key}={}\n", quote(value)));
    }
    text
}

/// Quotes a value for the shell when it holds anything but harmless characters.
fn quote(value: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "_-./:@,+%".contains(c);
    if !value.is_empty() && value.chars().all(harmless) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_there() {
        let pairs = pairs(Ports::preferred("sandbox"), Path::new("/t/auth-secret"));
        let get = |key: &str| {
            pairs
                .iter()
                .find(|(k, _)| k == key)
                .map(|(_, v)| v.as_str())
                .unwrap_or_else(|| panic!("{key} is missing"))
        };
        assert_eq!(
            get("TIDELINE_POSTGRES__URL"),
            "postgresql://postgres@127.0.0.1:17400/tideline"
        );
        assert_eq!(get("TIDELINE_KAFKA__BROKERS"), "127.0.0.1:17401");
        assert_eq!(get("TIDELINE_CQL__NODES"), "127.0.0.1:17403");
        assert_eq!(get("TIDELINE_WRITE_API__LISTEN"), "127.0.0.1:17408");
        assert_eq!(get("TIDELINE_READ_API__LISTEN"), "127.0.0.1:17409");
        assert_eq!(get("TIDELINE_WRITE_API__ADMIN"), "127.0.0.1:17410");
        assert_eq!(get("TIDELINE_RELAY__ADMIN"), "127.0.0.1:17411");
        assert_eq!(get("TIDELINE_FANOUT__ADMIN"), "127.0.0.1:17412");
        assert_eq!(get("TIDELINE_READ_API__ADMIN"), "127.0.0.1:17413");
        assert_eq!(get("TIDELINE_SWEEP__ADMIN"), "127.0.0.1:17414");
        assert_eq!(get("TIDELINE_AUTH__SECRET_FILE"), "/t/auth-secret");
    }

    #[test]
    fn values_with_blanks_and_quotes_are_quoted() {
        let pairs = [
            ("A".to_owned(), "it's here".to_owned()),
            ("B".to_owned(), "127.0.0.1:1".to_owned()),
        ];
        let text = render(&pairs);
        assert!(text.contains("export A='it'\\''s here'\n"), "{text}");
        assert!(text.contains("export B=127.0.0.1:1\n"), "{text}");
    }
}
