//! Several sweeps, and sweeps that are killed at work.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use events::Stage;
use testkit::Service;

use super::{Cast, LIMIT, Proof, Scenario, Stands, Sweep, slot};
use crate::{Run, account, census, metrics};

/// A sweep that stands at a crash point stands for at least this long: twice the time in which one
/// that goes on would have claimed.
const STANDS: Duration = Duration::from_secs(5);
/// Longer than look, position, grace and claim take.
const REACHED_WITHIN: Duration = Duration::from_secs(40);
const STREAMS_WITHIN: Duration = Duration::from_secs(40);

/// So few rows in a claim that no single one heals everything.
const SMALL_CLAIMS: (&str, &str) = ("TIDELINE_SWEEP__CLAIM_BATCH", "5");
const DISPATCH: (&str, &str) = ("TIDELINE_SWEEP__MODE", "dispatch");
const OFTEN: (&str, &str) = ("TIDELINE_SWEEP__DISPATCH_INTERVAL", "100ms");

/// The sweep comes later.
const NO_SWEEP: Cast = Cast {
    sweeps: &[],
    ..Cast::ONE_OF_EACH
};

const TWO: Cast = Cast {
    sweeps: &["sweep", "sweep-2"],
    sweep_env: &[SMALL_CLAIMS],
    ..Cast::ONE_OF_EACH
};

/// The third one comes later, with a crash point.
const DISPATCHERS: Cast = Cast {
    relay: false,
    sweeps: &["sweep", "sweep-2"],
    sweep_env: &[DISPATCH, OFTEN],
    ..Cast::ONE_OF_EACH
};

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "sweep-killed",
        about: "the sweep is killed at each of its crash points while it heals a lost slot",
        covers: &[30, 31],
        cast: NO_SWEEP,
        fault: |run| Box::pin(killed(run)),
        sweep: Sweep::Heals,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "two-sweeps-and-a-relay",
        about: "two sweeps heal a lost slot at once: each event is sent once",
        covers: &[31],
        cast: TWO,
        fault: |run| Box::pin(two_and_a_relay(run)),
        sweep: Sweep::HealsOnce,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "sweep-races",
        about: "two sweeps that wait for nothing look all the time, while relay and fan-out are slow",
        covers: &[32],
        cast: RACING,
        fault: |run| Box::pin(races(run)),
        sweep: Sweep::Counts,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "dispatchers",
        about: "no relay, three sweeps dispatch, one of them is killed in the middle",
        covers: &[31],
        cast: DISPATCHERS,
        fault: |run| Box::pin(dispatchers(run)),
        sweep: Sweep::Dispatches,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
];

/// A look every moment, and no time for a ledger entry to follow.
const RACING: Cast = Cast {
    relay_env: &[("FAILPOINTS", "relay::produced=sleep(10)")],
    fanout_env: &[("FAILPOINTS", "fanout::page-written=sleep(10)")],
    sweeps: &["sweep", "sweep-2"],
    sweep_env: &[
        ("TIDELINE_SWEEP__INTERVAL", "100ms"),
        ("TIDELINE_SWEEP__GRACE", "1ms"),
        ("TIDELINE_SWEEP__POLL", "20ms"),
    ],
    ..Cast::ONE_OF_EACH
};

/// Where a sweep is killed, and what is to be seen of it from outside while it stands there.
#[derive(Clone, Copy, Debug)]
enum Point {
    Looked,
    Claimed,
    Produced,
    Committed,
}

/// What is to be seen of the sweeps from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sight {
    /// The backend that holds a claim and waits for its sweep.
    claim: Option<i32>,
    records: u64,
    redelivered: i64,
    missing: i64,
}

impl Point {
    const ALL: [Self; 4] = [Self::Looked, Self::Claimed, Self::Produced, Self::Committed];

