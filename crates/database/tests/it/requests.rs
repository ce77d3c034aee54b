//! Requests for a look, and noted gaps.

use database::{outbox_voids, sweep_requests};
use events::IdRange;

use crate::{fresh::Fresh, rows::ranges};

#[tokio::test]
async fn requests_stay_until_they_are_honoured_by_number() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    assert_eq!(sweep_requests::pending(&client).await.unwrap(), []);
    let range = IdRange { low: 5, high: 9 };
    sweep_requests::add(&client, "slot lost", None)
        .await
        .unwrap();
    sweep_requests::add(&client, "offsets lost", Some(range))
        .await
        .unwrap();
    sweep_requests::add(&client, "by hand", Some(IdRange::ALL))
        .await
        .unwrap();
    let pending = sweep_requests::pending(&client).await.unwrap();
    let seen: Vec<_> = pending
        .iter()
        .map(|request| (request.reason.as_str(), request.range))
        .collect();
    assert_eq!(
        seen,
        [
            ("slot lost", None),
            ("offsets lost", Some(range)),
            ("by hand", Some(IdRange::ALL))
        ]
    );
    let last: i64 = fresh
        .number("select high from tideline.sweep_request where low = 5")
        .await;
    assert_eq!(last, 8, "the table names the last id");
    sweep_requests::honour(&client, &[pending[0].request, pending[2].request])
        .await
        .unwrap();
    let left = sweep_requests::pending(&client).await.unwrap();
    assert_eq!(left, pending[1..2]);
    fresh.end().await;
}

#[tokio::test]
async fn a_gap_is_noted_with_the_transactions_of_its_time() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    let gaps = ranges(&[(3, 5), (9, 10)]);
    outbox_voids::note(&client, &ranges(&[])).await.unwrap();
    // A transaction with an xid is open: the gap may be its ids.
    let mut writer = fresh.client().await;
    let open = writer.transaction().await.unwrap();
    let xid: i64 = open
        .query_one("select pg_current_xact_id()::text::bigint", &[])
        .await
        .unwrap()
        .get(0);
    outbox_voids::note(&client, &gaps).await.unwrap();
    let [noted] = outbox_voids::list(&client)
        .await
        .unwrap()
        .try_into()
        .unwrap();
    assert_eq!(noted.ids, gaps);
    assert!(noted.xmax_seen > xid.unsigned_abs());
    let now = outbox_voids::snapshot(&client).await.unwrap();
    assert!(now.xmin <= xid.unsigned_abs() && now.xmin < noted.xmax_seen);
    assert!(now.now_us >= noted.seen_us);
    open.commit().await.unwrap();
    // Other databases' transactions count too, so this may take a moment.
    testkit::eventually("no transaction of that time is left", || async {
        let now = outbox_voids::snapshot(&client).await.unwrap();
        (now.xmin >= noted.xmax_seen && now.xmax >= now.xmin).then_some(())
    })
    .await;
    outbox_voids::forget(&client, &[noted.entry]).await.unwrap();
    assert_eq!(outbox_voids::list(&client).await.unwrap(), []);
    fresh.end().await;
}
