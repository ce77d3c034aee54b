//! The replication slot is lost: dropped, or invalidated by the server.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use testkit::Signal;

use super::{Cast, LIMIT, Proof, Scenario, Stands, Sweep};
use crate::{Run, account, census, server_settings::Changed};

/// Longer than a checkpoint takes on a busy machine.
const LOST_WITHIN: Duration = Duration::from_secs(60);
/// What `max_slot_wal_keep_size` is lowered to, MiB. Slots that are up with the server keep far
/// less.
const RETAINED: u32 = 64;
const GONE_WITHIN: Duration = Duration::from_secs(20);

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "slot-dropped",
        about: "the walsender is ended and the slot dropped while the relay is behind",
        covers: &[10, 13],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(dropped(run)),
        sweep: Sweep::Heals,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "slot-invalidated",
        about: "max_slot_wal_keep_size is exceeded while the relay stands still",
        covers: &[11, 12],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(invalidated(run)),
        sweep: Sweep::Heals,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
];

/// The slot is dropped; what is committed until the relay makes another one is in no stream.
async fn dropped(run: &mut Run) -> anyhow::Result<Proof> {
    lose(run).await
}

/// Freezes the relay, drops the slot and lets posts be committed that no slot will ever decode.
pub(super) async fn lose(run: &mut Run) -> anyhow::Result<Proof> {
    run.signal("relay", Signal::Stop)?;
    drop_slot(run).await?;
    let unseen = unseen(run).await?;
    let absent = state(run).await?.is_none();
    run.signal("relay", Signal::Cont)?;
    run.fault_over().await?;
    Ok((absent && unseen > 0)
        .then(|| format!("no slot, and {unseen} events that no relay has seen")))
}

/// The server gives the slot up because it holds too much WAL.
async fn invalidated(run: &mut Run) -> anyhow::Result<Proof> {
    run.signal("relay", Signal::Stop)?;
    write_wal(run).await?;
    let url = run.flow().pipeline().deployment().database_url();
    let limit = Changed::slot_wal(url, RETAINED).await?;
    let lost = run
        .until(LOST_WITHIN, "the slot is lost", async |run| {
            let sql = run.flow().sql().get().await?;
            sql.batch_execute("checkpoint").await?;
            Ok((state(run).await?.as_deref() == Some("lost")).then_some(()))
        })
        .await;
    // Before anything else, so that no other slot meets it.
    limit.restore().await?;
    lost?;
    let unseen = unseen(run).await?;
    run.signal("relay", Signal::Cont)?;
    run.fault_over().await?;
    Ok(
        (unseen > 0)
            .then(|| format!("wal_status lost, and {unseen} events that no relay has seen")),
    )
}

/// Ends the walsender and drops the slot, until it is gone: a relay that runs is quick to be back.
pub(super) async fn drop_slot(run: &Run) -> anyhow::Result<()> {
    const END: &str = "select pg_terminate_backend(active_pid) from pg_replication_slots
        where slot_name = $1 and active_pid is not null";
    const DROP: &str = "select pg_drop_replication_slot(slot_name) from pg_replication_slots
        where slot_name = $1";
    let slot = run.flow().pipeline().deployment().slot();
    let sql = run.flow().sql().get().await?;
    let begun = Instant::now();
    loop {
        let _ended = sql.execute(END, &[&slot]).await?;
        match sql.execute(DROP, &[&slot]).await {
            Ok(1) => return Ok(()),
            Ok(_) => bail!("there is no slot {slot} to drop"),
            // In use until the walsender has noticed (55006).
            Err(error) if begun.elapsed() > GONE_WITHIN => {
                return Err(error).context("drop the slot");
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Whether the slot is held by a walsender.
pub(super) async fn is_active(run: &Run) -> anyhow::Result<bool> {
    let slot = run.flow().pipeline().deployment().slot();
    let sql = run.flow().sql().get().await?;
    let found = database::slots::get(&sql, &slot).await?;
    Ok(found.is_some_and(|slot| slot.active))
}

/// The slot's `wal_status`; `None` when it does not exist.
async fn state(run: &Run) -> anyhow::Result<Option<String>> {
    let slot = run.flow().pipeline().deployment().slot();
    let sql = run.flow().sql().get().await?;
    let found = database::slots::get(&sql, &slot).await?;
    Ok(found.map(|slot| slot.wal_status.unwrap_or_default()))
}

/// Lets posts be committed and counts those that the relay has not published. The ledger does not
/// tell: a sweep that is quick has published them already.
async fn unseen(run: &mut Run) -> anyhow::Result<usize> {
    let before = account::newest(run.flow()).await?;
    let posts = run.rng().usize(30..60);
    run.more_posts(posts).await?;
    let later = account::later_than(run.flow(), before).await?;
    let relay = census::read(run.flow()).await?.relay;
    let unseen = later.iter().filter(|event| !relay.contains_key(event));
    Ok(unseen.count())
}

/// Writes more WAL than the lowered limit allows.
async fn write_wal(run: &Run) -> anyhow::Result<()> {
    const MEGABYTE: &str =
        "select pg_logical_emit_message(false, 'chaos', repeat('x', 1048576)) is not null";
    let sql = run.flow().sql().get().await?;
    for _ in 0..RETAINED * 2 {
        let _row = sql.query_one(MEGABYTE, &[]).await?;
    }
    let _row = sql
        .query_one("select pg_switch_wal() is not null", &[])
        .await?;
    Ok(())
}
