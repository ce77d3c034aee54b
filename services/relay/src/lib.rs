//! Streams the outbox from a replication slot into Kafka.
//!
//! ```text
//!   Postgres                      relay                                   Kafka
//!   slot ──CopyData──▶ source ──▶ core: route, limits, confirm ──▶ sink ──▶ <ns>.posts.v1, <ns>.follows.v1
//!     ▲                              │                               │  └─▶ <topic>.relay.dlq, tideline.dead_letters
//!     └────── confirmed LSN ◀────────┘◀────────── acknowledged ──────┘
//!                                    └──▶ delivery_ledger (published), relay_position
//! ```
//!
//! Promise: no LSN is confirmed before the broker, or the dead-letter topic, has acknowledged
//! every row up to it (D-3); with nothing outstanding the confirmed position follows the server's
//! (D-4); per author the first copies are in commit order (D-5); memory is bounded by
//! configuration (D-13).
//!
//! Rows are produced as they arrive, so the end LSN of their commit is not known yet: the headers
//! `ce_sequence` and `tideline-commit-lsn` carry the LSN of the commit *record* (`final_lsn` of
//! Begin), which is unique to the transaction and rises in commit order.
//!
//! | failure | what happens | state |
//! |---|---|---|
//! | Postgres away or restarting | reconnect with backoff; rows since the confirmed position repeat | `connecting` |
//! | another relay holds the slot | asks again within a second | `standby` |
//! | Kafka does not acknowledge | reading pauses; after `sink_patience` the replication connection closes | `sink_unavailable` |
//! | Kafka's client fails for good | a new client; rows since the confirmed position repeat | `sink_unavailable` |
//! | slot missing or lost | made anew, told as an error, the sweep delivers what the ledger lacks; with `on_slot_lost = "stop"` unready, the fix is told | `slot_lost` |
//! | publication missing or changed | unready, the fix is told | `publication_gap` |
//! | publication back after rows passed without it | slot moved past the spot, the sweep delivers those rows | `publication_gap` |
//! | slot moved further by somebody | the sweep is asked to look | |
//! | another server or timeline | a new epoch; records and entries name it | |
//! | a required column is missing | unready, the fix is told | `schema_error` |
//! | row too large, without key or payload, of unknown type | dead letter, row in `dead_letters`, the stream moves on | |
//! | ledger entry not written | a few attempts, then dropped and counted; the sweep repeats harmlessly | |
//! | crash | rows since the confirmed position repeat | |
//!
//! A row of unknown type goes to the dead letters of its `aggregatetype`'s topic, and to those of
//! the posts topic when that is unknown too.

pub mod config;
pub mod core;
pub mod error;
pub mod event_loop;
pub mod metrics;
pub mod sink;
pub mod source;

use std::time::Duration;

use database::Pool;
use events::Class;
use kafka::KafkaConfig;
use prometheus::Registry;
use replication::ReplicationConfig;
use runtime::{
    Admin, Health, Running, Shutdown,
    exit::Exit,
    startup::{GivenUp, wait_for},
};

use crate::config::Config;
use crate::core::{Relay, Router};
use crate::event_loop::EventLoop;
use crate::metrics::RelayMetrics;
use crate::sink::{Ledger, Letters, Sink};
use crate::source::{Positions, Source};

/// How long the last ledger entries may take.
const LAST_ENTRIES: Duration = Duration::from_secs(5);

/// Runs the relay until `shutdown`.
///
/// # Errors
/// [`Exit`] when it cannot start, or cannot go on.
pub fn run(config: Config, shutdown: Shutdown) -> Running {
    Box::pin(run_here(config, shutdown))
}

