//! Claims: who may send what again (D-10).

use database::{
    claim::{self, Sent},
    dead_letters::DeadLetter,
    delivery_ledger, discarded, posts, redelivery,
};
use events::{EventId, Stage, block_of};

use crate::{
    fresh::Fresh,
    rows::{self, ids},
};

fn events_of(rows: &[claim::ClaimRow]) -> Vec<i64> {
    rows.iter().map(|row| row.event.0).collect()
}

#[tokio::test]
async fn what_a_dispatcher_sends_for_the_first_time_is_in_the_ledger_alone() {
    let fresh = Fresh::migrated().await;
    rows::posts(&fresh, 1, 4).await;
    let mut client = fresh.client().await;
    let claim = claim::begin(&mut client, 0).await.unwrap().unwrap();
    claim
        .commit(Stage::Published, Sent::First(&ids(1..=3)), &[], 1)
        .await
        .unwrap();
    let claim = claim::begin(&mut client, 0).await.unwrap().unwrap();
    let left = claim.rows(Stage::Published, &ids(1..=4)).await.unwrap();
    assert_eq!(events_of(&left), [4]);
    drop(claim);
    let noted = redelivery::of(&client, EventId(2)).await.unwrap();
    assert!(noted.is_empty(), "{noted:?}");
    fresh.end().await;
}

#[tokio::test]
async fn a_row_that_one_sweeper_published_is_never_handed_to_another_d10() {
    let fresh = Fresh::migrated().await;
    rows::posts(&fresh, 1, 10).await;
    let (mut first, mut second) = (fresh.client().await, fresh.client().await);
    let looked = ids(1..=11);

    let claim = claim::begin(&mut first, 0).await.unwrap().unwrap();
    assert!(
        claim::begin(&mut second, 0).await.unwrap().is_none(),
        "one sweeper per block"
    );
    let other = claim::begin(&mut second, 1).await.unwrap().unwrap();
    drop(other);
    // The relay's own entry came late, between the look and the claim.
    let relay = fresh.client().await;
    delivery_ledger::record(&relay, Stage::Published, &ids([4]), 1)
        .await
        .unwrap();
    let found = claim.rows(Stage::Published, &looked).await.unwrap();
    assert_eq!(events_of(&found), [1, 2, 3, 5, 6, 7, 8, 9, 10]);
    let gone = [(EventId(9), "too_old")];
    claim
        .commit(Stage::Published, Sent::Again(&ids(1..=8)), &gone, 1)
        .await
        .unwrap();

    // The second sweeper looked before all that.
    let claim = claim::begin(&mut second, 0).await.unwrap().unwrap();
    let found = claim.rows(Stage::Published, &looked).await.unwrap();
    assert_eq!(events_of(&found), [9, 10]);
    assert_eq!(found[0].discarded.as_deref(), Some("too_old"));
    assert_eq!(found[1].discarded, None);
    drop(claim);
    let sent = redelivery::of(&relay, EventId(3)).await.unwrap();
    assert_eq!(
        sent.iter()
            .map(|sent| (sent.stage, sent.attempts))
            .collect::<Vec<_>>(),
        [(Stage::Published, 1)]
    );
    let given_up = discarded::of(&relay, EventId(9)).await.unwrap();
    assert_eq!(given_up[0].reason, "too_old");
    fresh.end().await;
}

#[tokio::test]
async fn sweepers_at_once_hand_out_each_row_once_d10() {
    let fresh = Fresh::migrated().await;
    rows::posts(&fresh, 1, 200).await;
    let looked = ids(1..=200);
    let sweep = || {
        let (pool, looked) = (fresh.pool.clone(), looked.clone());
        async move {
            let mut sent = Vec::new();
            while sent.len() < 200 {
                let mut client = pool.get().await.unwrap();
                let Some(claim) = claim::begin(&mut client, 0).await.unwrap() else {
                    tokio::task::yield_now().await;
                    continue;
                };
                let rows = claim.rows(Stage::Published, &looked).await.unwrap();
                let some: Vec<EventId> = rows.iter().take(7).map(|row| row.event).collect();
                if some.is_empty() {
                    break;
                }
                claim
                    .commit(Stage::Published, Sent::Again(&some), &[], 1)
                    .await
                    .unwrap();
                sent.extend(some);
            }
            sent
        }
    };
    let (one, other, third) = tokio::join!(sweep(), sweep(), sweep());
    let mut all = [one, other, third].concat();
    all.sort_unstable();
    assert_eq!(all, looked);
    fresh.end().await;
}

