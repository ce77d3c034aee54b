//! The generator is killed: the journal knows everything that reached the server.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use judge::journal_file;

use crate::fake::Fake;

#[tokio::test]
async fn the_journal_survives_sigkill_and_holds_whatever_was_sent() {
    let fake = Fake::start(true).await;
    let folder = std::env::temp_dir().join(testkit::unique("load_crash"));
    std::fs::create_dir_all(&folder).unwrap();
    let secret = folder.join("secret");
    std::fs::write(&secret, "0123456789abcdef0123456789abcdef").unwrap();
    let mut generator = Command::new(env!("CARGO_BIN_EXE_load"))
        .args([
            "steady",
            "--set",
            "graph.users=20",
            "--set",
            "graph.smallest=1",
        ])
        .args(["--set", "posts.arrivals.rate=300", "--duration", "60s"])
        .args(["--write-api", &fake.address, "--read-api", &fake.address])
        .arg("--secret-file")
        .arg(&secret)
        .arg("--out")
        .arg(&folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let path = folder.join(load::JOURNAL);
    testkit::eventually("posts arrive, and answers are in the journal", async || {
        let read = journal_file::read(&path).ok()?;
        let acked = read.journal.posts().iter().filter(|post| post.id.is_some());
        (fake.arrived() >= 200 && acked.count() >= 100).then_some(())
    })
    .await;
    generator.kill().unwrap();
    let status = generator.wait().unwrap();
    assert!(!status.success());
    let read = journal_file::read(&path).unwrap();
    let sent: BTreeSet<&str> = (read.journal.posts().iter())
        .map(|post| post.client_post_id.as_str())
        .collect();
    for key in fake.keys() {
        assert!(
            sent.contains(key.as_str()),
            "{key} was sent and is not in the journal"
        );
    }
    let answered: BTreeSet<i64> = fake.answered().into_iter().collect();
    let acked = read.journal.posts().iter().filter_map(|post| post.id);
    let acked: BTreeSet<i64> = acked.map(|id| id.0).collect();
    assert!(acked.is_subset(&answered));
    // What was answered and is not in the journal was under way when the end came.
    assert!(acked.len() >= 100, "{} of {}", acked.len(), answered.len());
    std::fs::remove_dir_all(folder).unwrap();
}
