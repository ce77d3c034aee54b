//! The sweep: finds what was committed and is in no account, and delivers it again.
//!
//! ```text
//!   Postgres                         sweep, one loop per stage                        Kafka
//!   outbox − ledger ──▶ source/missing ──▶ core::Round ──▶ sink/redeliver ──▶ <ns>.posts.v1, <ns>.follows.v1
//!   slot, epoch ──────▶ source/life ─────▶    │               │    └────────▶ <topic>.relay.dlq, tideline.dead_letters
//!   offsets of groups ▶ source/hops ─────▶    │               │
//!     ▲                                       └── wait ◀──────┘
//!     └── redelivery, ledger, discarded ◀── commit of the claim, after every acknowledgement
//!
//!   housekeeping: days made and dropped, ledger rows folded, notes trimmed
//!   flight:       lag of the groups ──▶ gauges; whether the broker answers ──▶ readiness
//!   requests:     tideline.sweep_request ──▶ a look at once
//! ```
//!
//! `published`: a look, then a mark in the WAL; what is *still* missing once the slot has confirmed
//! the mark was lost, since a relay has passed it. `delivered`: only ids that are published; what
//! is still missing once every group has passed the ends of its topics was lost. Nothing is
//! selected by the order of ids or by time.
//!
//! Promise: while a relay is live, positions are known and no ledger insert failed, nothing is
//! sent that is in flight or delivered; several sweepers share the work and send nothing twice
//! (D-10). At rest every committed event is delivered, dead-lettered or discarded with a reason
//! (D-9). A day is dropped only when each of its rows is finished (D-11). Memory is bounded by
//! `sweep.look_ids` and `sweep.claim_batch` (D-13).
//!
//! | failure | what happens | standing |
//! |---|---|---|
//! | the relay is behind | nothing is sent; its backlog is its own | `waiting`, then `blocked` |
//! | the slot is absent or lost, or inactive for `relay_patience` with the broker in reach | what is missing is sent from here | `no_relay` |
//! | a group does not move | nothing is sent, an alarm | `blocked` |
//! | a topic was made anew | nothing is sent until its group commits again | `offset_lost` |
//! | Kafka does not acknowledge | the claim is rolled back, the client made anew, the position read again | |
//! | Kafka does not answer | not ready, within `interval` and the client's 10 s | |
//! | Postgres is away | every step is done again; nothing is remembered that safety needs | |
//! | another server answers (failover, restore) | a new epoch: looks of the old one are thrown away | |
//! | a sweeper freezes or dies in a claim | its lock ends with its connection, after a minute at most | |
//! | crash after the send, before the commit | sent once more, which changes no row | |
//! | row too large, without key, of unknown type | dead letter, as the relay makes it | |
//! | older than `horizon`, or its post was removed | discarded with the reason, counted | |
//! | sent again and again in vain | pauses of 1 min to 6 h, an alarm from the third time | |
//! | a day's rows are unfinished, or somebody holds it | it stays, told with what holds it | |
//! | configuration or rights are wrong at the start | exit 64 | |

pub mod config;
pub mod core;
pub mod error;
mod event_loop;
mod flight;
mod housekeeping;
pub mod metrics;
pub mod once;
mod requests;
mod sink;
mod source;
pub mod summary;
pub mod when;

use std::{sync::Arc, time::Duration};

use database::Pool;
use events::{Class, Stage, topic::TopicKind};
use kafka::KafkaConfig;
use prometheus::Registry;
use runtime::{
    Admin, Health, Running, Shutdown,
    exit::Exit,
    startup::{GivenUp, wait_for},
};
use tokio::{task::JoinSet, time::interval};

pub use crate::{
    config::Config,
    once::Command,
    requests::Asked,
    source::missing::{Looks, Scope},
};
use crate::{
    core::{Mode, Round},
    error::SweepError,
    event_loop::{Places, StageLoop},
    housekeeping::Housekeeping,
    metrics::SweepMetrics,
    requests::Requests,
    sink::{
        publish::Publisher,
        rate::Rate,
        redeliver::{Redeliver, Rules},
    },
    summary::Summary,
};

