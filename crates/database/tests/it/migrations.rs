//! Migrating, once and by several; days; verifying.

use database::{
    Error, Pool,
    migrations::{self, SlotOutcome},
    outbox, relay_position,
};
use events::Class;

use crate::fresh::{Fresh, PUBLICATION};

/// How many there are.
const VERSIONS: i32 = 3;

#[tokio::test]
async fn migrating_twice_changes_nothing() {
    let fresh = Fresh::empty().await;
    assert!(matches!(
        migrations::verify(&fresh.pool).await,
        Err(Error::NotMigrated {
            found: 0,
            expected: VERSIONS
        })
    ));
    let first = fresh.migrate().await;
    assert!(first.database_created && first.publication_created && first.epoch_started);
    assert_eq!(first.applied.len(), VERSIONS as usize);
    assert_eq!((first.days.created, first.days.present), (16, 0));
    assert_eq!(first.slot, SlotOutcome::Created);
    migrations::verify(&fresh.pool).await.unwrap();

    let second = fresh.migrate().await;
    assert!(!second.database_created && !second.publication_created && !second.epoch_started);
    assert!(second.applied.is_empty());
    assert_eq!((second.days.created, second.days.present), (0, 16));
    assert_eq!(second.slot, SlotOutcome::Present);
    fresh.drop_slot().await;
    fresh.end().await;
}

#[tokio::test]
async fn migrations_at_once_run_one_after_the_other() {
    let fresh = Fresh::empty().await;
    let (one, other, third) = tokio::join!(fresh.migrate(), fresh.migrate(), fresh.migrate());
    let reports = [one, other, third];
    assert_eq!(
        reports
            .iter()
            .filter(|report| report.database_created)
            .count(),
        1
    );
    assert_eq!(
        reports
            .iter()
            .map(|report| report.applied.len())
            .sum::<usize>(),
        VERSIONS as usize
    );
    assert_eq!(
        reports
            .iter()
            .filter(|report| report.slot == SlotOutcome::Created)
            .count(),
        1
    );
    assert_eq!(
        reports
            .iter()
            .map(|report| report.days.created)
            .sum::<u32>(),
        16
    );
    fresh.drop_slot().await;
    fresh.end().await;
}

#[tokio::test]
async fn a_lost_slot_is_not_made_anew() {
    let fresh = Fresh::migrated().await;
    let position = relay_position::Position {
        slot: fresh.slot.clone(),
        system_id: "1".to_owned(),
        pg_timeline: 1,
        confirmed_lsn: 0xff_0000_0001,
    };
    let client = fresh.client().await;
    relay_position::set(&client, &position).await.unwrap();
    assert_eq!(
        relay_position::get(&client, &fresh.slot).await.unwrap(),
        Some(position.clone())
    );
    let later = relay_position::Position {
        confirmed_lsn: u64::MAX,
        ..position
    };
    relay_position::set(&client, &later).await.unwrap();
    assert_eq!(
        relay_position::get(&client, &fresh.slot).await.unwrap(),
        Some(later)
    );
    assert_eq!(fresh.migrate().await.slot, SlotOutcome::Lost);
    assert_eq!(
        database::slots::get(&client, &fresh.slot).await.unwrap(),
        None
    );
    fresh.end().await;
}

#[tokio::test]
async fn a_day_with_rows_in_the_default_partition_is_left_alone() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    let row = client
        .query_one(
            "select to_char((clock_timestamp() at time zone 'UTC')::date + 14, 'YYYYMMDD')",
            &[],
        )
        .await
        .unwrap();
    let day: String = row.get(0);
    fresh
        .run(&format!("drop table tideline.outbox_{day}"))
        .await;
    fresh
        .run(&format!(
            "insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload, created_at)
             values ('post', '1', '1', 'tideline.post.created.v1', '{{}}', timestamptz '{day} 23:59:59.999999+00')"
        ))
        .await;
    assert_eq!(
        fresh
            .number("select count(*) from tideline.outbox_default")
            .await,
        1
    );
    let days = outbox::ensure_days(&client, 1).await.unwrap();
    assert_eq!((days.created, days.present, days.blocked), (0, 15, 1));
    fresh.run("delete from tideline.outbox_default").await;
    let days = outbox::ensure_days(&client, 1).await.unwrap();
    assert_eq!((days.created, days.present, days.blocked), (1, 15, 0));
    fresh.end().await;
}

#[tokio::test]
async fn names_that_need_quoting_are_refused() {
    let refused = |slot: &'static str| async move {
        let options = migrations::Options {
            url: "postgresql://nobody@127.0.0.1:1/none",
            slot,
            publication: PUBLICATION,
        };
        migrations::migrate(&options).await.unwrap_err()
    };
    for slot in ["", "Upper", "a'b", "a-b"] {
        assert!(
            matches!(refused(slot).await, Error::Name { what: "slot", .. }),
            "{slot:?}"
        );
    }
    assert_eq!(
        refused("fine").await.class(),
        Class::Outage,
        "nobody listens there"
    );
    assert!(matches!(
        Pool::new("nonsense", 1, "it"),
        Err(Error::Url { .. })
    ));
}
