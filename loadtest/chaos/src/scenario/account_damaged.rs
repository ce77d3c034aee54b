//! What the account rests on is damaged or held: the ledger, the slot's position, the epoch, and a
//! row without a time.

use std::time::{Duration, Instant};

use anyhow::Context;
use events::{EventId, Stage};
use testkit::Service;

use super::{Cast, LIMIT, Proof, Scenario, Stands, Sweep, outbox};
use crate::{Run, account};

const WITHIN: Duration = Duration::from_secs(40);
/// Longer than the grace that the sweep gives an entry.
const HELD: Duration = Duration::from_secs(8);

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "ledger-lost",
        about: "every entry of the delivery ledger is deleted",
        covers: &[32],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(ledger_lost(run)),
        sweep: Sweep::Heals,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "ledger-held",
        about: "nothing can be entered in the delivery ledger for a while",
        covers: &[32],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(ledger_held(run)),
        sweep: Sweep::May,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "slot-advanced",
        about: "the slot is moved past events that nobody has published",
        covers: &[10],
        cast: Cast {
            sweep_env: &[("TIDELINE_SWEEP__RELAY_PATIENCE", "60s")],
            ..Cast::ONE_OF_EACH
        },
        fault: |run| Box::pin(slot_advanced(run)),
        sweep: Sweep::Heals,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "epoch-bumped",
        about: "an operator begins an epoch under load",
        covers: &[],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(epoch_bumped(run)),
        sweep: Sweep::May,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "outbox-row-without-time",
        about: "rows are inserted whose time no record can carry, with the relay and then without",
        covers: &[15],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(without_time(run)),
        sweep: Sweep::May,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
];

/// Everything is delivered once more, and changes no row (D-7).
async fn ledger_lost(run: &mut Run) -> anyhow::Result<Proof> {
    run.more_posts(60).await?;
    let sql = run.flow().sql().get().await?;
    let entries = sql
        .execute("delete from tideline.delivery_ledger", &[])
        .await?;
    drop(sql);
    let missing = run.missing(Stage::Delivered).await?.count;
    run.fault_over().await?;
    Ok(
        (missing > 0)
            .then(|| format!("{entries} entries were deleted, {missing} events with them")),
    )
}

/// The ledger is not in the path: posts reach their followers meanwhile.
async fn ledger_held(run: &mut Run) -> anyhow::Result<Proof> {
    let lock = run.flow().pipeline().deployment().sql().await;
    lock.batch_execute("begin; lock table tideline.delivery_ledger in exclusive mode")
        .await?;
    let client = run.flow().client().clone();
    let begun = Instant::now();
    let posted = client.post(events::UserId(1), "while-held").await?;
    let rows = run
        .until(
            WITHIN,
            "a post is delivered without its entry",
            async |run| {
                let rows = run.flow().rows_of(posted.id).await?;
                Ok((rows > 0).then_some(rows))
            },
        )
        .await;
    tokio::time::sleep(HELD.saturating_sub(begun.elapsed())).await;
    let missing = run.missing(Stage::Delivered).await?.count;
    lock.batch_execute("rollback").await?;
    run.fault_over().await?;
    if rows.is_err() {
        run.complain("nothing was delivered while the ledger was held".to_owned());
    }
    Ok((missing > 0).then(|| format!("{missing} events without an entry after {HELD:?}")))
}

/// What the slot was moved past is in no stream.
async fn slot_advanced(run: &mut Run) -> anyhow::Result<Proof> {
    const ADVANCE: &str =
        "select pg_replication_slot_advance(slot_name, pg_current_wal_lsn())::text
        from pg_replication_slots where slot_name = $1";
    run.stop("relay").await?;
    let posts = run.rng().usize(30..60);
    run.more_posts(posts).await?;
    let unpublished = run.missing(Stage::Published).await?.count;
    let slot = run.flow().pipeline().deployment().slot();
    let sql = run.flow().sql().get().await?;
    let _moved = sql
        .query_one(ADVANCE, &[&slot])
        .await
        .context("advance the slot")?;
    drop(sql);
    run.start("relay", Service::Relay, &[]).await;
    run.fault_over().await?;
    Ok((unpublished > 0).then(|| format!("moved past {unpublished} events")))
}

/// Ids jump, what is in flight is of the epoch before, and entries of it are refused.
async fn epoch_bumped(run: &mut Run) -> anyhow::Result<Proof> {
    const BY: i64 = 5_000;
    let before = account::newest(run.flow()).await?;
    let mut sql = run.flow().sql().get().await?;
    let begun = database::epoch::bump(&mut sql, BY).await?;
    drop(sql);
    let posts = run.rng().usize(30..60);
    run.more_posts(posts).await?;
    run.fault_over().await?;
    let after = account::newest(run.flow()).await?;
    let jumped = after.0 - before.0 > BY;
    Ok(jumped.then(|| {
        format!(
            "epoch {} began, ids went from {before} to {after}",
            begun.epoch
        )
    }))
}

/// A dead letter, by whoever comes across it.
async fn without_time(run: &mut Run) -> anyhow::Result<Proof> {
    outbox::no_row_without_time(run).await?;
    let first = outbox::insert_beyond_records(run).await?;
    letter(run, first).await?;
    run.stop("relay").await?;
    let second = outbox::insert_beyond_records(run).await?;
    run.more_posts(10).await?;
    // The second one is the sweep's, after its patience with the relay.
    letter(run, second).await?;
    run.start("relay", Service::Relay, &[]).await;
    run.fault_over().await?;
    Ok(Some(
        "infinity was refused; a row of the year 10000 became a dead letter of the relay, another of the sweep"
            .to_owned(),
    ))
}

/// Waits until an event is a dead letter, which it has to be.
async fn letter(run: &mut Run, event: EventId) -> anyhow::Result<()> {
    const SQL: &str = "select exists (select from tideline.dead_letters
        where event_id = $1 and reason = 'bad_time')";
    run.until(
        WITHIN,
        "a row whose time no record can carry is a dead letter",
        async |run| {
            let sql = run.flow().sql().get().await?;
            let found: bool = sql.query_one(SQL, &[&event.0]).await?.get(0);
            Ok(found.then_some(()))
        },
    )
    .await?;
    run.expect_letters(1);
    Ok(())
}