#[tokio::test]
async fn a_claim_whose_connection_is_gone_frees_its_block_d10() {
    let fresh = Fresh::migrated().await;
    rows::posts(&fresh, 1, 3).await;
    let mut frozen = fresh.client().await;
    let pid: i32 = frozen
        .query_one("select pg_backend_pid()", &[])
        .await
        .unwrap()
        .get(0);
    let claim = claim::begin(&mut frozen, 0).await.unwrap().unwrap();
    assert_eq!(
        claim
            .rows(Stage::Published, &ids(1..=3))
            .await
            .unwrap()
            .len(),
        3
    );
    // As the server does with a sweeper that is idle in its claim for a minute.
    let ended = fresh
        .client()
        .await
        .query_one("select pg_terminate_backend($1)", &[&pid])
        .await
        .unwrap();
    assert!(ended.get::<_, bool>(0));
    testkit::eventually("the block is free", || {
        let pool = fresh.pool.clone();
        async move {
            let mut client = pool.get().await.unwrap();
            claim::begin(&mut client, 0).await.unwrap().map(drop)
        }
    })
    .await;
    let error = claim
        .commit(Stage::Published, Sent::Again(&ids(1..=3)), &[], 1)
        .await
        .unwrap_err();
    assert_eq!(error.class(), events::Class::Outage, "{error:?}");
    // The claim that was had above is gone once the server has read so.
    let rows = testkit::eventually("the block is free again", async || {
        let mut client = fresh.client().await;
        let claim = claim::begin(&mut client, 0).await.unwrap()?;
        let rows = claim.rows(Stage::Published, &ids(1..=3)).await;
        Some(rows.unwrap().len())
    })
    .await;
    assert_eq!(rows, 3, "nothing was noted");
    fresh.end().await;
}

#[tokio::test]
async fn a_claim_of_an_old_epoch_notes_nothing() {
    let fresh = Fresh::migrated().await;
    rows::posts(&fresh, 1, 3).await;
    let mut client = fresh.client().await;
    let claim = claim::begin(&mut client, 0).await.unwrap().unwrap();
    fresh
        .run("insert into tideline.epoch (epoch, system_id, pg_timeline) values (2, '1', 1)")
        .await;
    let error = claim
        .commit(
            Stage::Published,
            Sent::Again(&ids([1])),
            &[(EventId(2), "no_post")],
            1,
        )
        .await
        .unwrap_err();
    assert!(
        matches!(error, database::Error::OtherEpoch { given: 1, .. }),
        "{error:?}"
    );
    for table in ["redelivery", "discarded", "delivery_ledger"] {
        let count = fresh
            .number(&format!("select count(*) from tideline.{table}"))
            .await;
        assert_eq!(count, 0, "{table}");
    }
    fresh.end().await;
}

#[tokio::test]
async fn a_claimed_row_tells_what_decides_about_it() {
    let fresh = Fresh::migrated().await;
    let author = fresh.users(1).await[0];
    let mut client = fresh.client().await;
    let new = posts::NewPost {
        author,
        client_post_id: "key",
        fingerprint: b"",
        body: "a",
        traceparent: Some("00-trace"),
    };
    let posts::Create::Created(post) = posts::create(&mut client, &new).await.unwrap() else {
        panic!("not made");
    };
    let event = database::outbox::event_of_post(&client, post.id)
        .await
        .unwrap()
        .unwrap();
    // A ghost: the post of this row is not there.
    rows::posts(&fresh, 70_000, 70_001).await;
    let letter = DeadLetter {
        stage: Stage::Published,
        event: Some(EventId(70_000)),
        post: None,
        topic: "posts".to_owned(),
        partition: 0,
        offset: 1,
        reason: "refused".to_owned(),
    };
    database::dead_letters::record(&client, &letter)
        .await
        .unwrap();

    for attempts in 0..2 {
        let claim = claim::begin(&mut client, block_of(event))
            .await
            .unwrap()
            .unwrap();
        let row = claim
            .rows(Stage::Delivered, &[event])
            .await
            .unwrap()
            .remove(0);
        assert_eq!(row.attempts, attempts);
        assert_eq!(row.last_us.is_some(), attempts > 0);
        assert_eq!(row.post_exists, Some(true));
        assert_eq!(row.subject, post.id.to_string());
        assert_eq!(row.partition_key, author.to_string());
        assert_eq!(row.created_us, post.created_us);
        assert!(
            row.created_at_text.ends_with("+00"),
            "{}",
            row.created_at_text
        );
        assert_eq!(row.traceparent.as_deref(), Some("00-trace"));
        assert!(row.payload.contains(&post.id.to_string()));
        assert!(!row.dead_letter_open && row.discarded.is_none());
        claim
            .commit(Stage::Delivered, Sent::Again(&[event]), &[], 1)
            .await
            .unwrap();
    }
    assert!(
        !delivery_ledger::contains(&client, Stage::Delivered, event)
            .await
            .unwrap(),
        "fan-out says what is delivered"
    );
    let claim = claim::begin(&mut client, 1).await.unwrap().unwrap();
    assert_eq!(claim.block(), 1);
    let found = claim
        .rows(Stage::Delivered, &ids([70_001, 70_000]))
        .await
        .unwrap();
    assert_eq!(events_of(&found), [70_000, 70_001]);
    assert!(
        found[0].dead_letter_open,
        "never published is never delivered"
    );
    assert!(!found[1].dead_letter_open);
    assert_eq!(found[0].post_exists, Some(false));
    fresh.end().await;
}

