//! Dropping outbox days (D-11).

use std::time::{Duration, Instant};

use database::{
    dead_letters::DeadLetter,
    delivery_ledger,
    outbox::{self, DropOutcome},
};
use events::{EventId, EventType, Stage};

use crate::{
    fresh::Fresh,
    rows::{self, date, day, ids},
    writer::Writers,
};

/// Rows 1 to 20 of posts and 21 to 25 of follows, eight days ago; 100 to 109 a day later.
async fn old_rows(fresh: &Fresh) -> String {
    old_day(fresh).await;
    rows::insert(fresh, 100, 109, EventType::PostCreatedV1, &day(-7)).await;
    date(fresh, -8).await
}

/// The day of eight days ago, with its 25 rows.
async fn old_day(fresh: &Fresh) {
    let client = fresh.client().await;
    outbox::ensure_days(&client, 8).await.unwrap();
    let old = day(-8);
    rows::insert(fresh, 1, 20, EventType::PostCreatedV1, &old).await;
    rows::insert(fresh, 21, 25, EventType::FollowCreatedV1, &old).await;
}

async fn drop_it(fresh: &Fresh, date: &str) -> DropOutcome {
    outbox::drop_day(&mut fresh.client().await, date, &Stage::ALL)
        .await
        .unwrap()
}

async fn enter(fresh: &Fresh, stage: Stage, of: impl IntoIterator<Item = i64>) {
    delivery_ledger::record(&fresh.client().await, stage, &ids(of), 1)
        .await
        .unwrap();
}

async fn letter(fresh: &Fresh, stage: Stage, event: i64, reason: &str) {
    let letter = DeadLetter {
        stage,
        event: Some(EventId(event)),
        post: None,
        topic: "posts".to_owned(),
        partition: 0,
        offset: event,
        reason: reason.to_owned(),
    };
    database::dead_letters::record(&fresh.client().await, &letter)
        .await
        .unwrap();
}

fn unfinished(stage: Stage, of: impl IntoIterator<Item = i64>) -> DropOutcome {
    let sample = ids(of);
    DropOutcome::Unfinished {
        stage,
        count: sample.len() as u64,
        sample,
    }
}

#[tokio::test]
async fn a_day_goes_when_its_last_row_is_finished_d11() {
    let fresh = Fresh::migrated().await;
    let date = old_rows(&fresh).await;
    assert_eq!(drop_it(&fresh, "2001-01-01").await, DropOutcome::Absent);
    let DropOutcome::Unfinished { count, sample, .. } = drop_it(&fresh, &date).await else {
        panic!("nothing is finished");
    };
    assert_eq!((count, sample.len()), (25, 20));

    enter(&fresh, Stage::Published, (1..=15).chain(21..=24)).await;
    assert_eq!(
        drop_it(&fresh, &date).await,
        unfinished(Stage::Published, (16..=20).chain([25]))
    );
    enter(&fresh, Stage::Published, [25]).await;
    // Delivered is published; a dead letter and a discard of `published` finish both stages.
    enter(&fresh, Stage::Delivered, (1..=13).chain([18, 19])).await;
    letter(&fresh, Stage::Published, 16, "refused").await;
    fresh
        .run("insert into tideline.discarded (stage, event_id, reason) values ('published', 17, 'too_old')")
        .await;
    letter(&fresh, Stage::Published, 20, "oversize").await;
    letter(&fresh, Stage::Delivered, 14, "row refused").await;
    assert_eq!(
        drop_it(&fresh, &date).await,
        unfinished(Stage::Published, [20]),
        "the full record of an oversized one is only here"
    );
    enter(&fresh, Stage::Published, [20]).await;
    enter(&fresh, Stage::Delivered, [20]).await;
    assert_eq!(
        drop_it(&fresh, &date).await,
        unfinished(Stage::Delivered, [15])
    );
    letter(&fresh, Stage::Delivered, 15, "row refused").await;
    fresh
        .run("update tideline.dead_letters set state = 'redriven' where event_id = 14")
        .await;
    assert_eq!(
        drop_it(&fresh, &date).await,
        unfinished(Stage::Delivered, [14]),
        "a letter that was sent again finishes nothing"
    );
    enter(&fresh, Stage::Delivered, [14]).await;
    assert_eq!(
        drop_it(&fresh, &date).await,
        DropOutcome::Dropped { rows: 25 }
    );
    assert_eq!(drop_it(&fresh, &date).await, DropOutcome::Absent);
    assert_eq!(
        fresh.number("select count(*) from tideline.outbox").await,
        10,
        "the stuck rows of another day hold only that day"
    );
    fresh.end().await;
}

