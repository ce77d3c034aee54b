//! Payloads that others choke on, and rows that can never be produced.

use testkit::eventually;

use crate::rig::Rig;

/// C47, C44: byte for byte.
#[tokio::test(flavor = "multi_thread")]
async fn payloads_pass_through_unchanged() {
    let rig = Rig::new().await;
    let relay = rig.start().await;
    let payloads = [
        r#"{"wave": "🌊", "kanji": "漢字", "rtl": "שלום עולם"}"#.to_owned(),
        r#"{"lone": "\ud83c", "zero": "\u0000"}"#.to_owned(),
        format!(r#"{{"number": {}, "exponent": 1e999}}"#, "9".repeat(300)),
        r#"  {"spaces" :   "kept"  , "twice": 1, "twice": 2}  "#.to_owned(),
        r#""""#.to_owned(),
        "null".to_owned(),
        format!(r#""{}""#, "x".repeat(1_000_000)),
    ];
    for payload in &payloads {
        rig.insert_payload(payload).await;
    }
    let records = rig.records(&rig.topic("posts.v1"), payloads.len()).await;
    let found: Vec<_> = records
        .into_iter()
        .map(|record| String::from_utf8(record.payload.unwrap()).unwrap())
        .collect();
    assert!(
        found == payloads,
        "one key: one partition, in order, unchanged"
    );
    relay.stop().await;
}

/// C9, C46: one oversized row among 99 good ones.
#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_row_is_kept_apart_and_the_rest_goes_on() {
    let rig = Rig::new().await;
    let relay = rig.start().await;
    let sql =
        "insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload)
         select 'post', n::text, '5', 'tideline.post.created.v1',
            case n when 50 then to_json(repeat('x', 1100000)) else '{}'::json end
         from generate_series(1, 100) n";
    rig.sql.batch_execute(sql).await.unwrap();
    assert_eq!(rig.records(&rig.topic("posts.v1"), 99).await.len(), 99);
    let letters = rig.records(&rig.topic("posts.v1.relay.dlq"), 1).await;
    let letter = &letters[0];
    assert_eq!(letter.headers["ce_subject"], "50");
    assert_eq!(letter.headers["dlq-reason"], "oversize");
    assert_eq!(letter.key.as_deref(), Some(&b"5"[..]));
    assert_eq!(letter.payload, None);
    assert!(
        letter.headers["dlq-original-size"]
            .parse::<usize>()
            .unwrap()
            > 1_100_000
    );
    rig.confirmed_all().await;
    let row = rig
        .sql
        .query_one(
            "select event_id, post_id, reason, record_topic from tideline.dead_letters",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), letter.id());
    assert_eq!(row.get::<_, i64>(1), 50);
    assert_eq!(row.get::<_, &str>(2), "oversize");
    assert_eq!(row.get::<_, &str>(3), rig.topic("posts.v1.relay.dlq"));
    assert!(
        (relay
            .metric("tideline_relay_dead_letters_total{reason=\"oversize\"}")
            .await
            - 1.0)
            .abs()
            < f64::EPSILON
    );
    relay.stop().await;
}

/// C45, C48, and types that nobody knows.
#[tokio::test(flavor = "multi_thread")]
async fn rows_without_key_payload_or_known_type_are_kept_apart() {
    let mut rig = Rig::new().await;
    let relay = rig.start().await;
    rig.sql
        .batch_execute(
            "alter table tideline.outbox alter partition_key drop not null;
             alter table tideline.outbox alter payload drop not null;
             insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload) values
                ('post', '1', null, 'tideline.post.created.v1', '{}'),
                ('post', '2', '', 'tideline.post.created.v1', '{}'),
                ('post', '3', '5', 'tideline.post.created.v1', null),
                ('follow', '4', '5', 'tideline.unheard.of.v1', '{}'),
                ('other', '5', '5', 'tideline.unheard.of.v1', '{}');",
        )
        .await
        .unwrap();
    rig.insert(&["5"]).await;
    let mut reasons: Vec<_> = rig.records(&rig.topic("posts.v1.relay.dlq"), 4).await;
    reasons.sort_by_key(|letter| letter.id());
    let reasons: Vec<_> = reasons
        .iter()
        .map(|letter| letter.headers["dlq-reason"].as_str())
        .collect();
    assert_eq!(reasons, ["no_key", "no_key", "no_payload", "unknown_type"]);
    let follows = rig.records(&rig.topic("follows.v1.relay.dlq"), 1).await;
    assert_eq!(follows[0].headers["ce_subject"], "4");
    assert_eq!(
        rig.records(&rig.topic("posts.v1"), 1).await.len(),
        1,
        "the stream moves on"
    );
    let sql =
        "select count(*) from tideline.dead_letters where stage = 'published' and state = 'open'";
    eventually("five rows", async || {
        (rig.one::<i64>(sql).await == 5).then_some(())
    })
    .await;
    rig.confirmed_all().await;
    relay.stop().await;
}
