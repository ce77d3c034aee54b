//! The ledger in blocks: rows per block, folding, joining, taking out.

use database::{delivery_ledger, epoch, outbox};
use events::{BLOCK, EventId, IdRange, IdRanges, Stage};

use crate::{
    fresh::Fresh,
    rows::{self, ids, ranges},
};

async fn ledger_rows(fresh: &Fresh) -> i64 {
    fresh
        .number("select count(*) from tideline.delivery_ledger")
        .await
}

async fn everything(fresh: &Fresh, stage: Stage) -> IdRanges {
    delivery_ledger::ranges(&fresh.client().await, stage, IdRange::ALL)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_batch_has_a_row_per_block() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    let batch = ids([BLOCK - 1, BLOCK, 3 * BLOCK, 1]);
    delivery_ledger::record(&client, Stage::Published, &batch, 1)
        .await
        .unwrap();
    let blocks = client
        .query(
            "select block, last_block, ids::text from tideline.delivery_ledger order by 1",
            &[],
        )
        .await
        .unwrap();
    let blocks: Vec<(i64, i64, String)> = blocks
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect();
    let expected = [
        (0, 0, format!("{{[1,2),[{},{BLOCK})}}", BLOCK - 1)),
        (1, 1, format!("{{[{BLOCK},{})}}", BLOCK + 1)),
        (3, 3, format!("{{[{},{})}}", 3 * BLOCK, 3 * BLOCK + 1)),
    ];
    assert_eq!(blocks, expected);
    fresh.end().await;
}

#[tokio::test]
async fn delivered_counts_as_published_and_not_the_other_way() {
    let fresh = Fresh::migrated().await;
    rows::posts(&fresh, 1, 20).await;
    let client = fresh.client().await;
    delivery_ledger::record(&client, Stage::Published, &ids(1..=10), 1)
        .await
        .unwrap();
    delivery_ledger::record(&client, Stage::Delivered, &ids(8..=12), 1)
        .await
        .unwrap();
    assert_eq!(
        everything(&fresh, Stage::Published).await,
        ranges(&[(1, 13)])
    );
    assert_eq!(
        everything(&fresh, Stage::Delivered).await,
        ranges(&[(8, 13)])
    );
    let within = IdRange { low: 9, high: 100 };
    let cut = delivery_ledger::ranges(&client, Stage::Delivered, within)
        .await
        .unwrap();
    assert_eq!(cut, ranges(&[(9, 13)]));
    for (stage, missing) in [(Stage::Published, 8), (Stage::Delivered, 15)] {
        assert_eq!(
            delivery_ledger::missing_count(&client, stage)
                .await
                .unwrap(),
            missing
        );
    }
    assert_eq!(outbox::unpublished(&client).await.unwrap(), 8);
    fresh.end().await;
}

#[tokio::test]
async fn folding_changes_no_answer_and_ends_with_one_row_per_block() {
    let fresh = Fresh::migrated().await;
    let mut client = fresh.client().await;
    for batch in 0..30 {
        // Overlapping, with gaps, over the border of blocks 0 and 1.
        let batch = ids((0..50).map(|n| BLOCK - 500 + batch * 40 + n * 3));
        delivery_ledger::record(&client, Stage::Published, &batch, 1)
            .await
            .unwrap();
    }
    // As an earlier version wrote it: one row over two blocks. And one of another stage.
    fresh
        .run(
            "insert into tideline.delivery_ledger (stage, ids, epoch) values
                ('published', '{[60000,70000)}', 1), ('delivered', '{[1,9)}', 1)",
        )
        .await;
    let before = everything(&fresh, Stage::Published).await;
    let newest = "select tideline.micros(max(recorded_at)) from tideline.delivery_ledger where stage = 'published'";
    let recorded = fresh.number(newest).await;

    let crowded = delivery_ledger::crowded_blocks(&client, Stage::Published, 10)
        .await
        .unwrap();
    assert_eq!(crowded.len(), 2, "{crowded:?}");
    let mut rounds = 0;
    loop {
        let crowded = delivery_ledger::crowded_blocks(&client, Stage::Published, 10)
            .await
            .unwrap();
        let Some(block) = crowded.first() else { break };
        let folded = delivery_ledger::compact_block(&mut client, Stage::Published, *block)
            .await
            .unwrap();
        assert_ne!(folded.before, folded.after, "block {block}");
        rounds += 1;
        assert!(rounds < 5, "folding does not end");
    }
    assert_eq!(everything(&fresh, Stage::Published).await, before);
    assert_eq!(
        ledger_rows(&fresh).await,
        3,
        "two blocks and the other stage"
    );
    assert_eq!(
        fresh.number(newest).await,
        recorded,
        "evidence stays as old as it was"
    );
    let again = delivery_ledger::compact_block(&mut client, Stage::Published, 0)
        .await
        .unwrap();
    assert_eq!((again.before, again.after), (1, 1));
    fresh.end().await;
}