#[tokio::test]
async fn a_dropped_day_takes_its_notes_along_and_leaves_open_letters() {
    let fresh = Fresh::migrated().await;
    let date = old_rows(&fresh).await;
    let client = fresh.client().await;
    assert_eq!(
        outbox::trim(&client).await.unwrap(),
        0,
        "nothing is below the lowest row"
    );
    enter(&fresh, Stage::Published, 1..=25).await;
    enter(&fresh, Stage::Delivered, 1..=19).await;
    enter(&fresh, Stage::Published, [50, 100]).await;
    letter(&fresh, Stage::Delivered, 20, "row refused").await;
    fresh
        .run("insert into tideline.post_delivery (event_id, post_id, audience, rows) values (3, 3, 1, 1), (100, 9, 1, 1);
              insert into tideline.redelivery (stage, event_id, attempts) values ('published', 3, 1), ('published', 101, 1);
              insert into tideline.discarded (stage, event_id, reason) values ('delivered', 4, 'no_post'), ('delivered', 102, 'no_post');
              insert into tideline.outbox_void (ids, xmax_seen) values ('{[26,99)}', '5'), ('{[26,200)}', '5')")
        .await;
    assert_eq!(
        drop_it(&fresh, &date).await,
        DropOutcome::Dropped { rows: 25 }
    );
    // Two ledger rows, one of each other table; the row of 50 and 100 is still needed.
    assert_eq!(outbox::trim(&client).await.unwrap(), 6);
    for (table, left) in [
        ("delivery_ledger", 1),
        ("post_delivery", 1),
        ("redelivery", 1),
        ("discarded", 1),
        ("outbox_void", 1),
        ("dead_letters", 1),
    ] {
        let count = format!("select count(*) from tideline.{table}");
        assert_eq!(fresh.number(&count).await, left, "{table}");
    }
    fresh.end().await;
}

#[tokio::test]
async fn an_open_transaction_delays_a_drop_is_named_and_no_writer_waits_d11() {
    let fresh = Fresh::migrated().await;
    let date = old_rows(&fresh).await;
    enter(&fresh, Stage::Delivered, 1..=25).await;
    let holder = fresh.client().await;
    // In turn: a writer into the day, a reader of it, a reader of everything, a writer of today.
    let leaf = format!("outbox_{}", date.replace('-', ""));
    let holds = [
        format!("lock table only tideline.{leaf} in row exclusive mode"),
        format!("select count(*) from tideline.{leaf}"),
        "select count(*) from tideline.outbox".to_owned(),
        "insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload)
            values ('post', '1', '1', 'tideline.post.created.v1', '{}')"
            .to_owned(),
    ];
    let pid: i32 = holder
        .query_one("select pg_backend_pid()", &[])
        .await
        .unwrap()
        .get(0);
    for hold in holds {
        holder
            .batch_execute(&format!("begin; {hold}"))
            .await
            .unwrap();
        unhindered(&fresh, async || {
            for _ in 0..3 {
                let DropOutcome::Busy { holders } = drop_it(&fresh, &date).await else {
                    panic!("dropped in spite of: {hold}");
                };
                assert!(
                    holders.contains(&format!("pid {pid} (application 'database-it', user ")),
                    "{hold}: {holders}"
                );
            }
        })
        .await;
        holder.batch_execute("commit").await.unwrap();
    }
    unhindered(&fresh, async || {
        testkit::eventually("the day is dropped between the writers", || async {
            matches!(
                drop_it(&fresh, &date).await,
                DropOutcome::Dropped { rows: 25 }
            )
            .then_some(())
        })
        .await;
        // For another round. No writer waits for a day to be made.
        old_day(&fresh).await;
    })
    .await;
    fresh.end().await;
}

/// Does it beside writers, of whom none may wait for long. A drop that hinders writers does so each
/// time; a machine that stands still for a moment does so once.
async fn unhindered(fresh: &Fresh, work: impl AsyncFn()) {
    for _ in 0..5 {
        let writers = Writers::start(fresh).await;
        work().await;
        if writers.finish().await == 0 {
            return;
        }
    }
    panic!("writers waited each of five times");
}

#[tokio::test]
async fn a_row_that_comes_between_the_two_looks_keeps_its_day_d11() {
    let fresh = Fresh::migrated().await;
    let date = old_rows(&fresh).await;
    enter(&fresh, Stage::Delivered, 1..=25).await;
    // A clock that stepped back: one open transaction writes into the old day all along, and
    // commits while the drop waits for the day.
    let mut writer = fresh.client().await;
    let deadline = Instant::now() + Duration::from_secs(60);
    for id in 200.. {
        assert!(
            Instant::now() < deadline,
            "the second look never saw the row"
        );
        let open = writer.transaction().await.unwrap();
        // The drop waits for the day for a moment only: its lock must not wait for a disk.
        open.batch_execute("set local synchronous_commit = off")
            .await
            .unwrap();
        open.batch_execute(&format!(
            "insert into tideline.outbox (id, aggregatetype, aggregateid, partition_key, type, payload, created_at)
                 overriding system value
             values ({id}, 'post', '1', '1', 'tideline.post.created.v1', '{{}}', {})",
            day(-8)
        ))
        .await
        .unwrap();
        let outcome = drop_and_commit(&fresh, &date, open).await;
        match outcome {
            // The commit came too late, or the drop gave up first.
            DropOutcome::Busy { .. } => enter(&fresh, Stage::Delivered, [id]).await,
            unfinished_now => {
                assert_eq!(unfinished_now, unfinished(Stage::Published, [id]));
                fresh.end().await;
                return;
            }
        }
    }
}

/// Drops the day and commits while it waits.
async fn drop_and_commit(
    fresh: &Fresh,
    date: &str,
    open: deadpool_postgres::Transaction<'_>,
) -> DropOutcome {
    let drop = drop_it(fresh, date);
    tokio::pin!(drop);
    // It gives up soon, and may do so before anybody saw it wait.
    let gave_up = tokio::select! {
        outcome = &mut drop => Some(outcome),
        () = somebody_waits(fresh) => None,
    };
    open.commit().await.unwrap();
    match gave_up {
        Some(outcome) => outcome,
        None => drop.await,
    }
}

/// Returns once a statement waits for a lock on a table.
async fn somebody_waits(fresh: &Fresh) {
    let waits = "select count(*) from pg_locks where locktype = 'relation' and not granted
        and database = (select oid from pg_database where datname = current_database())";
    // The wait may be a short one: so without a pause.
    while fresh.number(waits).await == 0 {}
}
