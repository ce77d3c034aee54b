//! Starting an epoch after a failover or a restore.

use database::{
    delivery_ledger,
    epoch::{self, Begin, ServerIdentity},
    posts, relay_position,
};
use events::{EventType, IdRange, Stage};

use crate::{
    fresh::Fresh,
    rows::{self, ids, ranges},
};

fn promoted(here: &ServerIdentity) -> ServerIdentity {
    ServerIdentity {
        pg_timeline: here.pg_timeline + 1,
        ..here.clone()
    }
}

#[tokio::test]
async fn the_server_says_who_it_is_and_the_first_epoch_agrees() {
    let fresh = Fresh::migrated().await;
    let mut client = fresh.client().await;
    let here = epoch::here(&client).await.unwrap();
    let first = epoch::current(&client).await.unwrap();
    assert!(!here.in_recovery);
    assert_eq!(
        (&here.system_id, here.pg_timeline),
        (&first.system_id, first.pg_timeline)
    );
    assert_eq!(
        epoch::begin(&mut client, &here).await.unwrap(),
        Begin::AlreadyBegun(1)
    );
    fresh.end().await;
}

#[tokio::test]
async fn a_failover_doubts_the_last_hour_in_every_stage_and_raises_the_ids() {
    let fresh = Fresh::migrated().await;
    let mut client = fresh.client().await;
    let kind = EventType::PostCreatedV1;
    let ago = |minutes| format!("clock_timestamp() - {minutes} * interval '1 minute'");
    rows::insert(&fresh, 1, 10, kind, &ago(180)).await;
    rows::insert(&fresh, 11, 20, kind, &ago(100)).await;
    rows::insert(&fresh, 21, 30, kind, &ago(50)).await;
    // A transaction that was open for long: a low id, a late row.
    rows::insert(&fresh, 70_000, 70_001, kind, &ago(100)).await;
    delivery_ledger::record(
        &client,
        Stage::Published,
        // The last two are of rows that this server never had.
        &ids((1..=30).chain([70_000, 70_001, 70_002, 70_003])),
        1,
    )
    .await
    .unwrap();
    delivery_ledger::record(&client, Stage::Delivered, &ids((1..=25).chain([70_000])), 1)
        .await
        .unwrap();
    // The old server was last heard of 45 minutes ago, by the relay; the ledger's rows are older.
    fresh
        .run(
            "update tideline.delivery_ledger set recorded_at = recorded_at - interval '80 minutes';
              update tideline.epoch set started_at = started_at - interval '1 day'",
        )
        .await;
    let here = epoch::here(&client).await.unwrap();
    let position = relay_position::Position {
        slot: fresh.slot.clone(),
        system_id: here.system_id.clone(),
        pg_timeline: here.pg_timeline,
        confirmed_lsn: 1,
    };
    relay_position::set(&client, &position).await.unwrap();
    fresh
        .run("update tideline.relay_position set updated_at = updated_at - interval '45 minutes'")
        .await;

    // Made within an hour before that: 11 to 30 and the late ones; and all above.
    let begun = epoch::begin(&mut client, &promoted(&here)).await.unwrap();
    let Begin::Begun(begun) = begun else {
        panic!("{begun:?}");
    };
    assert_eq!(begun.epoch, 2);
    assert_eq!(begun.doubted, (20 + 2 + 2) + (15 + 1));
    for stage in Stage::ALL {
        let left = delivery_ledger::ranges(&client, stage, IdRange::ALL)
            .await
            .unwrap();
        assert_eq!(left, ranges(&[(1, 11)]), "{stage:?}");
    }
    let current = epoch::current(&client).await.unwrap();
    assert_eq!(
        (current.epoch, current.pg_timeline),
        (2, here.pg_timeline + 1)
    );
    assert!(matches!(
        delivery_ledger::record(&client, Stage::Published, &ids([11]), 1).await,
        Err(database::Error::OtherEpoch {
            given: 1,
            current: 2
        })
    ));
    delivery_ledger::record(&client, Stage::Published, &ids([11]), 2)
        .await
        .unwrap();
    assert_eq!(
        epoch::begin(&mut client, &promoted(&here)).await.unwrap(),
        Begin::AlreadyBegun(2)
    );

    let author = fresh.users(1).await[0];
    let new = posts::NewPost {
        author,
        client_post_id: "key",
        fingerprint: b"",
        body: "a",
        traceparent: None,
    };
    posts::create(&mut client, &new).await.unwrap();
    let highest = fresh.number("select max(id) from tideline.outbox").await;
    assert!(highest > 1_070_000, "{highest}");
    fresh.end().await;
}

#[tokio::test]
async fn one_of_several_begins_the_epoch() {
    let fresh = Fresh::migrated().await;
    let server = promoted(&epoch::here(&fresh.client().await).await.unwrap());
    let begin = || {
        let (pool, server) = (fresh.pool.clone(), server.clone());
        async move {
            let mut client = pool.get().await.unwrap();
            epoch::begin(&mut client, &server).await.unwrap()
        }
    };
    let (one, other, third) = tokio::join!(begin(), begin(), begin());
    let begun = [one, other, third]
        .iter()
        .filter(|outcome| matches!(outcome, Begin::Begun(_)))
        .count();
    assert_eq!(begun, 1);
    assert_eq!(fresh.number("select count(*) from tideline.epoch").await, 2);
    fresh.end().await;
}

#[tokio::test]
async fn an_operator_bumps_the_epoch_and_the_ids_as_far_as_said() {
    let fresh = Fresh::migrated().await;
    let mut client = fresh.client().await;
    rows::posts(&fresh, 1, 5).await;
    delivery_ledger::record(&client, Stage::Published, &ids(1..=5), 1)
        .await
        .unwrap();
    let begun = epoch::bump(&mut client, 50_000_000).await.unwrap();
    assert_eq!((begun.epoch, begun.doubted), (2, 5));
    let next = fresh
        .number("select nextval(pg_get_serial_sequence('tideline.outbox', 'id'))")
        .await;
    assert!((50_000_000..50_000_100).contains(&next), "{next}");
    let here = epoch::here(&client).await.unwrap();
    let current = epoch::current(&client).await.unwrap();
    assert_eq!(current.system_id, here.system_id);
    fresh.end().await;
}
