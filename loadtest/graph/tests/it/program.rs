//! The program: its exit codes and its last lines.

use std::process::{Command, Output};

use testkit::Deployment;

use crate::loading::list;

fn graph(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_graph"));
    command.args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn wrong_arguments_are_64() {
    for arguments in [
        &["generate"][..],
        &["generate", "--users", "1"],
        &["generate", "--users", "100", "--celebrity", "101"],
        &["load", "-", "--add", "1"],
        &["unknown"],
    ] {
        assert_eq!(graph(arguments).status.code(), Some(64), "{arguments:?}");
    }
    assert_eq!(graph(&["load", "--help"]).status.code(), Some(0));
}

#[tokio::test]
async fn what_is_generated_can_be_loaded() {
    let deployment = Deployment::without_timelines().await;
    let file = list("");
    let path = file.to_str().unwrap();
    let made = graph(&[
        "generate",
        "--users",
        "300",
        "--celebrity",
        "200",
        "--out",
        path,
    ]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let url = deployment.database_url();
    let loaded = graph(&["load", path, "--ids", "--postgres", &url]);
    assert_eq!(loaded.status.code(), Some(0), "{}", text(&loaded.stderr));
    let line = text(&loaded.stdout);
    assert!(line.starts_with("LOADED edges="), "{line}");
    assert!(
        line.contains("duplicates=0 self_follows=0 bad_lines=0 accounts_made=301"),
        "{line}"
    );
    assert!(
        text(&loaded.stderr).contains("edges/s, 100 %"),
        "{}",
        text(&loaded.stderr)
    );
}

#[tokio::test]
async fn bad_lists_missing_lists_and_missing_servers_have_codes_of_their_own() {
    let deployment = Deployment::without_timelines().await;
    let url = deployment.database_url();
    let bad = list("ann bob\nann\n");
    let refused = graph(&["load", bad.to_str().unwrap(), "--postgres", &url]);
    assert_eq!(refused.status.code(), Some(65));
    let words = text(&refused.stderr);
    assert!(
        words.contains("line 2: expected `follower followee`, found 1 field"),
        "{words}"
    );
    let missing = graph(&["load", "/nowhere/list", "--postgres", &url]);
    assert_eq!(missing.status.code(), Some(66), "{}", text(&missing.stderr));
    let nobody = format!("postgresql://postgres@{}/tideline", testkit::free_address());
    let gone = graph(&["load", bad.to_str().unwrap(), "--postgres", &nobody]);
    assert_eq!(gone.status.code(), Some(69), "{}", text(&gone.stderr));
}
