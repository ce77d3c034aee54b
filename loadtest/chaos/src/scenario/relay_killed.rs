//! The relay dies, or is dropped, in the middle of its work.

use std::time::{Duration, Instant};

use anyhow::bail;
use events::{Stage, UserId};
use testkit::{Service, Signal, http_get};

use super::{Cast, LIMIT, Proof, Scenario, Stands, Sweep, slot, still::Still};
use crate::{Run, bulk, census, load::CLIENTS, run::INTERVAL, server_settings::Changed};

const WITHIN: Duration = Duration::from_secs(40);
/// A stand-by is promised to take over within this time.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(10);
/// Rows of the large transaction.
const LARGE: i64 = 3_000;
/// `wal_sender_timeout` while the relay is frozen, seconds.
const TIMEOUT: u32 = 3;

/// A sweep that leaves everything to a relay that comes back within a minute.
const PATIENT: Cast = Cast {
    sweep_env: &[("TIDELINE_SWEEP__RELAY_PATIENCE", "60s")],
    ..Cast::ONE_OF_EACH
};

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "relay-killed-unconfirmed",
        about: "the relay is killed when the broker has records that the slot does not know of",
        covers: &[4],
        cast: PATIENT,
        fault: |run| Box::pin(unconfirmed(run)),
        sweep: Sweep::Counts,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "relay-killed-in-a-transaction",
        about: "the relay is killed in the middle of a transaction of 3000 rows",
        covers: &[5],
        cast: PATIENT,
        fault: |run| Box::pin(in_a_transaction(run)),
        sweep: Sweep::Counts,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "relay-frozen",
        about: "the relay is frozen until the server drops its connection",
        covers: &[6],
        cast: PATIENT,
        fault: |run| Box::pin(frozen(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: true,
        stands: Stands::Green,
    },
    Scenario {
        name: "relay-taken-over",
        about: "the first of two relays is killed, and the stand-by takes over in 10 s",
        covers: &[7],
        cast: PATIENT,
        fault: |run| Box::pin(taken_over(run)),
        sweep: Sweep::Counts,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
];

/// What was not confirmed comes again.
async fn unconfirmed(run: &mut Run) -> anyhow::Result<Proof> {
    let acknowledgements = run.rng().u32(20..60);
    let stop_there = format!("relay::acked={acknowledgements}*off->pause");
    run.stop("relay").await?;
    run.spawn(
        "relay",
        Service::Relay,
        &[("FAILPOINTS", stop_there.as_str())],
    );
    until_it_stands(run).await?;
    let confirmed = run.flow().confirmed_lsn().await?;
    let before = census::read(run.flow()).await?;
    run.kill("relay")?;
    run.start("relay", Service::Relay, &[]).await;
    run.fault_over().await?;
    let repeated = run
        .until(WITHIN, "records come again", async |run| {
            let now = census::read(run.flow()).await?;
            let repeated = now.repeated() - before.repeated();
            Ok((repeated > 0).then_some(repeated))
        })
        .await?;
    Ok(Some(format!(
        "killed with the slot at {confirmed:X}; {repeated} records behind that came again"
    )))
}

/// The whole transaction comes again, in its order (D-5).
async fn in_a_transaction(run: &mut Run) -> anyhow::Result<Proof> {
    let author = UserId(run.rng().i64(1..=CLIENTS));
    let client = run.flow().client().clone();
    run.stop("relay").await?;
    let mut sql = run.flow().pipeline().deployment().sql().await;
    let transaction = sql.transaction().await?;
    let large = bulk::insert(&client, &transaction, author, "large", LARGE).await?;
    transaction.commit().await?;
    large.committed(&client);
    let backlog = run.missing(Stage::Published).await?.count - LARGE;
    let inside = run.rng().i64(500..LARGE - 500);
    let stop_there = format!("relay::produced={}*off->pause", backlog + inside);
    run.spawn(
        "relay",
        Service::Relay,
        &[("FAILPOINTS", stop_there.as_str())],
    );
    until_it_stands(run).await?;
    let before = census::read(run.flow()).await?;
    let produced = large
        .events
        .iter()
        .filter(|event| before.relay.contains_key(event))
        .count();
    run.kill("relay")?;
    run.start("relay", Service::Relay, &[]).await;
    run.fault_over().await?;
    let twice = run
        .until(WITHIN, "the transaction comes again", async |run| {
            let now = census::read(run.flow()).await?;
            let times = |event| now.relay.get(event).copied().unwrap_or(0);
            let twice = large
                .events
                .iter()
                .filter(|&event| times(event) > 1)
                .count();
            let whole = large.events.iter().all(|event| times(event) > 0);
            Ok(whole.then_some(twice))
        })
        .await?;
    let middle = (1..large.events.len()).contains(&produced);
    Ok((middle && twice > 0).then(|| {
        format!(
            "killed when {produced} of {LARGE} rows were in the topic; {twice} of them came again"
        )
    }))
}

/// The server drops a relay that does not answer; when it goes on, it connects again.
async fn frozen(run: &mut Run) -> anyhow::Result<Proof> {
    let url = run.flow().pipeline().deployment().database_url();
    let timeout = Changed::walsender_timeout(url, TIMEOUT).await?;
    // A relay reads the timeout when it connects.
    run.stop("relay").await?;
    run.start("relay", Service::Relay, &[]).await;
    // What the slot has passed and the ledger lacks is the sweep's to send while the relay stands
    // still. Without posts the relay comes to the point where there is none.
    run.stop("write-api").await?;
    run.until(WITHIN, "the relay has entered everything", async |run| {
        let missing = run.missing(Stage::Published).await?.count;
        Ok((missing == 0 && slot::is_active(run).await?).then_some(()))
    })
    .await?;
    run.signal("relay", Signal::Stop)?;
    let begun = Instant::now();
    run.start("write-api", Service::WriteApi, &[]).await;
    let dropped = run
        .until(WITHIN, "the server drops the relay", async |run| {
            Ok((!slot::is_active(run).await?).then_some(()))
        })
        .await;
    timeout.restore().await?;
    dropped?;
    let after = begun.elapsed();
    let posts = run.rng().usize(30..60);
    run.more_posts(posts).await?;
    let unpublished = run.missing(Stage::Published).await?.count;
    // A sweep that starts now looks at once: one that did not wait for the relay would send them.
    run.stop("sweep").await?;
    run.start_again(Service::Sweep).await;
    tokio::time::sleep(run.grace() + INTERVAL * 2).await;
    run.signal("relay", Signal::Cont)?;
    run.fault_over().await?;
    run.until(WITHIN, "the relay streams again", async |run| {
        Ok(slot::is_active(run).await?.then_some(()))
    })
    .await?;
    Ok((unpublished > 0).then(|| {
        format!("the server dropped the relay after {after:.1?}; {unpublished} events were not published")
    }))
}

/// The second relay waits, says so, and takes over. A stall of Postgres and one of the stand-by
/// together are longer than the promise; then it has to be kept the next time.
async fn taken_over(run: &mut Run) -> anyhow::Result<Proof> {
    run.start("relay-2", Service::Relay, &[]).await;
    let address = run.process("relay-2")?.admin().to_owned();
    run.until(WITHIN, "the second relay is a stand-by", async |_| {
        let (_, told) = http_get(&address, "/readyz").await.unwrap_or_default();
        Ok(told.contains("standby").then_some(()))
    })
    .await?;
    let mut slow = Vec::new();
    for (killed, standby) in [("relay", "relay-2"), ("relay-2", "relay")] {
        let posts = run.rng().usize(20..40);
        run.more_posts(posts).await?;
        run.kill(killed)?;
        let begun = Instant::now();
        run.fault_over().await?;
        run.until(WITHIN, "the stand-by streams", async |run| {
            let text = run.scrape(standby)?;
            let streams = text
                .lines()
                .any(|line| line == "tideline_relay_state{state=\"streaming\"} 1");
            Ok(streams.then_some(()))
        })
        .await?;
        let took = begun.elapsed();
        // The one that was killed comes back, as a stand-by.
        run.start(killed, Service::Relay, &[]).await;
        if took <= TAKEN_OVER_WITHIN {
            return Ok(Some(format!(
                "the stand-by streamed {took:.1?} after the kill"
            )));
        }
        slow.push(took);
    }
    bail!("not within {TAKEN_OVER_WITHIN:?}: the stand-by streamed after {slow:.1?}")
}

/// Waits until a relay has produced something and then stands still with work to do.
async fn until_it_stands(run: &mut Run) -> anyhow::Result<()> {
    let first = run.flow().records().await?;
    let mut still = Still::default();
    run.until(WITHIN, "the relay stands at its crash point", async |run| {
        let records = run.flow().records().await?;
        let stands = still.see(records) && records > first;
        let work = run.missing(Stage::Published).await?.count > 0;
        Ok((stands && work).then_some(()))
    })
    .await
}