async fn run_here(config: Config, shutdown: Shutdown) -> Result<(), Exit> {
    config.check().map_err(Exit::config)?;
    let registry = Registry::new();
    let metrics = RelayMetrics::new(&registry).map_err(Exit::bug)?;
    let health = Health::new();
    let admin = Admin::open(&config.relay.admin, "relay", health.clone(), registry)
        .await
        .map_err(Exit::config)?;
    let outcome = serve(&config, &shutdown, health, metrics).await;
    admin.close().await;
    outcome
}

async fn serve(
    config: &Config,
    shutdown: &Shutdown,
    health: Health,
    metrics: RelayMetrics,
) -> Result<(), Exit> {
    let Some(mut event_loop) = start(config, shutdown, health, metrics).await? else {
        // Asked to stop before it had started.
        return Ok(());
    };
    event_loop.run(shutdown).await?;
    let EventLoop { ledger, sink, .. } = event_loop;
    ledger.close(LAST_ENTRIES).await;
    sink.close().await;
    Ok(())
}

/// Waits for the servers and puts the parts together. None when asked to stop meanwhile.
async fn start(
    config: &Config,
    shutdown: &Shutdown,
    health: Health,
    metrics: RelayMetrics,
) -> Result<Option<EventLoop>, Exit> {
    let url = config.postgres.url.expose();
    let pool = Pool::new(url, config.postgres.pool_size, "tideline-relay").map_err(Exit::config)?;
    let mut replication = ReplicationConfig::from_url(url).map_err(Exit::config)?;
    replication.application_name = "tideline-relay".to_owned();
    let kafka = &config.kafka;
    let kafka_config = KafkaConfig::new(&kafka.brokers, &kafka.namespace, kafka.replication_factor)
        .map_err(Exit::config)?;

    let budget = config.startup.budget.0;
    let schema = || database::migrations::verify(&pool);
    let passes = |error: &database::Error| error.class().is_retried();
    match wait_for("postgres", budget, &health, shutdown, passes, schema).await {
        Ok(()) => {}
        Err(GivenUp::Shutdown) => return Ok(None),
        Err(GivenUp::Final(error)) => return Err(Exit::config(error)),
        Err(GivenUp::OutOfBudget(error)) => return Err(Exit::dependency(error)),
    }
    // `tideline migrate` may still be making the topics.
    let passes = |error: &kafka::Error| {
        error.class().is_retried() || matches!(error, kafka::Error::TopicMissing { .. })
    };
    let topics = || sink::verify(&kafka_config);
    let max_bytes = match wait_for("kafka", budget, &health, shutdown, passes, topics).await {
        Ok(max_bytes) => max_bytes,
        Err(GivenUp::Shutdown) => return Ok(None),
        Err(GivenUp::Final(error)) => return Err(by_class(error)),
        Err(GivenUp::OutOfBudget(error)) => return Err(Exit::dependency(error)),
    };

    // The real epoch comes with each connection, before any row.
    let router = Router::new(&kafka_config.namespace, "", max_bytes);
    let letters = Letters::start(pool.clone(), config.relay.max_rows_in_flight);
    let sink = Sink::new(kafka_config.clone(), letters).map_err(by_class)?;
    let ledger = Ledger::start(pool.clone(), metrics.ledger_failures(), config.relay.ledger);
    Ok(Some(EventLoop {
        core: Relay::new(router, config.limits(), config.timing(), fastrand::u64(..)),
        source: Source {
            config: replication,
            slot: config.postgres.slot.clone(),
            publication: config.postgres.publication.clone(),
            on_slot_lost: config.relay.on_slot_lost,
            positions: Positions::new(pool.clone(), &config.postgres.slot),
            pool,
        },
        sink,
        ledger,
        kafka: kafka::Admin::new(&kafka_config).map_err(by_class)?,
        health,
        metrics,
    }))
}

fn by_class(error: kafka::Error) -> Exit {
    match error.class() {
        Class::Bug => Exit::bug(error),
        Class::Outage | Class::Unsure => Exit::dependency(error),
        Class::Config | Class::Record => Exit::config(error),
    }
}