/// How long the parts may take to end: a claim that waits for acknowledgements.
const END_WITHIN: Duration = Duration::from_secs(30);
/// How often the process says that it lives.
const TICK: Duration = Duration::from_secs(1);

/// Runs the sweep until `shutdown`.
///
/// # Errors
/// The reason, with the exit code of the process.
pub fn run(config: Config, shutdown: Shutdown) -> Running {
    Box::pin(run_here(config, shutdown))
}

async fn run_here(config: Config, shutdown: Shutdown) -> Result<(), Exit> {
    config.check().map_err(Exit::config)?;
    let registry = Registry::new();
    let metrics = SweepMetrics::new(&registry).map_err(Exit::bug)?;
    let health = Health::new();
    let admin = Admin::open(
        &config.sweep.admin,
        "tideline-sweep",
        health.clone(),
        registry,
    )
    .await
    .map_err(Exit::config)?;
    let outcome = serve(config, &shutdown, metrics, health).await;
    admin.close().await;
    outcome
}

/// Looks once, as the command says, and answers what was done.
///
/// # Errors
/// The reason, with the exit code of the process.
pub fn once(config: Config, command: Command, shutdown: Shutdown) -> Running<Summary> {
    Box::pin(once_here(config, command, shutdown))
}

async fn once_here(config: Config, command: Command, shutdown: Shutdown) -> Result<Summary, Exit> {
    config.check().map_err(Exit::config)?;
    let metrics = SweepMetrics::new(&Registry::new()).map_err(Exit::bug)?;
    let asked_to_stop = || SweepError::Ended {
        task: "start",
        text: "asked to stop".to_owned(),
    };
    let parts = Parts::open(config, &shutdown, metrics, Health::new())
        .await?
        .ok_or_else(|| Exit::dependency(asked_to_stop()))?;
    once::run(&parts, &command, &shutdown)
        .await
        .map_err(exit_of)
}

async fn serve(
    config: Config,
    shutdown: &Shutdown,
    metrics: SweepMetrics,
    health: Health,
) -> Result<(), Exit> {
    let Some(parts) = Parts::open(config, shutdown, metrics, health).await? else {
        return Ok(());
    };
    let mut tasks = JoinSet::new();
    for stage in Stage::ALL {
        let stage_loop = parts.stage_loop(stage, parts.scope()).map_err(exit_of)?;
        tasks.spawn(stage_loop.run(shutdown.clone()));
    }
    let (requests, places, stop) = (
        Arc::clone(&parts.requests),
        parts.places.clone(),
        shutdown.clone(),
    );
    tasks.spawn(async move { requests.run(&places.pool, &places.metrics, &stop).await });
    let config = &parts.config;
    let housekeeping = Housekeeping::new(
        parts.places.clone(),
        config.retention_days(),
        config.sweep.housekeeping.0,
    );
    tasks.spawn(housekeeping.run(shutdown.clone()));
    tasks.spawn(flight::watch(
        parts.places.clone(),
        parts.config.mode(),
        parts.health.clone(),
        config.sweep.interval.0,
        shutdown.clone(),
    ));
    parts.health.started();
    tracing::info!(mode = ?config.sweep.mode, "sweep started");
    supervise(tasks, shutdown, &parts.health).await
}

/// Waits for the end of the tasks, which only `shutdown` brings about.
async fn supervise(
    mut tasks: JoinSet<()>,
    shutdown: &Shutdown,
    health: &Health,
) -> Result<(), Exit> {
    let mut tick = interval(TICK);
    loop {
        tokio::select! {
            Some(joined) = tasks.join_next() => {
                if shutdown.is_requested() && joined.is_ok() {
                    break;
                }
                let text = joined.map_or_else(|error| error.to_string(), |()| "without a word".to_owned());
                return Err(Exit::bug(SweepError::Ended { task: "part", text }));
            }
            _ = tick.tick() => health.turned(),
            () = shutdown.requested() => break,
        }
    }
    let ended = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(END_WITHIN, ended).await.is_err() {
        tracing::warn!("a claim was not ended in time; it is rolled back");
    }
    Ok(())
}

/// What every loop is put together from.
pub(crate) struct Parts {
    config: Config,
    kafka: KafkaConfig,
    places: Places,
    rate: Arc<Rate>,
    requests: Arc<Requests>,
    health: Health,
}

