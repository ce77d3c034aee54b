//! The program against real servers: each planted fault by its exit code and its last line.

use std::{
    path::PathBuf,
    process::Output,
    time::{Duration, Instant},
};

use events::{Micros, PostId, UserId};
use judge::{Change, JournalWriter};
use testkit::{Deployment, answered};
use timeline_store::{TimelineDelete, TimelineStore};
use tokio::process::Command;

use crate::planted::{Run, second_post_of_one_key};

/// A path that nobody has made.
fn path() -> PathBuf {
    std::env::temp_dir().join(format!("{}.jsonl", testkit::unique("journal")))
}

/// The journal of a run as a generator would have written it. With `exchanged`, the post that has
/// the higher id is the one that was acknowledged first.
fn journal(run: &Run, exchanged: bool) -> PathBuf {
    let path = path();
    let writer = JournalWriter::create(&path).unwrap();
    let (first, last) = (run.author.min(run.stranger), run.author.max(run.stranger));
    writer.users(first..=last).unwrap();
    writer.follows(run.author, &[run.kept, run.left]).unwrap();
    let post = |key: &str, id: PostId| {
        let op = writer.post_sent(run.author, key).unwrap();
        writer.post_acked(op, id).unwrap();
        op
    };
    let leave = || {
        let op = writer
            .edge_sent(Change::Unfollow, run.left, run.author)
            .unwrap();
        writer.edge_acked(op).unwrap();
    };
    let deleted = if exchanged {
        let deleted = post("deleted", run.deleted);
        post("standing", run.standing);
        leave();
        deleted
    } else {
        post("standing", run.standing);
        leave();
        post("deleted", run.deleted)
    };
    writer.delete_sent(deleted).unwrap();
    writer.delete_acked(deleted).unwrap();
    writer.end().unwrap();
    path
}

fn command(deployment: &Deployment, journal: &std::path::Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_judge"));
    command
        .arg(journal)
        .args(["--postgres", &deployment.database_url()])
        .args(["--cql", &deployment.servers().cql_node()])
        .args(["--keyspace", &deployment.keyspace()])
        .env_remove("TIDELINE_READ_API__LISTEN");
    command
}

fn last_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().last().unwrap_or_default().to_owned()
}

/// What the program said. It asks each server once: where one of them has stalled (69), the program
/// runs again, for a minute.
async fn outcome(command: &mut Command) -> Output {
    let begun = Instant::now();
    loop {
        let output = command.output().await.unwrap();
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        if output.status.code() != Some(69) || begun.elapsed() > Duration::from_secs(60) {
            return output;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn judged(run: &Run, exchanged: bool, extra: &[&str]) -> Output {
    let mut command = command(&run.deployment, &journal(run, exchanged));
    outcome(command.args(extra)).await
}

#[tokio::test]
async fn a_clean_run_is_0() {
    let run = Run::clean().await;
    let output = judged(&run, false, &[]).await;
    let line = last_line(&output);
    assert_eq!(output.status.code(), Some(0), "{line}");
    let counts = "JUDGE posts=2 rows=2 lost=0 duplicated=0 foreign=0 resurrected=0 disorder=0 rows_per_minute=";
    assert!(line.starts_with(counts), "{line}");
}

/// One deployment for all: each fault is planted into what the one before it has left.
#[tokio::test]
async fn each_planted_fault_is_1_and_counted_by_its_name() {
    let run = Run::clean().await;
    let expect = async |words: &str, exchanged| {
        let output = judged(&run, exchanged, &[]).await;
        let line = last_line(&output);
        assert_eq!(output.status.code(), Some(1), "{words}: {line}");
        assert!(line.contains(words), "{line}");
    };
    expect(
        "lost=0 duplicated=0 foreign=0 resurrected=0 disorder=1",
        true,
    )
    .await;
    run.write(run.stranger, run.standing).await;
    expect(
        "lost=0 duplicated=0 foreign=1 resurrected=0 disorder=0",
        false,
    )
    .await;
    run.write(run.kept, run.deleted).await;
    expect(
        "lost=0 duplicated=0 foreign=1 resurrected=1 disorder=0",
        false,
    )
    .await;
    let gone = TimelineDelete {
        owner: run.kept,
        post: run.standing,
        write_us: run.post_us.plus(1),
    };
    answered(async || run.store.delete(&[gone]).await).await;
    expect(
        "lost=1 duplicated=0 foreign=1 resurrected=1 disorder=0",
        false,
    )
    .await;
    second_post_of_one_key(&run).await;
    expect(
        "lost=1 duplicated=1 foreign=1 resurrected=1 disorder=0",
        false,
    )
    .await;
    let most = [
        "--max-lost=1",
        "--max-duplicated=1",
        "--max-foreign=1",
        "--max-resurrected=1",
    ];
    let put_up_with = judged(&run, false, &most).await;
    assert_eq!(put_up_with.status.code(), Some(0));
    let one_less = judged(&run, false, &most[1..]).await;
    assert_eq!(one_less.status.code(), Some(1));
}

#[tokio::test]
async fn the_verdict_as_json_names_the_first_of_each_fault() {
    let run = Run::clean().await;
    run.write(run.stranger, run.standing).await;
    let output = judged(&run, false, &["--json"]).await;
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&value["holds"], &value["foreign"]["count"]),
        (&false.into(), &1.into())
    );
    let first = &value["foreign"]["first"][0];
    assert_eq!(first["owner"], run.stranger.to_string());
    assert_eq!(first["post"], run.standing.to_string());
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("JUDGE posts=2 rows=3"), "{words}");
}

