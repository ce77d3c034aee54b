//! Fan-out: reads posts from Kafka and writes one timeline row for each follower.
//!
//! ```text
//!  Kafka posts ──▶ source/consume ──▶ core/state ──▶ lane/posts, one task a record
//!                      ▲                  │            │ source/followers: page, page, …
//!                      └──── commit ◀─────┘            │ core/delivery + core/row
//!                                                      ├─▶ sink/timeline      rows, deletes
//!                                                      ├─▶ sink/progress      ledger, post_delivery
//!                                                      └─▶ sink/dead_letters  topic, then row
//! ```
//!
//! Promise: an offset is committed only when the rows of every earlier record of its partition
//! are written, or its dead letter is stored (D-6); a replay of any record changes nothing (D-7);
//! a deleted post never comes back (D-8); memory is bounded by configuration (D-13).
//!
//! | failure | what happens |
//! |---|---|
//! | Postgres, Kafka or the store is down, or an outcome is unknown | no more records are taken, each step is tried again with jitter, polling goes on (D-12) |
//! | a record is not an event, or its post is past the tombstone horizon | dead letter acknowledged, row entered, offset moves |
//! | no such post in the database, `fanout.visible_within` after the first look | nothing is written, counted as a ghost, no ledger entry |
//! | partitions are taken away | what is in work is drained for 4 s, committed, then given up |
//! | the log no longer has the next record, or the topic is a new one | told as an error, counted, goes on at the log's start, the sweep delivers what the ledger lacks |
//! | the topic is deleted | an outage: goes on when it is there again |
//! | a record names an epoch that has ended | delivered, not entered in the ledger, counted; the sweep repeats it |
//! | the ledger cannot be written | dropped after five attempts, counted; never in the path of an offset |
//! | the broker fences the membership, as after an outage | the group is joined again; what was in work is done again |
//! | that twice in a minute: another process has the same instance id | exit 64 |
//! | configuration or rights are wrong | exit 64 |
//! | the work on a record panics | tried again; a dead letter (`panicked`) at the third time |
//! | a panic elsewhere, or the consumer's client is unusable | exit 70; nothing is committed for it |

pub mod config;
pub mod core;
pub mod error;
mod event_loop;
mod lane;
pub mod metrics;
mod sink;
mod source;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use database::Pool;
use events::{Class, topic::TopicKind};
use kafka::{KafkaConfig, Producer};
use prometheus::Registry;
use runtime::{
    Admin, Health, Running, Shutdown,
    exit::Exit,
    report::chain,
    startup::{GivenUp, wait_for},
};
use timeline_store::CqlTimelines;
use tokio::sync::Semaphore;

pub use crate::config::Config;
use crate::{
    core::{delivery::Rules, membership::Membership, state::State},
    error::FanoutError,
    event_loop::EventLoop,
    lane::{
        attempts::{Attempts, Outages},
        drive::Driver,
        posts::Posts,
    },
    metrics::FanoutMetrics,
    sink::{
        dead_letters::DeadLetters, progress::Progress, requests::Requests, timeline::Timelines,
    },
    source::{consume::Source, followers::Followers},
};

/// The tombstone horizon stays below `gc_grace_seconds` by this, for clocks and slow writes.
const HORIZON_MARGIN: Duration = Duration::from_secs(3_600);

/// Runs fan-out until `shutdown`.
///
/// # Errors
/// The reason, with the exit code of the process.
pub fn run(config: Config, shutdown: Shutdown) -> Running {
    Box::pin(run_here(config, shutdown))
}

async fn run_here(config: Config, shutdown: Shutdown) -> Result<(), Exit> {
    config.check().map_err(Exit::config)?;
    let registry = Registry::new();
    let metrics = FanoutMetrics::new(&registry).map_err(Exit::bug)?;
    let health = Health::new();
    let admin = Admin::open(
        &config.fanout.admin,
        "tideline-fanout",
        health.clone(),
        registry,
    )
    .await
    .map_err(Exit::config)?;
    let outcome = serve(&config, &shutdown, metrics, health).await;
    admin.close().await;
    outcome
}

