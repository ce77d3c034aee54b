//! What is held in memory answers as the tables do, whatever was changed and by whom.

use database::{
    Client,
    delivery_ledger::{self, Mirror},
    epoch, outbox_voids,
};
use events::{BLOCK, EventId, IdRange, Stage};

use crate::{
    fresh::Fresh,
    rows::{self, ids, ranges},
};

/// A small generator, so that a failing run can be repeated: xorshift.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 1).cast_signed().rem_euclid(bound)
    }
}

async fn agrees(mirror: &mut Mirror, client: &Client, after: &str) -> usize {
    let read = mirror.refresh(client).await.unwrap();
    for stage in Stage::ALL {
        let expected = delivery_ledger::ranges(client, stage, IdRange::ALL).await;
        assert_eq!(
            *mirror.passed(stage),
            expected.unwrap(),
            "{stage:?} after {after}"
        );
    }
    read
}

/// One change of the ledger by chance; its words.
async fn change(client: &mut Client, chance: &mut Chance) -> String {
    let stage = Stage::ALL[usize::try_from(chance.below(2)).unwrap()];
    let low = chance.below(4) * BLOCK + chance.below(200);
    let some: Vec<EventId> = ids(low..low + 1 + chance.below(100));
    let whole: Vec<EventId> = ids(low / BLOCK * BLOCK..(low / BLOCK + 1) * BLOCK);
    let newest = epoch::current(client).await.unwrap().epoch;
    match chance.below(8) {
        0..=2 => delivery_ledger::record(client, stage, &some, newest)
            .await
            .unwrap(),
        3 => delivery_ledger::record(client, stage, &whole, newest)
            .await
            .unwrap(),
        4 => drop(delivery_ledger::forget(client, stage, &some).await.unwrap()),
        5 => drop(
            delivery_ledger::compact_block(client, stage, low / BLOCK)
                .await
                .unwrap(),
        ),
        6 => drop(delivery_ledger::join_complete(client, stage).await.unwrap()),
        _ => drop(
            delivery_ledger::trim_below(client, EventId(chance.below(BLOCK)))
                .await
                .unwrap(),
        ),
    }
    format!("a change at {low} of {stage:?}")
}

#[tokio::test]
async fn the_mirror_of_the_ledger_answers_as_the_ledger_does() {
    let fresh = Fresh::migrated().await;
    let mut client = fresh.client().await;
    let mut chance = Chance(20_261_130);
    let mut mirror = Mirror::default();
    for step in 0..150 {
        let mut done = String::new();
        for _ in 0..=chance.below(3) {
            done = change(&mut client, &mut chance).await;
        }
        agrees(&mut mirror, &client, &format!("step {step}: {done}")).await;
        let again = agrees(&mut mirror, &client, "nothing").await;
        assert_eq!(again, 0, "step {step}: nothing has changed");
    }
    // Ids leave the ledger when an epoch begins, in a transaction that writes rows twice.
    rows::posts(&fresh, 1, 500).await;
    let batch = ids(1..=500);
    let newest = epoch::current(&client).await.unwrap().epoch;
    delivery_ledger::record(&client, Stage::Delivered, &batch, newest)
        .await
        .unwrap();
    agrees(&mut mirror, &client, "an entry").await;
    epoch::bump(&mut client, 1_000).await.unwrap();
    agrees(&mut mirror, &client, "an epoch").await;
    fresh.run("truncate tideline.delivery_ledger").await;
    assert_eq!(agrees(&mut mirror, &client, "all rows are gone").await, 0);
    fresh.end().await;
}

#[tokio::test]
async fn only_what_was_entered_is_read_and_only_once_it_is_committed() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    for low in [0, BLOCK, 2 * BLOCK] {
        let batch = ids(low..low + 10);
        delivery_ledger::record(&client, Stage::Published, &batch, 1)
            .await
            .unwrap();
    }
    let mut mirror = Mirror::default();
    assert_eq!(agrees(&mut mirror, &client, "three entries").await, 3);
    let mut writer = fresh.client().await;
    let open = writer.transaction().await.unwrap();
    let sql = "insert into tideline.delivery_ledger (stage, ids, epoch)
        values ('published', '{[70000,70005)}', 1)";
    open.execute(sql, &[]).await.unwrap();
    let update = "update tideline.delivery_ledger set ids = ids - '{[3,5)}'::int8multirange
        where ids @> 3::bigint";
    open.execute(update, &[]).await.unwrap();
    assert_eq!(agrees(&mut mirror, &client, "nothing committed").await, 0);
    open.commit().await.unwrap();
    assert_eq!(
        agrees(&mut mirror, &client, "one new, one changed").await,
        2
    );
    fresh.end().await;
}

#[tokio::test]
async fn the_mirror_of_the_notes_follows_new_ones_and_deletes() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    let mut mirror = outbox_voids::Mirror::default();
    for round in 0..6_i64 {
        outbox_voids::note(&client, &ranges(&[(round * 10, round * 10 + 3)]))
            .await
            .unwrap();
        if round % 2 == 1 {
            let first = outbox_voids::list(&client).await.unwrap()[0].entry;
            outbox_voids::forget(&client, &[first]).await.unwrap();
        }
        mirror.refresh(&client).await.unwrap();
        let all = outbox_voids::list(&client).await.unwrap();
        assert_eq!(mirror.voids(), all, "round {round}");
        mirror.refresh(&client).await.unwrap();
        assert_eq!(mirror.voids(), all, "round {round}, again");
    }
    assert_eq!(mirror.voids().len(), 3);
    fresh.end().await;
}