#[tokio::test]
async fn complete_blocks_join_and_swallow_late_entries() {
    let fresh = Fresh::migrated().await;
    let mut client = fresh.client().await;
    fresh
        .run(&format!(
            "insert into tideline.delivery_ledger (stage, ids, epoch)
             select 'published', int8multirange(int8range(b * {BLOCK}, (b + 1) * {BLOCK})), 1
             from unnest(array[2, 3, 4, 7]) as b"
        ))
        .await;
    let saved = delivery_ledger::join_complete(&mut client, Stage::Published)
        .await
        .unwrap();
    assert_eq!((saved, ledger_rows(&fresh).await), (2, 2));
    assert_eq!(
        delivery_ledger::join_complete(&mut client, Stage::Published)
            .await
            .unwrap(),
        0
    );
    assert!(
        delivery_ledger::crowded_blocks(&client, Stage::Published, 10)
            .await
            .unwrap()
            .is_empty()
    );
    for id in [2 * BLOCK, 3 * BLOCK + 5, 5 * BLOCK - 1, 7 * BLOCK] {
        assert!(
            delivery_ledger::contains(&client, Stage::Published, EventId(id))
                .await
                .unwrap(),
            "{id}"
        );
    }
    // A repeat of what the joined row holds.
    delivery_ledger::record(&client, Stage::Published, &ids([3 * BLOCK + 5]), 1)
        .await
        .unwrap();
    assert_eq!(
        delivery_ledger::crowded_blocks(&client, Stage::Published, 10)
            .await
            .unwrap(),
        [3]
    );
    let folded = delivery_ledger::compact_block(&mut client, Stage::Published, 3)
        .await
        .unwrap();
    assert_eq!((folded.before, folded.after), (2, 1));
    assert_eq!(ledger_rows(&fresh).await, 2);

    // Below the first of them nothing is left, the joined row lies across.
    assert_eq!(
        delivery_ledger::trim_below(&client, EventId(5 * BLOCK - 1))
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        delivery_ledger::trim_below(&client, EventId(5 * BLOCK))
            .await
            .unwrap(),
        1
    );
    fresh.end().await;
}

#[tokio::test]
async fn folding_beside_writers_and_a_second_folder_loses_nothing() {
    let fresh = Fresh::migrated().await;
    let write = |writer: i64| {
        let pool = fresh.pool.clone();
        async move {
            for n in 0..150 {
                let batch = ids([n * 4 + writer, n * 4 + writer + 2]);
                let client = pool.get().await.unwrap();
                delivery_ledger::record(&client, Stage::Published, &batch, 1)
                    .await
                    .unwrap();
            }
        }
    };
    let fold = || {
        let pool = fresh.pool.clone();
        async move {
            for _ in 0..40 {
                let mut client = pool.get().await.unwrap();
                delivery_ledger::compact_block(&mut client, Stage::Published, 0)
                    .await
                    .unwrap();
            }
        }
    };
    let ((), (), (), ()) = tokio::join!(write(0), write(1), fold(), fold());
    assert_eq!(
        everything(&fresh, Stage::Published).await,
        ranges(&[(0, 600)])
    );
    fold().await;
    assert_eq!(ledger_rows(&fresh).await, 1);
    fresh.end().await;
}

#[tokio::test]
async fn forgetting_takes_ids_out_of_every_row_while_others_fold() {
    let fresh = Fresh::migrated().await;
    let mut client = fresh.client().await;
    for _ in 0..3 {
        delivery_ledger::record(&client, Stage::Published, &ids(0..2000), 1)
            .await
            .unwrap();
    }
    delivery_ledger::record(&client, Stage::Published, &ids([BLOCK, 99_999]), 1)
        .await
        .unwrap();
    let pool = fresh.pool.clone();
    let folds = async {
        for _ in 0..30 {
            let mut client = pool.get().await.unwrap();
            delivery_ledger::compact_block(&mut client, Stage::Published, 0)
                .await
                .unwrap();
        }
    };
    let forgets = async {
        let mut removed = 0;
        for n in 0..20 {
            let some = ids((0..10).map(|k| n * 100 + k));
            removed += delivery_ledger::forget(&mut client, Stage::Published, &some)
                .await
                .unwrap();
        }
        let last = ids([BLOCK, 99_999, 3_000_000]);
        removed
            + delivery_ledger::forget(&mut client, Stage::Published, &last)
                .await
                .unwrap()
    };
    let ((), removed) = tokio::join!(folds, forgets);
    assert_eq!(removed, 202);
    let left: Vec<(i64, i64)> = (0..20).map(|n| (n * 100 + 10, n * 100 + 100)).collect();
    assert_eq!(everything(&fresh, Stage::Published).await, ranges(&left));
    assert_eq!(
        fresh
            .number("select count(*) from tideline.delivery_ledger where isempty(ids)")
            .await,
        0
    );
    fresh.end().await;
}

#[tokio::test]
async fn an_entry_that_meets_the_start_of_an_epoch_is_refused() {
    let fresh = Fresh::migrated().await;
    let mut holder = fresh.client().await;
    let starting = holder.transaction().await.unwrap();
    starting
        .batch_execute(
            "select pg_advisory_xact_lock(1953064037, 1);
             insert into tideline.epoch (epoch, system_id, pg_timeline) values (2, '1', 1)",
        )
        .await
        .unwrap();
    let client = fresh.client().await;
    let batch = ids([1]);
    let entry = delivery_ledger::record(&client, Stage::Published, &batch, 1);
    let commit = async {
        let waits = "select count(*) from pg_locks where locktype = 'advisory' and not granted
            and database = (select oid from pg_database where datname = current_database())";
        testkit::eventually("the entry waits", || async {
            (fresh.number(waits).await == 1).then_some(())
        })
        .await;
        starting.commit().await.unwrap();
    };
    let (entered, ()) = tokio::join!(entry, commit);
    assert!(
        matches!(
            entered,
            Err(database::Error::OtherEpoch {
                given: 1,
                current: 2
            })
        ),
        "{entered:?}"
    );
    assert_eq!(epoch::current(&client).await.unwrap().epoch, 2);
    assert_eq!(ledger_rows(&fresh).await, 0);
    fresh.end().await;
}
