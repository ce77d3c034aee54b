//! Fills the ledger as relay and fan-out do, with the sweep's folding in between.

use database::{Client, delivery_ledger};
use events::{EventId, Stage};
use serde::Serialize;

use crate::{numbers::real, outbox::Outbox};

/// Ids of one entry: 250 ms at 4 000 events per second.
pub(crate) const BATCH: i64 = 1_000;
/// Entries of a stage between two rounds of housekeeping: 30 s.
const FOLD_EVERY: i64 = 120;
/// Blocks that a round of housekeeping folds, as in the sweep.
const BLOCKS: i64 = 16;

/// What the ledger takes.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Size {
    /// Ids that were drawn, gaps included.
    pub(crate) ids: i64,
    pub(crate) gaps: i64,
    pub(crate) rows: i64,
    /// Table and indexes, both stages.
    pub(crate) bytes: i64,
    /// The notes of gaps.
    pub(crate) void_bytes: i64,
}

impl Size {
    /// KiB per million ids, both stages, indexes included.
    pub(crate) fn kib_per_million(&self) -> f64 {
        self.per_million(self.bytes)
    }

    /// The same of the notes of gaps.
    pub(crate) fn void_kib_per_million(&self) -> f64 {
        self.per_million(self.void_bytes)
    }

    fn per_million(&self, bytes: i64) -> f64 {
        real(bytes) / 1024.0 / (real(self.ids) / 1e6)
    }
}

/// Enters the ids of `low..` up to the outbox's end in both stages.
pub(crate) async fn fill(
    client: &mut Client,
    outbox: &Outbox,
    low: i64,
    epoch: i64,
) -> anyhow::Result<()> {
    client.batch_execute("set synchronous_commit = off").await?;
    let (mut next, mut entries, mut rounds) = (low, 0, 0_u32);
    while next < outbox.high {
        let end = outbox.high.min(next + BATCH);
        let ids = outbox.ids(next, end);
        for stage in Stage::ALL {
            delivery_ledger::record(client, stage, &ids, epoch).await?;
        }
        (next, entries) = (end, entries + 1);
        if entries % FOLD_EVERY == 0 {
            fold(client).await?;
            rounds += 1;
            // Every minute, as autovacuum does while events arrive at their pace.
            if rounds.is_multiple_of(2) {
                vacuum(client).await?;
            }
        }
    }
    fold(client).await?;
    vacuum(client).await?;
    client.batch_execute("reset synchronous_commit").await?;
    Ok(())
}

/// Takes ids out of both stages, as if nobody had entered them.
pub(crate) async fn forget(client: &mut Client, ids: &[EventId]) -> anyhow::Result<()> {
    for stage in Stage::ALL {
        delivery_ledger::forget(client, stage, ids).await?;
    }
    Ok(())
}

/// Enters ids in both stages and folds, until no block has more than one row.
pub(crate) async fn enter(client: &mut Client, ids: &[EventId], epoch: i64) -> anyhow::Result<()> {
    for stage in Stage::ALL {
        delivery_ledger::record(client, stage, ids, epoch).await?;
    }
    while fold(client).await? > 0 {}
    vacuum(client).await
}

/// One round of the sweep's housekeeping. How many blocks it folded.
async fn fold(client: &mut Client) -> anyhow::Result<usize> {
    let mut folded = 0;
    for stage in Stage::ALL {
        for block in delivery_ledger::crowded_blocks(client, stage, BLOCKS).await? {
            let _saved = delivery_ledger::compact_block(client, stage, block).await?;
            folded += 1;
        }
        let _saved = delivery_ledger::join_complete(client, stage).await?;
    }
    Ok(folded)
}

async fn vacuum(client: &Client) -> anyhow::Result<()> {
    Ok(client
        .batch_execute("vacuum (analyze) tideline.delivery_ledger")
        .await?)
}

/// What it takes now.
pub(crate) async fn size(client: &Client, outbox: &Outbox) -> anyhow::Result<Size> {
    const SQL: &str = "select (select count(*) from tideline.delivery_ledger),
        pg_total_relation_size('tideline.delivery_ledger'),
        pg_total_relation_size('tideline.outbox_void')";
    let row = client.query_one(SQL, &[]).await?;
    Ok(Size {
        ids: outbox.high - 1,
        gaps: outbox.gap_count(),
        rows: row.try_get(0)?,
        bytes: row.try_get(1)?,
        void_bytes: row.try_get(2)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_per_million_ids() {
        let size = Size {
            ids: 2_000_000,
            bytes: 204_800,
            ..Size::default()
        };
        assert!((size.kib_per_million() - 100.0).abs() < 1e-9);
    }
}
