//! Getting in, and being refused for the right reason.

use std::time::Duration;

use replication::{AuthError, Connection, Password, ReplicationConfig, ReplicationError, Step};
use tokio::net::TcpListener;

use crate::cluster::shared;

async fn login(login: &str) -> Result<Connection, ReplicationError> {
    let config = ReplicationConfig::from_url(&shared().url(login)).unwrap();
    Connection::connect(&config).await
}

#[tokio::test]
async fn scram_lets_the_right_password_in() {
    let mut connection = login("scram_user:right%3A%20pass%2Fword%20%25")
        .await
        .unwrap();
    let rows = connection
        .query("SELECT current_user::text AS role")
        .await
        .unwrap();
    assert_eq!(rows[0].get("role"), Some("scram_user"));
}

#[tokio::test]
async fn a_wrong_password_is_refused_for_good() {
    let error = login("scram_user:wrong").await.unwrap_err();
    assert_eq!(error.sqlstate(), Some("28P01"));
    assert!(error.is_refused_login());
    assert!(matches!(
        error,
        ReplicationError::Server {
            step: Step::Authenticate,
            ..
        }
    ));
}

#[tokio::test]
async fn a_missing_password_is_named() {
    let error = login("scram_user").await.unwrap_err();
    assert!(
        matches!(error, ReplicationError::Auth(AuthError::NoPassword)),
        "{error}"
    );
    assert!(error.is_refused_login());
}

/// Both would give the password away on an unencrypted line.
#[tokio::test]
async fn md5_and_clear_text_are_refused_by_us() {
    let error = login("md5_user:right").await.unwrap_err();
    assert!(
        matches!(error, ReplicationError::Auth(AuthError::Md5)),
        "{error}"
    );
    let error = login("clear_user:right").await.unwrap_err();
    assert!(
        matches!(error, ReplicationError::Auth(AuthError::ClearText)),
        "{error}"
    );
}

#[tokio::test]
async fn roles_and_databases_that_do_not_exist_are_refused_for_good() {
    let error = login("nobody").await.unwrap_err();
    assert_eq!(error.sqlstate(), Some("28000"));
    assert!(error.is_refused_login());
    let mut config = shared().config();
    config.database = "nowhere".to_owned();
    config.password = Some(Password::new("not asked for"));
    let error = Connection::connect(&config).await.unwrap_err();
    assert_eq!(error.sqlstate(), Some("3D000"));
    assert!(error.is_refused_login());
}

#[tokio::test]
async fn nobody_listening_is_an_outage() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = shared().config();
    config.port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = Connection::connect(&config).await.unwrap_err();
    assert!(matches!(error, ReplicationError::Connect { .. }), "{error}");
    assert!(!error.is_refused_login());
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = shared().config();
    config.port = listener.local_addr().unwrap().port();
    config.connect_timeout = Duration::from_millis(50);
    let error = Connection::connect(&config).await.unwrap_err();
    assert!(
        matches!(
            error,
            ReplicationError::Timeout {
                step: Step::Connect,
                ..
            }
        ),
        "{error}"
    );
}