    const fn name(self) -> &'static str {
        match self {
            Self::Looked => "sweep::looked",
            Self::Claimed => "sweep::claimed",
            Self::Produced => "sweep::produced",
            Self::Committed => "sweep::committed",
        }
    }

    /// Whether a sweep that was started at `before` may stand at this point.
    fn fits(self, before: Sight, now: Sight) -> bool {
        let produced = now.records > before.records;
        let entered = now.redelivered > before.redelivered;
        match (self, now.claim) {
            (Self::Looked, None) => !produced && !entered,
            (Self::Claimed, Some(_)) => !produced && !entered,
            (Self::Produced, Some(_)) => produced && !entered,
            (Self::Committed, None) => produced && entered,
            _ => false,
        }
    }
}

/// A slot is lost; sweep after sweep dies at the next step of the repair, the last one ends it.
async fn killed(run: &mut Run) -> anyhow::Result<Proof> {
    let Some(lost) = slot::lose(run).await? else {
        return Ok(None);
    };
    run.until(STREAMS_WITHIN, "the relay has a slot again", async |run| {
        Ok(slot::is_active(run).await?.then_some(()))
    })
    .await?;
    let mut told = vec![lost];
    for point in Point::ALL {
        let Some(seen) = kill_at(run, point).await? else {
            return Ok(None);
        };
        told.push(seen);
    }
    run.fault_over().await?;
    run.start("sweep", Service::Sweep, &[]).await;
    Ok(Some(told.join("; ")))
}

