//! The account balances, and says what is missing (D-9).

use database::{account, dead_letters::DeadLetter, delivery_ledger};
use events::{EventId, EventType, Stage};

use crate::{
    fresh::Fresh,
    rows::{self, ids},
};

fn letter(stage: Stage, event: i64) -> DeadLetter {
    DeadLetter {
        stage,
        event: Some(EventId(event)),
        post: None,
        topic: "posts".to_owned(),
        partition: 0,
        offset: event,
        reason: "refused".to_owned(),
    }
}

fn numbers(account: account::Account) -> [u64; 5] {
    let account::Account {
        accepted,
        delivered,
        dead_lettered,
        discarded,
        unaccounted,
    } = account;
    assert_eq!(
        accepted,
        delivered + dead_lettered + discarded + unaccounted
    );
    assert_eq!(account.is_balanced(), unaccounted == 0);
    [accepted, delivered, dead_lettered, discarded, unaccounted]
}

#[tokio::test]
async fn each_row_counts_once_and_missing_ones_are_seen_d9() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    for stage in Stage::ALL {
        let empty = account::of_stage(&client, stage).await.unwrap();
        assert_eq!(numbers(empty), [0; 5]);
    }
    // 20 posts, and 5 follows that only `published` accounts for.
    rows::posts(&fresh, 1, 20).await;
    let follow = EventType::FollowCreatedV1;
    rows::insert(&fresh, 21, 25, follow, "clock_timestamp()").await;
    delivery_ledger::record(&client, Stage::Published, &ids((1..=14).chain(21..=24)), 1)
        .await
        .unwrap();
    // Also ids that no row has: they count nowhere.
    delivery_ledger::record(
        &client,
        Stage::Delivered,
        &ids((1..=10).chain(500..=600)),
        1,
    )
    .await
    .unwrap();
    for (stage, event) in [
        (Stage::Published, 15),
        // Delivered after all: counts as that.
        (Stage::Delivered, 10),
        (Stage::Delivered, 11),
        (Stage::Delivered, 9_000),
    ] {
        database::dead_letters::record(&client, &letter(stage, event))
            .await
            .unwrap();
    }
    database::dead_letters::record(&client, &letter(Stage::Delivered, 12))
        .await
        .unwrap();
    fresh
        .run(
            "update tideline.dead_letters set state = 'redriven' where event_id = 12;
              insert into tideline.discarded (stage, event_id, reason) values
                  ('published', 16, 'too_old'), ('published', 15, 'too_old'),
                  ('delivered', 13, 'no_post'), ('delivered', 17, 'no_post')",
        )
        .await;

    let published = account::of_stage(&client, Stage::Published).await.unwrap();
    // Missing: posts 17 to 20, follow 25.
    assert_eq!(numbers(published), [25, 18, 1, 1, 5]);
    let delivered = account::of_stage(&client, Stage::Delivered).await.unwrap();
    // Letters 11 and 15, discards 13, 16, 17; missing 12, 14, 18, 19, 20.
    assert_eq!(numbers(delivered), [20, 10, 2, 3, 5]);

    delivery_ledger::record(&client, Stage::Delivered, &ids([12, 14, 18, 19, 20]), 1)
        .await
        .unwrap();
    let delivered = account::of_stage(&client, Stage::Delivered).await.unwrap();
    assert_eq!(numbers(delivered), [20, 15, 2, 3, 0]);
    let published = account::of_stage(&client, Stage::Published).await.unwrap();
    assert_eq!(
        numbers(published),
        [25, 21, 1, 1, 2],
        "delivered is published"
    );
    fresh.end().await;
}

#[tokio::test]
async fn ids_that_jumped_are_counted_too_d9() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    for low in [1, 1_999_995, 5_000_000, i64::MAX - 10] {
        rows::posts(&fresh, low, low + 9).await;
    }
    delivery_ledger::record(&client, Stage::Published, &ids(1_999_990..=2_000_001), 1)
        .await
        .unwrap();
    let published = account::of_stage(&client, Stage::Published).await.unwrap();
    assert_eq!(numbers(published), [40, 7, 0, 0, 33]);
    fresh.end().await;
}