async fn serve(
    config: &Config,
    shutdown: &Shutdown,
    metrics: FanoutMetrics,
    health: Health,
) -> Result<(), Exit> {
    let kafka = config.kafka().map_err(Exit::config)?;
    let pool = Pool::new(
        config.postgres.url.expose(),
        config.postgres.pool_size,
        "tideline-fanout",
    )
    .map_err(Exit::config)?;
    let Some(store) = wait_for_dependencies(config, &kafka, &pool, shutdown, &health).await? else {
        return Ok(());
    };
    let (progress, flusher) = Progress::start(pool.clone(), metrics.clone());
    let requests = Arc::new(Requests::start(pool.clone(), metrics.clone()));
    let lane = Arc::new(lane(config, &kafka, pool, store, progress, &metrics)?);
    let mut membership = Membership::default();
    let began = Instant::now();
    let outcome = loop {
        let source = Source::join(
            &kafka,
            &kafka.namespace.fanout_posts_group(),
            &kafka.namespace.topic(TopicKind::Posts),
            &config.fanout.instance_id,
        )
        .map_err(|error| exit_of(error.into()))?;
        health.started();
        tracing::info!("fan-out started");
        let state = State::new(config.limits());
        let (lane, requests) = (Arc::clone(&lane), Arc::clone(&requests));
        let outcome = EventLoop::new(
            source,
            state,
            lane,
            requests,
            metrics.clone(),
            health.clone(),
        )
        .run(shutdown)
        .await;
        let now_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        match outcome {
            Err(error @ FanoutError::Fenced { .. }) if membership.fenced(now_us) => {
                metrics.rebalances.with_label_values(&["fenced"]).inc();
                tracing::warn!(error = %chain(&error), "membership lost, joining the group again");
            }
            outcome => break outcome,
        }
    };
    // What was noted is flushed already, at the end of each loop.
    flusher.abort();
    outcome.map_err(exit_of)
}

fn lane(
    config: &Config,
    kafka: &KafkaConfig,
    pool: Pool,
    store: CqlTimelines,
    progress: Progress,
    metrics: &FanoutMetrics,
) -> Result<Posts<CqlTimelines>, Exit> {
    let (producer, _no_tags) =
        Producer::new(kafka, "tideline-fanout").map_err(|error| exit_of(error.into()))?;
    let attempts = Attempts {
        outages: Outages::default(),
        metrics: metrics.clone(),
    };
    let horizon = store.gc_grace().saturating_sub(HORIZON_MARGIN);
    let driver = Driver {
        followers: Followers::new(pool.clone(), config.fanout.page_rows),
        timelines: Timelines::new(store),
        rules: Rules {
            retention_us: config.timelines.retention.micros(),
            horizon_us: i64::try_from(horizon.as_micros()).unwrap_or(i64::MAX),
            page_rows: config.fanout.page_rows,
            visible_within_us: config.fanout.visible_within.micros(),
        },
        rows: Arc::new(Semaphore::new(config.fanout.rows_in_flight)),
        attempts: attempts.clone(),
        metrics: metrics.clone(),
    };
    let dead_letters =
        DeadLetters::new(producer, kafka.namespace.fanout_posts_dead_letters(), pool);
    Ok(Posts {
        driver,
        dead_letters,
        progress,
        attempts,
        metrics: metrics.clone(),
    })
}

/// Rides over servers that are still booting or not yet migrated. `None`: asked to stop.
async fn wait_for_dependencies(
    config: &Config,
    kafka: &KafkaConfig,
    pool: &Pool,
    shutdown: &Shutdown,
    health: &Health,
) -> Result<Option<CqlTimelines>, Exit> {
    let budget = config.startup.budget.0;
    let cql = config.cql();
    let passes = |error: &FanoutError| error.class().is_retried();
    let postgres = wait_for("postgres", budget, health, shutdown, passes, || async {
        database::migrations::verify(pool)
            .await
            .map_err(FanoutError::from)
    });
    let topics = wait_for("kafka", budget, health, shutdown, passes, || async {
        kafka::topics::verify(kafka)
            .await
            .map_err(FanoutError::from)
    });
    let store = wait_for("cql", budget, health, shutdown, passes, || async {
        CqlTimelines::connect(&cql).await.map_err(FanoutError::from)
    });
    match tokio::try_join!(postgres, topics, store) {
        Ok(((), (), store)) => Ok(Some(store)),
        Err(GivenUp::Shutdown) => Ok(None),
        Err(GivenUp::OutOfBudget(error)) => Err(Exit::dependency(error)),
        Err(GivenUp::Final(error)) => Err(exit_of(error)),
    }
}

fn exit_of(error: FanoutError) -> Exit {
    match error.class() {
        Class::Config => Exit::config(error),
        Class::Outage | Class::Unsure => Exit::dependency(error),
        Class::Record | Class::Bug => Exit::bug(error),
    }
}
