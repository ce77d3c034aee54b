//! The network between the services and the servers: silent, slow, narrow, or cutting connections.
//!
//! Only the services go through the proxies; whoever judges has a way of its own.

use std::time::{Duration, Instant};

use events::{Stage, topic::TopicKind};
use kafka::Admin;
use testkit::{Direction, Fault, Service, http_get};

use super::{Cast, LIMIT, Link, Proof, Scenario, Stands, Sweep};
use crate::{Run, metrics};

/// The design's limit for noticing a peer that is silent, and for being back after it.
const NOTICED_WITHIN: Duration = Duration::from_secs(30);
/// A little longer than that.
const SILENT: Duration = Duration::from_secs(35);
const STEP: Duration = Duration::from_millis(200);
/// Longer than any single step of a fault takes.
const WITHIN: Duration = Duration::from_secs(40);

/// Everything at once, for what does not aim.
const ALL_LINKS: &[Link] = &[Link::Postgres, Link::Kafka, Link::Cql];

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "postgres-silent",
        about: "Postgres answers nobody for 35 s, and no connection ends",
        covers: &[37],
        cast: through(&[Link::Postgres]),
        fault: |run| {
            let who = &["relay", "sweep", "write-api", "read-api"];
            Box::pin(silent(run, Link::Postgres, who))
        },
        sweep: Sweep::Counts,
        limit: LONG,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "kafka-silent",
        about: "the broker answers nobody for 35 s, and no connection ends",
        covers: &[37],
        cast: through(&[Link::Kafka]),
        fault: |run| Box::pin(silent(run, Link::Kafka, &["relay", "fanout", "sweep"])),
        sweep: Sweep::Counts,
        limit: LONG,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "cql-silent",
        about: "the CQL store answers nobody for 35 s, and no connection ends",
        covers: &[37],
        cast: through(&[Link::Cql]),
        fault: |run| Box::pin(silent(run, Link::Cql, &["fanout", "read-api"])),
        sweep: Sweep::Counts,
        limit: LONG,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "connections-reset",
        about: "connections to all three servers are reset again and again",
        covers: &[],
        cast: through(ALL_LINKS),
        fault: |run| Box::pin(resets(run)),
        sweep: Sweep::Counts,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "cql-slow",
        about: "every answer of the CQL store takes 50 to 250 ms",
        covers: &[26],
        cast: through(&[Link::Cql]),
        fault: |run| Box::pin(slow(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "postgres-narrow",
        about: "each connection to Postgres carries 12 KB/s, which the stream does not fit in",
        covers: &[],
        cast: through(&[Link::Postgres]),
        fault: |run| Box::pin(narrow(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "acks-lost",
        about: "the broker appends, and its answers to the relay are cut off, again and again",
        covers: &[19],
        cast: through(&[Link::Kafka]),
        fault: |run| Box::pin(acks_lost(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
];

/// For faults that last half a minute, and then have half a minute.
const LONG: Duration = Duration::from_secs(240);

const fn through(links: &'static [Link]) -> Cast {
    Cast {
        through: links,
        ..Cast::ONE_OF_EACH
    }
}

/// A server behind a path that swallows everything. `who` has to notice and to come back, each in
/// its time, by what `/readyz` says.
async fn silent(run: &mut Run, link: Link, who: &[&'static str]) -> anyhow::Result<Proof> {
    let before = run.proxy(link)?.counters();
    run.proxy(link)?.set(Fault::BlackHole);
    let begun = Instant::now();
    // What was being passed on at that moment still arrives.
    tokio::time::sleep(STEP).await;
    let silent = run.proxy(link)?.counters();
    let mut unaware: Vec<&str> = who.to_vec();
    let (mut noticed, mut late) = (Vec::new(), Vec::new());
    while begun.elapsed() < SILENT {
        for (name, after) in turned(run, &mut unaware, false, begun).await? {
            noticed.push(format!("{name} after {after:.1?}"));
            if after > NOTICED_WITHIN {
                late.push(name);
            }
        }
        tokio::time::sleep(STEP).await;
    }
    let met = run.proxy(link)?.counters();
    run.proxy(link)?.clear();
    run.fault_over().await?;
    for name in unaware.into_iter().chain(late) {
        run.complain(format!(
            "{name} did not notice in {NOTICED_WITHIN:?} that {link:?} is silent"
        ));
    }
    let begun = Instant::now();
    let mut away = who.to_vec();
    while !away.is_empty() && begun.elapsed() < NOTICED_WITHIN {
        let _back = turned(run, &mut away, true, begun).await?;
        tokio::time::sleep(STEP).await;
    }
    for name in away {
        run.complain(format!(
            "{name} is not back {NOTICED_WITHIN:?} after {link:?} is"
        ));
    }
    let (held, swallowed) = (met.held - before.held, met.swallowed - before.swallowed);
    let frozen = met.bytes_to_client == silent.bytes_to_client;
    Ok((held > 0 && frozen).then(|| {
        format!(
            "not one byte came for {SILENT:?}, {held} messages were held, {swallowed} new connections \
             got no answer; noticed by {}",
            noticed.join(", ")
        )
    }))
}

/// Takes those out of `names` whose readiness is this now; answers them with the time.
async fn turned<'a>(
    run: &mut Run,
    names: &mut Vec<&'a str>,
    ready: bool,
    since: Instant,
) -> anyhow::Result<Vec<(&'a str, Duration)>> {
    let mut turned = Vec::new();
    for name in names.clone() {
        let admin = run.process(name)?.admin().to_owned();
        let asked = tokio::time::timeout(WITHIN, http_get(&admin, "/readyz")).await;
        let is_ready = matches!(asked, Ok(Some((200, _))));
        if is_ready == ready {
            turned.push((name, since.elapsed()));
        }
    }
    names.retain(|name| !turned.iter().any(|(found, _)| found == name));
    Ok(turned)
}

/// Short storms of resets on one link after the other, in an order that follows from the seed.
async fn resets(run: &mut Run) -> anyhow::Result<Proof> {
    const ROUNDS: usize = 12;
    for round in 0..ROUNDS {
        let link = ALL_LINKS[run.rng().usize(..ALL_LINKS.len())];
        // Each link at least once.
        let link = ALL_LINKS.get(round).copied().unwrap_or(link);
        let pause = Duration::from_millis(run.rng().u64(200..1_500));
        run.proxy(link)?.set(Fault::Reset);
        tokio::time::sleep(Duration::from_millis(run.rng().u64(20..400))).await;
        run.proxy(link)?.clear();
        tokio::time::sleep(pause).await;
    }
    run.fault_over().await?;
    let mut counts = Vec::new();
    for &link in ALL_LINKS {
        counts.push((link, run.proxy(link)?.counters().reset));
    }
    let all = counts.iter().all(|(_, count)| *count > 0);
    Ok(all.then(|| format!("connections that were reset: {counts:?}")))
}

/// Rows are written all the time, only later.
async fn slow(run: &mut Run) -> anyhow::Result<Proof> {
    const LASTS: Duration = Duration::from_secs(15);
    let seed = run.rng().u64(..);
    run.proxy(Link::Cql)?.reseed(seed);
    let before = run.proxy(Link::Cql)?.counters();
    run.proxy(Link::Cql)?.set_on(
        Direction::ToClient,
        Fault::Latency {
            by: Duration::from_millis(50),
            jitter: Duration::from_millis(200),
        },
    );
    let set = crate::account::newest(run.flow()).await?;
    let begun = Instant::now();
    while begun.elapsed() < LASTS {
        run.more_posts(10).await?;
    }
    let late = crate::account::missing(run.flow(), Stage::Delivered, set).await?;
    let met = run.proxy(Link::Cql)?.counters();
    run.proxy(Link::Cql)?.clear();
    run.fault_over().await?;
    if late.count > 0 {
        run.complain(format!(
            "{} events from before the latency were not delivered {LASTS:?} later",
            late.count
        ));
    }
    let delayed = met.delayed - before.delayed;
    Ok((delayed > 100).then(|| format!("{delayed} answers came late")))
}

/// The relay falls behind, and catches up: a backlog is none of the sweep's business.
async fn narrow(run: &mut Run) -> anyhow::Result<Proof> {
    const LASTS: Duration = Duration::from_secs(20);
    const LEAST: i64 = 50;
    let before = run.proxy(Link::Postgres)?.counters();
    run.proxy(Link::Postgres)?.set_on(
        Direction::ToClient,
        Fault::Bandwidth {
            bytes_per_s: 12_000,
        },
    );
    let begun = Instant::now();
    let mut largest = 0;
    while begun.elapsed() < LASTS {
        largest = largest.max(run.missing(Stage::Published).await?.count);
        tokio::time::sleep(STEP).await;
    }
    let met = run.proxy(Link::Postgres)?.counters();
    run.proxy(Link::Postgres)?.clear();
    run.fault_over().await?;
    let pauses = met.throttled - before.throttled;
    Ok((pauses > 0 && largest >= LEAST)
        .then(|| format!("{pauses} pauses, and up to {largest} events waited for the relay")))
}

/// Only the relay goes through the proxy, so the answers that are lost are the relay's. What the
/// topics have and the relay has no acknowledgement of, while none can come, was lost on the way.
async fn acks_lost(run: &mut Run) -> anyhow::Result<Proof> {
    const ROUNDS: u32 = 8;
    /// Most of them meet a moment in which no record is under way.
    const SAMPLES: u32 = 5;
    let direct = run.flow().pipeline().deployment().kafka_config().brokers;
    let direct = [("TIDELINE_KAFKA__BROKERS", direct.as_str())];
    for (name, service) in [("fanout", Service::Fanout), ("sweep", Service::Sweep)] {
        run.stop(name).await?;
        run.start(name, service, &direct).await;
    }
    let config = run.flow().pipeline().deployment().kafka_config();
    let admin = Admin::new(&config)?;
    let mut lost = 0;
    for _ in 0..ROUNDS {
        // Something has to be under way.
        run.more_posts(5).await?;
        let mut usual = i64::MAX;
        for _ in 0..SAMPLES {
            usual = usual.min(unacknowledged(run, &admin).await?);
        }
        let before = run.proxy(Link::Kafka)?.counters().cut;
        let cut = Fault::CutAfter { bytes: 0 };
        run.proxy(Link::Kafka)?.set_on(Direction::ToClient, cut);
        run.until(WITHIN, "an answer is cut off", async |run| {
            let cut = run.proxy(Link::Kafka)?.counters().cut;
            Ok((cut > before).then_some(()))
        })
        .await?;
        lost += (unacknowledged(run, &admin).await? - usual).max(0);
        run.proxy(Link::Kafka)?.clear();
        let pause = Duration::from_millis(run.rng().u64(300..1_200));
        tokio::time::sleep(pause).await;
    }
    run.fault_over().await?;
    let cut = run.proxy(Link::Kafka)?.counters().cut;
    Ok((lost > 0).then(|| {
        format!("{cut} connections were cut, and {lost} records were appended without an answer")
    }))
}

/// How many records the topics of events have beyond those that the relay saw acknowledged: repeats,
/// and what is on its way. Asked for in this order, what comes meanwhile only makes it more, so that
/// what is usual is never taken for lost.
async fn unacknowledged(run: &mut Run, admin: &Admin) -> anyhow::Result<i64> {
    let text = run.scrape("relay")?;
    let acknowledged: f64 = metrics::series(&text, "tideline_relay_records_total")
        .filter(|(labels, _)| labels.contains("\"acked\""))
        .map(|(_, value)| value)
        .sum();
    let namespace = run.flow().pipeline().deployment().namespace();
    let mut appended = 0;
    for kind in TopicKind::ALL {
        let ends = admin.end_offsets(&namespace.topic(kind)).await?;
        appended += ends.values().sum::<i64>();
    }
    #[expect(clippy::cast_possible_truncation, reason = "a count of one run")]
    Ok(appended - acknowledged.round() as i64)
}
