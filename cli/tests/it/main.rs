//! The binary, against the real servers.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod epoch;
mod explain;
mod reconcile;
mod stage;

use std::process::{Command, Output};

use database::Pool;
use http_api::token::{Key, Verifier};

const SECRET: &str = "a secret of at least thirty-two bytes";

fn tideline(arguments: &[&str], environment: &[(String, String)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tideline"));
    command
        .args(arguments)
        .env_clear()
        .envs(environment.iter().map(|(key, value)| (key, value)));
    command.output().unwrap()
}

fn variable(key: &str, value: impl Into<String>) -> (String, String) {
    (key.to_owned(), value.into())
}

#[tokio::test]
async fn migrate_does_what_is_missing_and_then_nothing() {
    let servers = testkit::Servers::get().await;
    let name = testkit::unique("cli");
    let environment = [
        variable("TIDELINE_POSTGRES__URL", servers.postgres_url(&name)),
        variable("TIDELINE_KAFKA__BROKERS", servers.kafka_brokers()),
        variable("TIDELINE_KAFKA__NAMESPACE", &name),
        variable("TIDELINE_CQL__NODES", servers.cql_node()),
        variable("TIDELINE_CQL__KEYSPACE", &name),
        variable("TIDELINE_POSTGRES__SLOT", &name),
        // Another part's option: none of this command's business.
        variable("TIDELINE_RELAY__ADMIN", "127.0.0.1:1"),
    ];
    let output = tideline(&["migrate"], &environment);
    let (said, failed) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(output.status.success(), "{failed}");
    for part in [
        "database created",
        "16 created",
        "epoch 1 begun",
        &format!("slot {name} created"),
        "6 topics created",
    ] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
    let output = tideline(&["migrate"], &environment);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    for part in [
        "schema up to date",
        "0 created, 16 present",
        &format!("slot {name} present"),
        "0 applied",
        "0 topics created",
    ] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }

    let pool = Pool::new(&servers.postgres_url("postgres"), 1, "cli-it").unwrap();
    let client = pool.get().await.unwrap();
    client
        .execute("select pg_drop_replication_slot($1)", &[&name])
        .await
        .unwrap();
    client
        .batch_execute(&format!("drop database {name} with (force)"))
        .await
        .unwrap();
}

#[test]
fn migrate_gives_up_after_the_budget() {
    let environment = [
        variable(
            "TIDELINE_POSTGRES__URL",
            "postgresql://postgres:hidden@127.0.0.1:1/none",
        ),
        variable("TIDELINE_STARTUP__BUDGET", "200ms"),
    ];
    let output = tideline(&["migrate"], &environment);
    let failed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(69), "{failed}");
    assert!(
        failed.contains("postgres") && !failed.contains("hidden"),
        "{failed}"
    );
}

/// Not the words of Postgres about a relation that nobody knows.
#[tokio::test]
async fn a_database_without_the_schema_is_told_with_the_command_that_makes_it() {
    let servers = testkit::Servers::get().await;
    let environment = [variable(
        "TIDELINE_POSTGRES__URL",
        servers.postgres_url("postgres"),
    )];
    for arguments in [
        &["explain", "1"][..],
        &["reconcile", "--since", "1h"],
        &["epoch"],
    ] {
        let output = tideline(arguments, &environment);
        let failed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(69), "{failed}");
        assert!(failed.contains("run `tideline migrate`"), "{failed}");
    }
}

#[test]
fn wrong_configuration_is_told_with_its_place() {
    let output = tideline(&["migrate"], &[variable("TIDELINE_KAFKA__BROKRES", "x")]);
    let failed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(64), "{failed}");
    assert!(
        failed.contains("TIDELINE_KAFKA__BROKRES") && failed.contains("brokers"),
        "{failed}"
    );
    let output = tideline(
        &["migrate"],
        &[variable("TIDELINE_POSTGRES__SLOT", "Not-A-Slot")],
    );
    assert_eq!(output.status.code(), Some(64));
}

#[test]
fn token_is_one_that_the_apis_accept() {
    let environment = [variable("TIDELINE_AUTH__SECRET", SECRET)];
    let verifier = Verifier::new(&Key::new(SECRET.as_bytes()).unwrap());
    for (arguments, admin) in [
        (&["token", "--user", "42"][..], false),
        (&["token", "--user", "42", "--admin", "--ttl", "5m"], true),
    ] {
        let output = tideline(arguments, &environment);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let bearer = verifier
            .verify(String::from_utf8(output.stdout).unwrap().trim())
            .unwrap();
        assert_eq!((bearer.user.0, bearer.admin), (42, admin));
    }
    let output = tideline(&["token", "--user", "42"], &[]);
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("auth.secret"));
}
