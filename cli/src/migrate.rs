//! `tideline migrate`: Postgres, then the CQL store, then the topics.
//!
//! Owns the order, the waiting for servers that are still booting, and the report. Each step is
//! idempotent where it lives, so a run that was stopped in the middle is completed by the next.

use std::{error::Error, time::Duration};

use database::migrations::{self, SlotOutcome};
use events::Class;
use kafka::topics;
use runtime::{
    Health, Shutdown,
    exit::Exit,
    startup::{GivenUp, wait_for},
};
use tokio::time::Instant;

use crate::{config::Config, servers};

/// Migrates and reports, a line per server.
///
/// # Errors
/// [`Exit`] with the first server that failed; what was done before it stays.
pub async fn run(config: &Config) -> Result<(), Exit> {
    let kafka = servers::kafka(config)?;
    let waiting = Waiting::until(config.startup.budget.0);

    let options = migrations::Options {
        url: config.postgres.url.expose(),
        slot: &config.postgres.slot,
        publication: &config.postgres.publication,
    };
    let report = waiting
        .wait("postgres", database::Error::class, || {
            migrations::migrate(&options)
        })
        .await?;
    println!("postgres  {}", postgres_line(&report, &options));

    let nodes = servers::nodes(config);
    let (keyspace, replicas) = (&config.cql.keyspace, config.cql.replication_factor);
    let report = waiting
        .wait("cql", timeline_store::StoreError::class, || {
            timeline_store::schema::migrate(&nodes, keyspace, replicas)
        })
        .await?;
    println!(
        "cql       keyspace {keyspace} at version {}, {} applied",
        report.version, report.applied
    );

    let report = waiting
        .wait("kafka", kafka::Error::class, || topics::create(&kafka))
        .await?;
    println!(
        "kafka     {} topics created, {} present",
        report.created.len(),
        report.existing.len()
    );
    for topic in &report.created {
        println!("          created {topic}");
    }
    Ok(())
}

/// One budget for all servers together.
struct Waiting {
    deadline: Instant,
    health: Health,
    // Never triggered: a signal ends the process, and the next run completes the work.
    shutdown: Shutdown,
}

impl Waiting {
    fn until(budget: Duration) -> Self {
        Self {
            deadline: Instant::now() + budget,
            health: Health::new(),
            shutdown: Shutdown::new(),
        }
    }

    async fn wait<T, E, F, Fut>(
        &self,
        server: &'static str,
        class: fn(&E) -> Class,
        attempt: F,
    ) -> Result<T, Exit>
    where
        E: Error + Send + Sync + 'static,
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let passes = |error: &E| class(error).is_retried();
        wait_for(server, left, &self.health, &self.shutdown, passes, attempt)
            .await
            .map_err(|given_up| match given_up {
                GivenUp::Final(error) => match class(&error) {
                    Class::Config => Exit::config(error),
                    Class::Outage | Class::Unsure | Class::Record | Class::Bug => Exit::bug(error),
                },
                GivenUp::OutOfBudget(_) | GivenUp::Shutdown => Exit::dependency(given_up),
            })
    }
}

fn postgres_line(report: &migrations::Report, options: &migrations::Options<'_>) -> String {
    let mut parts = Vec::new();
    if report.database_created {
        parts.push("database created".to_owned());
    }
    match report.applied.as_slice() {
        [] => parts.push("schema up to date".to_owned()),
        applied => parts.push(format!("applied {}", applied.join(", "))),
    }
    parts.push(format!(
        "outbox days: {} created, {} present",
        report.days.created, report.days.present
    ));
    if report.days.blocked > 0 {
        parts.push(format!(
            "{} outbox days blocked by rows in tideline.outbox_default",
            report.days.blocked
        ));
    }
    let made = |new: bool| if new { "created" } else { "present" };
    parts.push(format!(
        "publication {} {}",
        options.publication,
        made(report.publication_created)
    ));
    if report.epoch_started {
        parts.push("epoch 1 begun".to_owned());
    }
    parts.push(match report.slot {
        SlotOutcome::Created => format!("slot {} created", options.slot),
        SlotOutcome::Present => format!("slot {} present", options.slot),
        SlotOutcome::Lost => format!(
            "slot {} LOST: the relay has used it, so it decides what was missed",
            options.slot
        ),
    });
    parts.join("; ")
}
