//! Simple queries on the replication connection.

use std::time::Duration;

use replication::{Connection, ReplicationError, Step};

use crate::cluster::shared;

#[tokio::test]
async fn the_system_identifies_itself() {
    let mut connection = shared().connect().await;
    let system = connection.identify_system().await.unwrap();
    assert_eq!(system.timeline, 1);
    assert_eq!(system.database, "postgres");
    assert!(system.system_id > 0 && !system.flushed.is_zero());
    assert!(connection.parameter("server_version").is_some());
    assert_eq!(connection.parameter("client_encoding"), Some("UTF8"));
}

#[tokio::test]
async fn rows_are_read_by_name() {
    let mut connection = shared().connect().await;
    let sql = "SELECT n AS id, nullif(n, 2) AS maybe, 'wave \u{1F30A}' AS text \
               FROM generate_series(1, 2) n; SELECT 3 AS id";
    let rows = connection.query(sql).await.unwrap();
    let ids: Vec<_> = rows.iter().map(|row| row.get("id")).collect();
    assert_eq!(ids, [Some("1"), Some("2"), Some("3")]);
    assert_eq!(rows[0].get("maybe"), Some("1"));
    assert_eq!(rows[1].get("maybe"), None);
    assert_eq!(rows[1].get("no such column"), None);
    assert_eq!(rows[1].get("text"), Some("wave \u{1F30A}"));
    assert_eq!(rows[0].columns(), ["id", "maybe", "text"]);
    assert_eq!(rows[1].values().len(), 3);
    assert_eq!(connection.query("").await.unwrap(), []);
}

/// Values must not depend on what the server or the role is set to.
#[tokio::test]
async fn the_form_of_values_is_pinned() {
    let mut config = shared().config();
    config.wal_sender_timeout = Some(Duration::from_secs(7));
    config.options = Some("-c work_mem=1MB".to_owned());
    let mut connection = Connection::connect(&config).await.unwrap();
    for (setting, value) in [
        ("TimeZone", "UTC"),
        ("DateStyle", "ISO, MDY"),
        ("IntervalStyle", "postgres"),
        ("bytea_output", "hex"),
        ("client_encoding", "UTF8"),
        ("application_name", "tideline"),
        ("wal_sender_timeout", "7s"),
        ("work_mem", "1MB"),
    ] {
        assert_eq!(connection.show(setting).await.unwrap(), value, "{setting}");
    }
    let error = connection.show("x; DROP TABLE y").await.unwrap_err();
    assert!(
        matches!(
            error,
            ReplicationError::Name {
                what: "setting",
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn an_error_of_the_server_leaves_the_connection_usable() {
    let mut connection = shared().connect().await;
    let error = connection.query("SELECT 1/0").await.unwrap_err();
    assert_eq!(error.sqlstate(), Some("22012"));
    assert!(matches!(
        error,
        ReplicationError::Server {
            step: Step::Query,
            ..
        }
    ));
    assert_eq!(connection.show("TimeZone").await.unwrap(), "UTC");
}

#[tokio::test]
async fn a_query_that_takes_too_long_uses_the_connection_up() {
    let mut connection = shared().connect().await;
    let slow = connection
        .query_within("SELECT pg_sleep(30)", Duration::from_millis(50))
        .await;
    assert!(
        matches!(
            slow,
            Err(ReplicationError::Timeout {
                step: Step::Query,
                ..
            })
        ),
        "{slow:?}"
    );
    let next = connection.query("SELECT 1").await;
    assert!(
        matches!(next, Err(ReplicationError::Unfinished)),
        "{next:?}"
    );
    let start = connection.start("slot", "publication").await;
    assert!(matches!(start, Err(ReplicationError::Unfinished)));
}

#[tokio::test]
async fn answers_are_bounded() {
    let mut connection = shared().connect().await;
    let many = connection.query("SELECT generate_series(1, 10001)").await;
    assert!(matches!(
        many,
        Err(ReplicationError::TooManyRows { limit: 10_000 })
    ));
}
