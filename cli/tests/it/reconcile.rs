//! `tideline reconcile`: each kind of difference planted, named, and repaired.

use database::dead_letters::{self, DeadLetter};
use events::{EventId, PostId, Stage as LedgerStage, UserId};
use serde_json::Value;
use timeline_store::TimelineStore as _;

use crate::stage::{Said, Stage};

const RANGE: [&str; 5] = ["reconcile", "--since", "1h", "--until", "0s"];

fn reconcile(stage: &Stage, more: &[&str]) -> Said {
    stage.tideline(&[&RANGE, more].concat())
}

/// What was found of a kind.
fn found<'a>(report: &'a Value, kind: &str) -> &'a Value {
    let differences = report["differences"].as_array().unwrap();
    let found = differences.iter().find(|found| found["kind"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {report:#}"))
}

/// The kinds that were found, each with its count.
fn kinds(report: &Value) -> Vec<(&str, u64)> {
    let differences = report["differences"].as_array().unwrap();
    let kind = |found: &'_ Value| found["kind"].as_str().map(str::to_owned);
    let mut kinds: Vec<_> = differences
        .iter()
        .map(|found| {
            (
                found["kind"].as_str().unwrap(),
                found["count"].as_u64().unwrap(),
            )
        })
        .collect();
    assert!(differences.iter().all(|found| kind(found).is_some()));
    kinds.sort_unstable();
    kinds
}

fn steps(report: &Value, kind: &str) -> String {
    let steps = found(report, kind)["repair"].as_array().unwrap();
    let steps: Vec<&str> = steps.iter().map(|step| step.as_str().unwrap()).collect();
    assert!(!steps.is_empty(), "{kind}");
    steps.join("\n")
}

#[tokio::test]
async fn nothing_differs_where_everything_was_delivered() {
    let stage = Stage::new().await;
    for key in ["a", "b", "c"] {
        let _delivered = stage.delivered(key).await;
    }
    for more in [&[][..], &["--full"], &["--sample", "2"]] {
        let said = reconcile(&stage, more);
        assert_eq!(said.code, Some(0), "{}{}", said.text, said.failure);
        said.has("compared  3 posts, 4 outbox rows");
        said.has("nothing differs");
    }
    let said = reconcile(&stage, &["--full", "--json"]).json();
    assert_eq!(said["looked"]["delivered_posts"], 3);
    assert_eq!(said["looked"]["rows"], 3);
    assert_eq!(kinds(&said), []);
    let sample = reconcile(&stage, &["--sample", "2", "--json"]).json();
    assert_eq!(sample["looked"]["delivered_posts"], 2);
}

#[tokio::test]
async fn the_range_is_that_of_the_question() {
    let stage = Stage::new().await;
    let _unpublished = stage.post("a").await;
    let early = stage.tideline(&["reconcile", "--since", "10m", "--until", "5m", "--full"]);
    assert_eq!(early.code, Some(0), "{}", early.text);
    early.has("compared  0 posts, 0 outbox rows");
    // What is younger than a minute is on its way.
    let default = stage.tideline(&["reconcile", "--since", "10m"]);
    assert_eq!(default.code, Some(0), "{}", default.text);
    let old = stage.tideline(&[
        "reconcile",
        "--since",
        "2025-01-01T00:00:00Z",
        "--until",
        "0s",
    ]);
    assert_eq!(old.code, Some(1), "{}", old.failure);
    old.has("the begin of the oldest outbox day");
    for (since, until) in [("1m", "2m"), ("yesterday", "1m")] {
        let said = stage.tideline(&["reconcile", "--since", since, "--until", until]);
        assert!(matches!(said.code, Some(2 | 64)), "{since} {:?}", said.code);
    }
}

#[tokio::test]
async fn what_was_never_announced_is_named_and_its_statement_announces_it() {
    let stage = Stage::new().await;
    let (post, event) = stage.post("a").await;
    let (other, created) = stage.delivered("b").await;
    let deleted = stage.delete(other.id).await;
    let forget = format!("delete from tideline.outbox where id in ({event}, {deleted})");
    assert_eq!(stage.sql(&forget).await, 2);

    let report = reconcile(&stage, &["--json"]).json();
    assert_eq!(
        kinds(&report),
        [("delete_without_event", 1), ("post_without_event", 1)]
    );
    for (kind, post) in [
        ("post_without_event", post.id),
        ("delete_without_event", other.id),
    ] {
        let example = &found(&report, kind)["examples"][0];
        assert_eq!(example["post"], post.to_string());
        let steps = steps(&report, kind);
        let statement = &steps[steps.find("insert into").unwrap()..];
        assert_eq!(stage.sql(statement).await, 1, "{statement}");
    }
    let report = reconcile(&stage, &["--json"]).json();
    assert_eq!(kinds(&report), [("not_published", 2)], "both are announced");
    let rows = stage
        .client()
        .await
        .query(
            "select type, payload::text from tideline.outbox order by id desc limit 2",
            &[],
        )
        .await
        .unwrap();
    for row in rows {
        let (name, payload): (&str, &str) = (row.get(0), row.get(1));
        let event = events::Event::decode(name, payload.as_bytes()).unwrap();
        assert_eq!(event.partition_key(), stage.author);
    }
    assert!(stage.has(LedgerStage::Delivered, created).await);
}

#[tokio::test]
async fn what_the_sweep_repairs_is_named_with_its_command() {
    let stage = Stage::new().await;
    let (unpublished, first) = stage.post("a").await;
    let (undelivered, second) = stage.post("b").await;
    stage.enter(LedgerStage::Published, second).await;
    let (ghost, third) = stage.post("c").await;
    stage.enter(LedgerStage::Published, third).await;
    let delete = format!("delete from tideline.posts where id = {}", ghost.id);
    assert_eq!(stage.sql(&delete).await, 1);

    let said = reconcile(&stage, &[]);
    assert_eq!(said.code, Some(1));
    let report = reconcile(&stage, &["--json"]).json();
    assert_eq!(
        kinds(&report),
        [
            ("event_without_post", 1),
            ("not_delivered", 1),
            ("not_published", 1)
        ]
    );
    for (kind, event, post, command) in [
        (
            "not_published",
            first,
            unpublished.id,
            format!("tideline-sweep --once --stage published --range {first}..{first}"),
        ),
        (
            "not_delivered",
            second,
            undelivered.id,
            format!("tideline-sweep --once --stage delivered --range {second}..{second}"),
        ),
        (
            "event_without_post",
            third,
            ghost.id,
            format!("tideline-sweep --once --range {third}..{third}"),
        ),
    ] {
        let example = &found(&report, kind)["examples"][0];
        assert_eq!(example["event"], event.to_string());
        assert_eq!(example["post"], post.to_string());
        assert!(steps(&report, kind).contains(&command), "{kind}");
        said.has(&command);
    }

    // Given up, with a reason, they are accounted for.
    for (ledger_stage, event) in [
        ("published", first),
        ("delivered", second),
        ("delivered", third),
    ] {
        let give_up = format!(
            "insert into tideline.discarded (stage, event_id, reason) values ('{ledger_stage}', {event}, 'too_old')"
        );
        assert_eq!(stage.sql(&give_up).await, 1);
    }
    let said = reconcile(&stage, &["--full"]);
    assert_eq!(said.code, Some(0), "{}", said.text);
}

#[tokio::test]
async fn rows_that_the_ledger_claims_are_missing_and_forgetting_makes_them_due() {
    let stage = Stage::new().await;
    let (_, whole) = stage.delivered("whole").await;
    let (post, event) = stage.post("torn").await;
    stage.enter(LedgerStage::Published, event).await;
    stage.deliver(post.id, event).await;
    let (gone, _) = stage.delivered("gone").await;
    let deletion = stage.delete(gone.id).await;
    stage.enter(LedgerStage::Published, deletion).await;
    stage.enter(LedgerStage::Delivered, deletion).await;

    let report = reconcile(&stage, &["--json"]).json();
    assert_eq!(
        kinds(&report),
        [("rows_missing", 1), ("rows_of_deleted", 1)]
    );
    for (kind, event, post) in [
        ("rows_missing", event, post.id),
        ("rows_of_deleted", deletion, gone.id),
    ] {
        let example = &found(&report, kind)["examples"][0];
        assert_eq!(example["event"], event.to_string());
        assert_eq!(example["post"], post.to_string());
        assert_eq!(example["owner"], stage.follower.to_string());
        let steps = steps(&report, kind);
        assert!(steps.contains("--full --repair"), "{steps}");
        assert!(
            steps.contains(&format!("tideline-sweep --once --range {event}..{event}")),
            "{steps}"
        );
    }
    assert!(stage.has(LedgerStage::Delivered, event).await, "only told");

    let said = reconcile(&stage, &["--repair"]);
    assert_eq!(said.code, Some(1), "differences were found");
    said.repaired(1);
    for event in [event, deletion] {
        assert!(!stage.has(LedgerStage::Delivered, event).await);
        assert!(stage.has(LedgerStage::Published, event).await);
    }
    assert!(stage.has(LedgerStage::Delivered, whole).await);
    let report = reconcile(&stage, &["--json"]).json();
    assert_eq!(kinds(&report), [("not_delivered", 2)], "the sweep's now");
}

#[tokio::test]
async fn a_follow_after_the_post_promises_nothing() {
    let stage = Stage::new().await;
    let (post, event) = stage.post("a").await;
    stage.enter(LedgerStage::Published, event).await;
    stage.deliver(post.id, event).await;
    let later = format!(
        "update tideline.follows set edge_us = {}",
        post.created_us.0 + 1
    );
    assert_eq!(stage.sql(&later).await, 1);
    let said = reconcile(&stage, &["--full"]);
    assert_eq!(said.code, Some(0), "{}", said.text);
}

#[tokio::test]
async fn rows_without_a_reason_are_named_and_deleted() {
    let stage = Stage::new().await;
    let (post, _) = stage.delivered("a").await;
    stage.write(stage.stranger, &post).await;
    let mut absent = post.clone();
    absent.id = PostId(post.id.0 + 1);
    stage.write(stage.follower, &absent).await;
    let mut misnamed = stage.delivered("b").await.0;
    misnamed.author = UserId(4_711);
    misnamed.created_us = misnamed.created_us.plus(1);
    stage.write(stage.follower, &misnamed).await;

    for more in [&["--json"][..], &["--json", "--full"]] {
        let report = reconcile(&stage, more).json();
        assert_eq!(kinds(&report), [("rows_unexplained", 3)]);
        let examples = found(&report, "rows_unexplained")["examples"]
            .as_array()
            .unwrap();
        for (owner, post, why) in [
            (stage.stranger, post.id, "never followed"),
            (stage.follower, absent.id, "no such post"),
            (stage.follower, misnamed.id, "names author 4711"),
        ] {
            let told = examples.iter().any(|place| {
                place["owner"] == owner.to_string()
                    && place["post"] == post.to_string()
                    && place["note"]
                        .as_str()
                        .is_some_and(|note| note.contains(why))
            });
            assert!(told, "{why} in {examples:?}");
        }
        assert!(steps(&report, "rows_unexplained").contains("--repair"));
    }
    let said = reconcile(&stage, &["--full", "--repair"]);
    said.repaired(3);
    let mut owners = Vec::new();
    let rows = stage.store.scan(100, |page| owners.extend(page)).await;
    assert_eq!(rows.unwrap(), 1, "{owners:?}");
    // Deleting the row that named another author took the right one with it: it is due again.
    // Where the run had to be made again, the second one has seen that and made the ledger forget.
    let report = reconcile(&stage, &["--json"]).json();
    let found = kinds(&report);
    let forgotten = said.again && found == [("not_delivered", 1)];
    assert!(forgotten || found == [("rows_missing", 1)], "{found:?}");
}

#[tokio::test]
async fn ids_without_a_row_are_named_and_forgotten() {
    let stage = Stage::new().await;
    let (_, first) = stage.delivered("a").await;
    // Drawn and rolled back: a gap among the ids.
    let drawn = "select nextval(pg_get_serial_sequence('tideline.outbox', 'id')) from generate_series(1, 3)";
    let _rows = stage.sql(drawn).await;
    let (_, last) = stage.delivered("b").await;
    let (inside, beyond) = (EventId(first.0 + 2), EventId(last.0 + 70_000));
    stage.enter(LedgerStage::Delivered, inside).await;
    stage.enter(LedgerStage::Published, beyond).await;

    let report = reconcile(&stage, &["--json"]).json();
    assert_eq!(kinds(&report), [("ledger_without_row", 2)]);
    let examples = &found(&report, "ledger_without_row")["examples"];
    assert_eq!(examples[0]["event"], inside.to_string());
    assert_eq!(examples[0]["note"], "in delivered");
    assert_eq!(examples[1]["event"], beyond.to_string());
    assert!(steps(&report, "ledger_without_row").contains("tideline epoch bump"));

    reconcile(&stage, &["--repair"]).repaired(2);
    assert!(!stage.has(LedgerStage::Delivered, inside).await);
    assert!(!stage.has(LedgerStage::Published, beyond).await);
    assert!(stage.has(LedgerStage::Delivered, last).await);
    let said = reconcile(&stage, &["--full"]);
    assert_eq!(said.code, Some(0), "{}", said.text);
}

#[tokio::test]
async fn an_open_dead_letter_is_the_only_difference_of_its_event() {
    let stage = Stage::new().await;
    let (post, event) = stage.post("a").await;
    let letter = |event, offset| DeadLetter {
        stage: LedgerStage::Published,
        event,
        post: Some(post.id),
        topic: "t".into(),
        partition: 0,
        offset,
        reason: "too_large".into(),
    };
    let client = stage.client().await;
    for letter in [letter(Some(event), 1), letter(None, 2)] {
        dead_letters::record(&client, &letter).await.unwrap();
    }
    drop(client);
    let report = reconcile(&stage, &["--json"]).json();
    assert_eq!(kinds(&report), [("dead_letter_open", 2)]);
    let examples = &found(&report, "dead_letter_open")["examples"];
    assert_eq!(examples[0]["event"], event.to_string());
    assert!(steps(&report, "dead_letter_open").contains(&format!("tideline explain {}", post.id)));
    let redriven = "update tideline.dead_letters set state = 'redriven'";
    assert_eq!(stage.sql(redriven).await, 2);
    let report = reconcile(&stage, &["--json"]).json();
    assert_eq!(kinds(&report), [("not_published", 1)], "it is due again");
}

#[tokio::test]
async fn a_ghost_that_was_delivered_is_forgotten_so_that_it_is_discarded() {
    let stage = Stage::new().await;
    let (post, event) = stage.delivered("a").await;
    let delete = format!("delete from tideline.posts where id = {}", post.id);
    assert_eq!(stage.sql(&delete).await, 1);
    let report = reconcile(&stage, &["--json"]).json();
    assert_eq!(
        kinds(&report),
        [("event_without_post", 1), ("rows_unexplained", 1)]
    );
    let note = &found(&report, "event_without_post")["examples"][0]["note"];
    assert_eq!(note, "the ledger calls it delivered");
    let _said = reconcile(&stage, &["--repair"]);
    assert!(!stage.has(LedgerStage::Delivered, event).await);
    let report = reconcile(&stage, &["--json"]).json();
    assert_eq!(kinds(&report), [("event_without_post", 1)]);
}
