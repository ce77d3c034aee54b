//! What was written is what is read, also after a crash.

use std::{fs, path::PathBuf};

use super::*;
use crate::{Change, Claim};

/// A path of its own that nobody has made.
fn path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("journal-{}-{name}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

const AUTHOR: UserId = UserId(5);

/// A post with a graph, a deletion, and both kinds of changes of edges.
fn written(path: &std::path::Path) -> JournalWriter {
    let writer = JournalWriter::create(path).unwrap();
    writer.users(UserId(1)..=UserId(9)).unwrap();
    writer.follows(AUTHOR, &[UserId(1), UserId(2)]).unwrap();
    let kept = writer.post_sent(AUTHOR, "kept \"key\"").unwrap();
    let edge = writer
        .edge_sent(Change::Unfollow, UserId(2), AUTHOR)
        .unwrap();
    writer.post_acked(kept, PostId(100)).unwrap();
    writer.edge_acked(edge).unwrap();
    let deleted = writer.post_sent(AUTHOR, "deleted").unwrap();
    writer.post_acked(deleted, PostId(200)).unwrap();
    writer.post_acked(deleted, PostId(201)).unwrap();
    writer.delete_sent(deleted).unwrap();
    writer.delete_acked(deleted).unwrap();
    writer.edge_sent(Change::Follow, UserId(3), AUTHOR).unwrap();
    writer
}

#[test]
fn what_was_written_is_read() {
    let path = path("whole");
    let writer = written(&path);
    writer.end().unwrap();
    let file = read(&path).unwrap();
    assert_eq!(file.notes, Vec::<String>::new());
    let journal = file.journal;
    let [kept, deleted] = journal.posts() else {
        panic!("two posts")
    };
    assert_eq!(
        (kept.client_post_id.as_str(), kept.id),
        ("kept \"key\"", Some(PostId(100)))
    );
    assert!(kept.sent < kept.acked.unwrap() && kept.acked.unwrap() < deleted.sent);
    assert_eq!(deleted.other_ids, [PostId(201)]);
    assert!(deleted.delete_acked > deleted.delete_sent);
    let claims = [1, 2, 3, 4].map(|owner| journal.claim(AUTHOR, UserId(owner), deleted.sent));
    assert_eq!(
        claims,
        [Claim::Must, Claim::MustNot, Claim::May, Claim::MustNot]
    );
    assert!(journal.knows(UserId(9)) && !journal.knows(UserId(10)));
}

#[test]
fn a_torn_last_line_is_dropped_and_told_wherever_it_was_torn() {
    let whole = path("to-be-torn");
    drop(written(&whole));
    let text = fs::read(&whole).unwrap();
    let last = text[..text.len() - 1]
        .iter()
        .rposition(|&byte| byte == b'\n')
        .unwrap()
        + 1;
    for length in last + 1..text.len() {
        let torn = path("torn");
        fs::write(&torn, &text[..length]).unwrap();
        let file = read(&torn).unwrap();
        assert_eq!(file.notes.len(), 2, "{:?}", file.notes);
        assert!(
            file.notes[0].contains("line 13 of the journal is torn"),
            "{:?}",
            file.notes
        );
        assert!(file.notes[1].contains("no end"), "{:?}", file.notes);
        let claim = file.journal.claim(AUTHOR, UserId(3), u64::MAX);
        assert_eq!(claim, Claim::MustNot, "the torn follow is not there");
    }
}

#[test]
fn a_generated_graph_costs_one_line() {
    let path = path("graph");
    let shape = Shape {
        celebrities: vec![400],
        ..Shape::of(500, 9)
    };
    let writer = JournalWriter::create(&path).unwrap();
    writer.graph(&shape, 1_000).unwrap();
    let author = UserId(1_501);
    let post = writer.post_sent(author, "a").unwrap();
    writer.post_acked(post, PostId(7)).unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 500);
    let journal = read(&path).unwrap().journal;
    assert_eq!(journal.must_have(&journal.posts()[0]).count(), 400);
    assert!(journal.knows(author) && journal.knows(UserId(1_001)));
    assert!(!journal.knows(UserId(1_502)) && !journal.knows(UserId(1_000)));
}

#[test]
fn what_is_no_journal_is_told_with_its_line() {
    let begin = "{\"journal\":{\"version\":1}}\n";
    let rows = [
        ("", "line 0: is empty"),
        ("{\"end\":{}}\n", "line 1: a journal begins"),
        (
            "{\"journal\":{\"version\":2}}\n",
            "line 1: version 2 where 1",
        ),
        ("{}\nx\n", "line 1: is no line"),
        (
            &format!("{begin}{{\"delete\":{{\"op\":1}}}}\n"),
            "line 2: operation 1 was not sent",
        ),
        (
            &format!("{begin}{{\"post\":{{\"op\":4,\"author\":\"1\",\"key\":\"k\"}}}}\n"),
            "operation 4 where 1",
        ),
    ];
    for (text, words) in rows {
        let path = path("bad");
        fs::write(&path, text).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let path = path("twice");
    let _first = JournalWriter::create(&path).unwrap();
    assert!(
        JournalWriter::create(&path).is_err(),
        "a journal is not written over"
    );
}
