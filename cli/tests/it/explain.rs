//! `tideline explain`.

use database::dead_letters::{self, DeadLetter};
use events::{EventId, PostId, Stage as LedgerStage, envelope::Path};

use crate::stage::{Said, Stage};

fn explain(stage: &Stage, post: PostId) -> Said {
    stage.tideline(&["explain", &post.to_string()])
}

#[tokio::test]
async fn a_delivered_post_has_its_whole_story() {
    let stage = Stage::new().await;
    let (post, event) = stage.delivered("a").await;
    stage.produce(&post, event, Path::Cdc).await;
    stage.produce(&post, event, Path::Sweep).await;
    let (other, another) = stage.post("b").await;
    stage.produce(&other, another, Path::Cdc).await;
    let insert = format!(
        "insert into tideline.redelivery (stage, event_id, attempts) values ('published', {event}, 2)"
    );
    assert_eq!(stage.sql(&insert).await, 1);

    let said = explain(&stage, post.id);
    assert_eq!(said.code, Some(0), "{}", said.failure);
    let topic = format!("{}.posts.v1", stage.deployment.namespace());
    for part in [
        &format!("author       {}", stage.author),
        &format!("event {event}  tideline.post.created.v1"),
        &format!("{topic} partition "),
        "offset 0, by cdc",
        "offset 1, by sweep",
        "published    in the ledger",
        "sent again by the sweep 2 times",
        "delivered    in the ledger",
        "fan-out      audience 1, rows 1",
        "must have it 1 of 1 have it",
    ] {
        said.has(part);
    }
    assert!(!said.text.contains("offset 2, by"), "{}", said.text);

    let json = stage.tideline(&["explain", &post.id.to_string(), "--json", "--full"]);
    let json = json.json();
    assert_eq!(json["post"]["author"], stage.author.to_string());
    let told = &json["events"][0];
    assert_eq!(told["event"], event.to_string());
    assert_eq!(told["copies"]["complete"], true);
    assert_eq!(told["copies"]["found"][1]["path"], "sweep");
    assert_eq!(told["stages"][1]["in_ledger"], true);
    assert_eq!(told["delivery"]["rows"], 1);
    assert_eq!(json["timelines"]["must_have"], 1);
}

#[tokio::test]
async fn a_deleted_post_has_two_events_and_no_audience() {
    let stage = Stage::new().await;
    let (post, _) = stage.delivered("a").await;
    let deletion = stage.delete(post.id).await;
    let said = explain(&stage, post.id);
    said.has("deleted      20");
    said.has(&format!("event {deletion}  tideline.post.deleted.v1"));
    said.has("must have it 0 of 0 have it");
    said.has(&format!("wrong        timelines {}", stage.follower));
}

#[tokio::test]
async fn an_unpublished_post_is_told_with_what_the_sweep_waits_for() {
    let stage = Stage::new().await;
    let (post, event) = stage.post("a").await;
    let said = explain(&stage, post.id);
    assert_eq!(said.code, Some(0), "{}", said.failure);
    said.has("0 copies in");
    said.has(&format!(
        "published    missing; slot {} has confirmed",
        stage.deployment.slot()
    ));
    said.has("inactive; the sweep waits 10m for the relay to come back, and sends it again, attempt 1 then");
    said.has("delivered    missing; it has to be published first");
    said.has("must have it 0 of 1 have it");

    let drop = format!(
        "select pg_drop_replication_slot('{}')",
        stage.deployment.slot()
    );
    let _rows = stage.sql(&drop).await;
    explain(&stage, post.id).has("is absent, so no relay lives: the sweep sends it again");

    // Sent a moment ago: the next attempt is not due.
    let insert = format!(
        "insert into tideline.redelivery (stage, event_id, attempts) values ('published', {event}, 1)"
    );
    assert_eq!(stage.sql(&insert).await, 1);
    explain(&stage, post.id).has("the sweep leaves it: its next attempt is due at 20");
}

#[tokio::test]
async fn an_undelivered_post_is_told_with_the_group_that_has_not_passed() {
    let stage = Stage::new().await;
    let (post, event) = stage.post("a").await;
    stage.enter(LedgerStage::Published, event).await;
    let said = explain(&stage, post.id);
    said.has("published    in the ledger");
    said.has("fan-out has passed everything in its topics: the sweep sends it again, attempt 1");

    stage.produce(&post, event, Path::Cdc).await;
    let group = stage.deployment.namespace().fanout_posts_group();
    explain(&stage, post.id).has(&format!(
        "the sweep waits until group {group} has committed offset 1 in partition"
    ));
}

#[tokio::test]
async fn a_dead_letter_is_left_alone_and_its_record_is_named() {
    let stage = Stage::new().await;
    let (post, event) = stage.post("a").await;
    stage.enter(LedgerStage::Published, event).await;
    let letter = DeadLetter {
        stage: LedgerStage::Delivered,
        event: Some(event),
        post: Some(post.id),
        topic: "t".into(),
        partition: 3,
        offset: 44,
        reason: "payload_malformed".into(),
    };
    let client = stage.client().await;
    dead_letters::record(&client, &letter).await.unwrap();
    drop(client);
    let said = explain(&stage, post.id);
    said.has("delivered    missing; the sweep leaves it: a dead letter of it is open");
    said.has("dead letter, open: payload_malformed; record t partition 3 offset 44");
}

#[tokio::test]
async fn a_ghost_is_known_and_would_be_discarded() {
    let stage = Stage::new().await;
    let (post, event) = stage.post("a").await;
    stage.enter(LedgerStage::Published, event).await;
    let delete = format!("delete from tideline.posts where id = {}", post.id);
    assert_eq!(stage.sql(&delete).await, 1);
    let said = explain(&stage, post.id);
    assert_eq!(said.code, Some(0), "{}", said.failure);
    said.has("gone         no row in posts");
    said.has(&format!("event {event}"));
    said.has("the sweep discards it as no_post");
}

#[tokio::test]
async fn an_unknown_post_is_an_answer() {
    let stage = Stage::new().await;
    let said = explain(&stage, PostId(77));
    assert_eq!(said.code, Some(1));
    said.has("post 77\n  nowhere");
    assert_eq!(said.failure, "");
    let json = stage.tideline(&["explain", "77", "--json"]);
    assert_eq!(json.code, Some(1));
    assert!(json.json()["post"].is_null());
    assert_eq!(stage.tideline(&["explain", "x"]).code, Some(2), "usage");
}

/// D-12: what another server does not tell is no reason to keep silent.
#[tokio::test]
async fn without_kafka_the_rest_is_told() {
    let stage = Stage::new().await;
    let (post, event) = stage.delivered("a").await;
    let said = stage.tideline_with(
        &["explain", &post.id.to_string()],
        &[("TIDELINE_KAFKA__BROKERS", "127.0.0.1:1")],
    );
    assert_eq!(said.code, Some(0), "{}", said.failure);
    said.has("kafka        unknown: asking kafka for metadata");
    said.has("delivered    in the ledger");
    said.has("must have it 1 of 1 have it");
    assert_ne!(event, EventId(0));
}