impl Parts {
    /// Rides over servers that are still booting or not yet migrated. `None`: asked to stop.
    async fn open(
        config: Config,
        shutdown: &Shutdown,
        metrics: SweepMetrics,
        health: Health,
    ) -> Result<Option<Self>, Exit> {
        let kafka = config.kafka().map_err(Exit::config)?;
        let pool = Pool::new(
            config.postgres.url.expose(),
            config.postgres.pool_size,
            "tideline-sweep",
        )
        .map_err(Exit::config)?;
        let budget = config.startup.budget.0;
        let passes = |error: &SweepError| error.class().is_retried();
        let postgres = wait_for("postgres", budget, &health, shutdown, passes, || async {
            database::migrations::verify(&pool).await?;
            let client = pool.get().await?;
            Ok(database::slots::database(&client).await?)
        });
        let topics = wait_for("kafka", budget, &health, shutdown, passes, || async {
            Ok(kafka::topics::verify(&kafka).await?)
        });
        let database = match tokio::try_join!(postgres, topics) {
            Ok((database, ())) => database,
            Err(GivenUp::Shutdown) => return Ok(None),
            Err(GivenUp::OutOfBudget(error)) => return Err(Exit::dependency(error)),
            Err(GivenUp::Final(error)) => return Err(exit_of(error)),
        };
        let places = Places {
            pool,
            admin: kafka::Admin::new(&kafka).map_err(|error| exit_of(error.into()))?,
            namespace: kafka.namespace.clone(),
            slot: config.postgres.slot.clone(),
            database,
            gauges_for: config.sweep.interval.0.saturating_mul(2),
            metrics,
        };
        Ok(Some(Self {
            rate: Arc::new(Rate::new(config.sweep.rate)),
            requests: Arc::new(Requests::new()),
            config,
            kafka,
            places,
            health,
        }))
    }

    /// The whole outbox.
    const fn scope(&self) -> Scope {
        Scope {
            within: None,
            made: None,
            limit: self.config.sweep.look_ids,
            dry: false,
        }
    }

    fn stage_loop(&self, stage: Stage, scope: Scope) -> Result<StageLoop, SweepError> {
        let timing = self.config.timing(stage);
        let mode = self.config.mode();
        let round = match stage {
            Stage::Published => Round::published(timing, mode),
            Stage::Delivered => Round::delivered(timing, stage.hops().len()),
        };
        let (pool, metrics) = (self.places.pool.clone(), self.places.metrics.clone());
        let publisher = Publisher::new(
            self.kafka.clone(),
            max_bytes(&self.kafka),
            self.places.database.clone(),
        )?;
        let rules = Rules {
            horizon_us: self.config.sweep.horizon.micros(),
            batch: self.config.sweep.claim_batch,
            side_by_side: self.config.side_by_side(),
            dispatches: (stage, mode) == (Stage::Published, Mode::Dispatch),
        };
        let redeliver = Redeliver::new(
            stage,
            pool.clone(),
            publisher,
            Arc::clone(&self.rate),
            rules,
            metrics.clone(),
        );
        Ok(StageLoop::new(
            round,
            Looks::new(stage, pool, mode, scope, metrics),
            redeliver,
            self.places.clone(),
            Arc::clone(&self.requests),
            self.health.clone(),
        ))
    }
}

/// The largest record batch of each topic: what is declared is live, as the start has seen.
fn max_bytes(kafka: &KafkaConfig) -> impl Fn(TopicKind) -> usize + use<> {
    let declared = kafka::topics::declared(&kafka.namespace);
    let namespace = kafka.namespace.clone();
    move |kind| {
        let name = namespace.topic(kind);
        let topic = declared.iter().find(|topic| topic.name == name);
        topic.map_or(0, |topic| {
            usize::try_from(topic.max_message_bytes).unwrap_or(usize::MAX)
        })
    }
}

fn exit_of(error: SweepError) -> Exit {
    match error.class() {
        Class::Config => Exit::config(error),
        Class::Outage | Class::Unsure => Exit::dependency(error),
        Class::Record | Class::Bug => Exit::bug(error),
    }
}