/// Rows that lie close together are walked, rows that lie far apart looked up: the same rows.
#[tokio::test]
async fn rows_are_found_however_they_lie() {
    let fresh = Fresh::migrated().await;
    rows::posts(&fresh, 1, 40).await;
    rows::posts(&fresh, 30_000, 30_001).await;
    rows::posts(&fresh, 65_000, 65_001).await;
    let mut client = fresh.client().await;
    let other = fresh.client().await;
    delivery_ledger::record(&other, Stage::Published, &ids(10..=20), 1)
        .await
        .unwrap();
    fresh
        .run("insert into tideline.redelivery (stage, event_id, attempts) values ('published', 30000, 3), ('published', 5, 1), ('delivered', 6, 4)")
        .await;
    let claim = claim::begin(&mut client, 0).await.unwrap().unwrap();
    let near = claim.rows(Stage::Published, &ids(1..=100)).await.unwrap();
    let expected: Vec<i64> = (1..10).chain(21..=40).collect();
    assert_eq!(events_of(&near), expected);
    let attempts: Vec<u32> = near.iter().take(6).map(|row| row.attempts).collect();
    assert_eq!(attempts, [0, 0, 0, 0, 1, 0], "of this stage only");
    let far = claim
        .rows(Stage::Published, &ids([65_000, 3, 15, 30_000, 40_000, 3]))
        .await
        .unwrap();
    assert_eq!(events_of(&far), [3, 30_000, 65_000]);
    assert_eq!((far[1].attempts, far[1].last_us.is_some()), (3, true));
    drop(claim);
    fresh.end().await;
}

#[tokio::test]
async fn a_dead_letter_counts_when_its_claim_is_committed() {
    let fresh = Fresh::migrated().await;
    rows::posts(&fresh, 1, 3).await;
    let mut client = fresh.client().await;
    let letter = DeadLetter {
        stage: Stage::Published,
        event: Some(EventId(2)),
        post: None,
        topic: "posts.dlq".to_owned(),
        partition: 0,
        offset: 7,
        reason: "oversize".to_owned(),
    };
    let open = async |expected: i64| {
        let count = fresh
            .number("select count(*) from tideline.dead_letters where state = 'open'")
            .await;
        assert_eq!(count, expected);
    };
    let claim = claim::begin(&mut client, 0).await.unwrap().unwrap();
    claim.dead_letter(&letter).await.unwrap();
    drop(claim);
    open(0).await;
    let claim = claim::begin(&mut client, 0).await.unwrap().unwrap();
    claim.dead_letter(&letter).await.unwrap();
    claim
        .commit(Stage::Published, Sent::Again(&ids([1])), &[], 1)
        .await
        .unwrap();
    open(1).await;
    let claim = claim::begin(&mut client, 0).await.unwrap().unwrap();
    let rows = claim.rows(Stage::Published, &ids(1..=2)).await.unwrap();
    assert_eq!(events_of(&rows), [2]);
    assert!(rows[0].dead_letter_open);
    drop(claim);
    fresh.end().await;
}