#[tokio::test]
async fn wrong_arguments_are_64_and_servers_that_do_not_answer_are_69() {
    let run = Run::clean().await;
    let good = journal(&run, false);
    let nowhere = testkit::free_address();
    let url = format!("postgresql://postgres@{nowhere}/tideline");
    let secret = path();
    std::fs::write(&secret, "a secret of more than thirty-two bytes\n").unwrap();
    let key = secret.to_str().unwrap();
    let cases: [(&[&str], i32); 6] = [
        (&["--unknown"], 64),
        (&["--walks", "3"], 64),
        (&["--read-api", &nowhere, "--token-key", "/nowhere"], 64),
        (&["--postgres", &url], 69),
        (&["--cql", &nowhere], 69),
        (&["--read-api", &nowhere, "--token-key", key], 69),
    ];
    for (extra, code) in cases {
        // A later argument would be a repeated one, so the defaults stand in the environment.
        let mut command = Command::new(env!("CARGO_BIN_EXE_judge"));
        command
            .arg(&good)
            .env("TIDELINE_POSTGRES__URL", run.deployment.database_url())
            .env("TIDELINE_CQL__NODES", run.deployment.servers().cql_node())
            .env("TIDELINE_CQL__KEYSPACE", run.deployment.keyspace())
            .env_remove("TIDELINE_READ_API__LISTEN")
            .env_remove("TIDELINE_AUTH__SECRET_FILE")
            .args(extra);
        let output = command.output().await.unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{extra:?}: {words}");
    }
    let missing = command(&run.deployment, &path()).output().await.unwrap();
    assert_eq!(missing.status.code(), Some(64));
}

/// A real graph, other accounts with posts of their own, and an edge that is changed in the run.
#[tokio::test]
async fn follows_that_only_postgres_has_are_judged_beside_others() {
    let run = Run::clean().await;
    let sql = run.deployment.sql().await;
    let follow =
        "insert into tideline.follows (followee_id, follower_id, edge_us) values ($1, $2, 5)";
    for follower in [run.kept, run.left] {
        sql.execute(follow, &[&run.author.0, &follower.0])
            .await
            .unwrap();
    }
    // A reader of somebody else has a row of a post from before the run.
    let theirs = UserId(run.stranger.0 + 1_000);
    run.write(theirs, PostId(run.standing.0 - 1)).await;
    let path = path();
    let writer = JournalWriter::create(&path).unwrap();
    writer.users(run.author..=run.stranger).unwrap();
    writer.follows_in_postgres(Micros(5)).unwrap();
    writer.beside_others(PostId(run.standing.0 - 1)).unwrap();
    let op = writer.post_sent(run.author, "standing").unwrap();
    writer.post_acked(op, run.standing).unwrap();
    let output = outcome(&mut command(&run.deployment, &path)).await;
    let words = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{words}");
    assert!(
        words.contains("2 of 2 rows that must be there are there"),
        "{words}"
    );
    assert!(words.contains("note: the journal has no end"), "{words}");
    assert!(
        words.contains("JUDGE posts=1 rows=2 "),
        "the row of somebody else is not counted: {words}"
    );
    // Of an edge that came and went, nobody knows whether it was there before.
    let edge = writer
        .edge_sent(Change::Unfollow, run.stranger, run.author)
        .unwrap();
    writer.edge_acked(edge).unwrap();
    run.write(run.stranger, run.standing).await;
    let output = outcome(&mut command(&run.deployment, &path)).await;
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