/// Starts a sweep that stops at a point, waits until it stands there and kills it.
async fn kill_at(run: &mut Run, point: Point) -> anyhow::Result<Option<String>> {
    let name = point.name();
    let stop_there = format!("{name}=pause");
    let before = sight(run).await?;
    let extra = [("FAILPOINTS", stop_there.as_str()), SMALL_CLAIMS];
    run.spawn("sweep", Service::Sweep, &extra);
    let begun = Instant::now();
    let mut since = None;
    let seen = loop {
        // A claim and its records speak for themselves; a look has to be told from a start.
        let looked = !matches!(point, Point::Looked) || is_inside_its_first_look(run)?;
        let now = sight(run).await?;
        if looked && point.fits(before, now) {
            let same = since.filter(|(_, earlier): &(Instant, Sight)| {
                (earlier.claim, earlier.records) == (now.claim, now.records)
            });
            let (first, _) = *since.insert(same.unwrap_or((Instant::now(), now)));
            if first.elapsed() >= STANDS {
                break now;
            }
        } else {
            since = None;
        }
        ensure!(
            begun.elapsed() < REACHED_WITHIN,
            "no sweep stands at {name}: before {before:?}, now {now:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    run.kill("sweep")?;
    // Without anything left to heal the next sweep would stand nowhere.
    let claim = seen.claim.map_or("no claim", |_| "a claim");
    Ok((seen.missing > 0).then(|| {
        format!(
            "killed at {name} with {claim}, {} records, {} entered, {} missing",
            seen.records, seen.redelivered, seen.missing
        )
    }))
}

/// A slot is lost while no relay runs; two sweeps and a new relay share the rest.
async fn two_and_a_relay(run: &mut Run) -> anyhow::Result<Proof> {
    // It leaves nothing in flight: whatever is sent twice was sent for nothing.
    run.stop("relay").await?;
    slot::drop_slot(run).await?;
    let posts = run.rng().usize(60..120);
    run.more_posts(posts).await?;
    let unpublished = run.missing(Stage::Published).await?.count;
    run.start("relay", Service::Relay, &[]).await;
    run.fault_over().await?;
    let shares = shares(run, &["sweep", "sweep-2"]).await?;
    Ok(shares.map(|shares| {
        format!("{unpublished} events not published before the relay was back; sent {shares}")
    }))
}

/// Waits until the sweeps have sent something; answers how much each.
async fn shares(run: &mut Run, names: &[&str]) -> anyhow::Result<Option<String>> {
    run.until(REACHED_WITHIN, "the sweeps send", async |run| {
        let mut all = Vec::new();
        for name in names {
            all.push(sent(run, name)?);
        }
        let any = all.iter().any(|&sent| sent > 0.0);
        let words: Vec<String> = all.iter().map(f64::to_string).collect();
        Ok(any.then(|| Some(words.join(" and "))))
    })
    .await
}

/// Three sweeps publish everything; one is killed while it holds a claim.
async fn dispatchers(run: &mut Run) -> anyhow::Result<Proof> {
    const STOP_AT_THE_FIFTH: &str = "sweep::claimed=4*off->pause";
    let extra = [("FAILPOINTS", STOP_AT_THE_FIFTH), DISPATCH, OFTEN];
    run.spawn("sweep-3", Service::Sweep, &extra);
    let begun = Instant::now();
    let mut since: Option<(Instant, i32)> = None;
    let missing = loop {
        let now = claim(run).await?;
        since = match (since, now) {
            (Some((first, earlier)), Some(now)) if earlier == now => Some((first, earlier)),
            (_, Some(now)) => Some((Instant::now(), now)),
            (_, None) => None,
        };
        if since.is_some_and(|(first, _)| first.elapsed() >= STANDS) {
            break run.missing(Stage::Published).await?.count;
        }
        ensure!(
            begun.elapsed() < REACHED_WITHIN,
            "the third dispatcher does not stand at its claim"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    run.kill("sweep-3")?;
    run.fault_over().await?;
    Ok((missing > 0).then(|| format!("killed at its fifth claim, {missing} events not published")))
}

/// What is under way is missing at every look, and is not lost.
async fn races(run: &mut Run) -> anyhow::Result<Proof> {
    const LASTS: Duration = Duration::from_secs(20);
    const MISSING: &str = "tideline_sweep_missing";
    const LOOKS: &str = "tideline_sweep_look_seconds_count";
    let (mut seen, begun) = (0_u32, Instant::now());
    while begun.elapsed() < LASTS {
        for name in ["sweep", "sweep-2"] {
            let missing = metrics::sum(&run.scrape(name)?, MISSING);
            seen += u32::from(missing.context("no such metric")? > 0.0);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let looks = metrics::sum(&run.scrape("sweep")?, LOOKS).context("no such metric")?;
    run.fault_over().await?;
    let sent = census::read(run.flow()).await?;
    Ok((seen >= 20 && looks >= 20.0).then(|| {
        format!(
            "{looks} looks of one sweep, {seen} times something under way was missing; {} records were sent, {} of them of events that a topic had",
            sent.by_sweep(),
            sent.doubled()
        )
    }))
}

async fn sight(run: &Run) -> anyhow::Result<Sight> {
    Ok(Sight {
        claim: claim(run).await?,
        records: census::read(run.flow()).await?.by_sweep(),
        redelivered: account::redelivered(run.flow()).await?,
        missing: run.missing(Stage::Published).await?.count,
    })
}

/// The backend that holds an advisory lock in a transaction that does nothing.
pub(super) async fn claim(run: &Run) -> anyhow::Result<Option<i32>> {
    const SQL: &str = "select a.pid from pg_locks l join pg_stat_activity a using (pid)
        where l.locktype = 'advisory' and l.granted and a.datname = current_database()
            and a.state = 'idle in transaction' order by 1 limit 1";
    let sql = run.flow().sql().get().await?;
    Ok(sql.query_opt(SQL, &[]).await?.map(|row| row.get(0)))
}

/// Whether the sweep has started and not come past its first look, which it would have told of,
/// because there is something missing. Asked of its log: a process that stands need not answer.
fn is_inside_its_first_look(run: &mut Run) -> anyhow::Result<bool> {
    let log = std::fs::read_to_string(run.process("sweep")?.log())?;
    Ok(log.contains("sweep started") && !log.contains("missing stage="))
}

fn sent(run: &mut Run, name: &str) -> anyhow::Result<f64> {
    let text = run.scrape(name)?;
    metrics::sum(&text, "tideline_sweep_redelivered_total").context("no such metric")
}
