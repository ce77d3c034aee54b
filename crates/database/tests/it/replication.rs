//! Publication, slot and epoch as the relay sees them.

use database::{epoch, slots};
use events::Class;
use testkit::answered;

use crate::fresh::{Fresh, PUBLICATION};

#[tokio::test]
async fn publication_is_insert_only_via_root() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    let publication = slots::publication(&client, PUBLICATION).await.unwrap();
    let expected = slots::Publication {
        exists: true,
        insert: true,
        other_changes: false,
        via_root: true,
        tables: vec!["tideline.outbox".to_owned()],
        row_filter: false,
    };
    assert_eq!(publication, expected);
    assert!(!slots::publication(&client, "absent").await.unwrap().exists);
    fresh
        .run(&format!(
            "alter publication {PUBLICATION} set table tideline.outbox where (id > 5)"
        ))
        .await;
    assert!(
        slots::publication(&client, PUBLICATION)
            .await
            .unwrap()
            .row_filter
    );
    fresh.end().await;
}

#[tokio::test]
async fn slot_is_made_once_and_seen() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    assert_eq!(slots::get(&client, &fresh.slot).await.unwrap(), None);
    // It waits for every transaction of the server that is open.
    let lsn = answered(|| slots::create(&client, &fresh.slot)).await;
    let error = slots::create(&client, &fresh.slot).await.unwrap_err();
    assert_eq!(
        error.class(),
        Class::Config,
        "a slot of this name is there: {error:?}"
    );
    let slot = slots::get(&client, &fresh.slot).await.unwrap().unwrap();
    assert_eq!(slot.plugin.as_deref(), Some("pgoutput"));
    assert!(!slot.active && slot.active_pid.is_none());
    assert_eq!(slot.confirmed_flush_lsn, Some(lsn));
    assert!(slot.restart_lsn.unwrap() <= lsn && slot.retained_bytes.unwrap() >= 0);
    assert!(fresh.url.ends_with(&slot.database.unwrap()));
    fresh.drop_slot().await;
    fresh.end().await;
}

#[tokio::test]
async fn first_epoch_names_the_server() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    let epoch = epoch::current(&client).await.unwrap();
    assert_eq!(epoch.epoch, 1);
    let row = client
        .query_one("select s.system_identifier::text, c.timeline_id::bigint from pg_control_system() s, pg_control_checkpoint() c", &[])
        .await
        .unwrap();
    assert_eq!(epoch.system_id, row.get::<_, String>(0));
    assert_eq!(epoch.pg_timeline, row.get::<_, i64>(1));
    fresh.end().await;
}
