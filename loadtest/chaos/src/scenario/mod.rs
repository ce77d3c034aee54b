//! The faults, as data: a name, who is on stage, what happens, and what the sweep may do about it.
//!
//! One file for each family. To add a fault: an async function in its family and an entry in
//! [`ALL`]. The function answers what shows that the fault was hit, or nothing when it was not;
//! it never says whether the system coped, which the judge does for all of them alike.

mod broker;
mod group;
mod publication;
mod relay;
mod slot;
mod sweepers;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::Context;
use events::Stage;
use futures::future::LocalBoxFuture;

use crate::{Run, account, metrics, report::Report, run::GRACE};

/// The account and its gauge come to zero within so long after the load.
const REST: Duration = Duration::from_secs(60);
/// A system that has not recovered by then is judged as it is.
const RECOVERY: Duration = Duration::from_secs(60);
/// Posts after the fault, to see that the flow goes on.
const AFTERWARDS: usize = 20;
/// Followers whose timelines are read through the API.
const READERS: usize = 6;

/// What a fault shows for having been hit.
pub(crate) type Proof = Option<String>;

/// One fault.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What happens, in one line.
    pub about: &'static str,
    cast: Cast,
    fault: for<'a> fn(&'a mut Run) -> LocalBoxFuture<'a, anyhow::Result<Proof>>,
    /// What the sweep may do about it.
    pub sweep: Sweep,
    /// A run that takes longer has failed.
    pub limit: Duration,
}

/// What the sweep may do in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// It has to send something again, or nothing was missing; it may repeat.
    Heals,
    /// It has to, and sends nothing that nobody missed.
    HealsOnce,
    /// Nothing is missing, only late: not one record (D-10).
    Silent,
    /// As it sees fit.
    May,
}

/// Who is on stage when the load begins, besides the two APIs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cast {
    pub(crate) relay: bool,
    pub(crate) relay_env: Env,
    pub(crate) fanout: Env,
    pub(crate) sweeps: &'static [&'static str],
    pub(crate) sweep_env: Env,
}

type Env = &'static [(&'static str, &'static str)];

impl Cast {
    /// One of each.
    const ONE_OF_EACH: Self = Self {
        relay: true,
        relay_env: &[],
        fanout: &[],
        sweeps: &["sweep"],
        sweep_env: &[],
    };
}

const LIMIT: Duration = Duration::from_secs(180);

/// Every fault there is.
pub const ALL: &[Scenario] = &[
    Scenario {
        name: "slot-dropped",
        about: "the walsender is ended and the slot dropped while the relay is behind",
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(slot::dropped(run)),
        sweep: Sweep::Heals,
        limit: LIMIT,
    },
    Scenario {
        name: "slot-invalidated",
        about: "max_slot_wal_keep_size is exceeded while the relay stands still",
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(slot::invalidated(run)),
        sweep: Sweep::Heals,
        limit: LIMIT,
    },
    Scenario {
        name: "publication-dropped",
        about: "the publication is dropped, rows are inserted, it is made again",
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(publication::dropped(run)),
        sweep: Sweep::May,
        limit: LIMIT,
    },
    Scenario {
        name: "relay-absent",
        about: "no relay is ever started",
        cast: Cast {
            relay: false,
            ..Cast::ONE_OF_EACH
        },
        fault: |run| Box::pin(relay::absent(run)),
        sweep: Sweep::Heals,
        limit: LIMIT,
    },
    Scenario {
        name: "relay-throttled",
        about: "the relay is frozen again and again, for longer than several rounds of the sweep",
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(relay::throttled(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
    },
    Scenario {
        name: "broker-down",
        about: "the broker is stopped for longer than several rounds of the sweep",
        cast: broker::CAST,
        fault: |run| Box::pin(broker::down(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
    },
    Scenario {
        name: "topic-recreated",
        about: "the posts topic is deleted, unread records and all, and made again",
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(group::topic_recreated(run)),
        sweep: Sweep::Heals,
        limit: LIMIT,
    },
    Scenario {
        name: "offsets-reset",
        about: "the offsets of fan-out's group are set to the end while it is stopped",
        cast: group::CAST,
        fault: |run| Box::pin(group::offsets_reset(run)),
        sweep: Sweep::Heals,
        limit: LIMIT,
    },
    Scenario {
        name: "offsets-deleted",
        about: "the offsets of fan-out's group are deleted while it is stopped",
        cast: group::CAST,
        fault: |run| Box::pin(group::offsets_deleted(run)),
        sweep: Sweep::May,
        limit: LIMIT,
    },
    Scenario {
        name: "sweep-killed",
        about: "the sweep is killed at each of its crash points while it heals a lost slot",
        cast: sweepers::NO_SWEEP,
        fault: |run| Box::pin(sweepers::killed(run)),
        sweep: Sweep::Heals,
        limit: LIMIT,
    },
    Scenario {
        name: "two-sweeps-and-a-relay",
        about: "two sweeps heal a lost slot at once: each event is sent once",
        cast: sweepers::TWO,
        fault: |run| Box::pin(sweepers::two_and_a_relay(run)),
        sweep: Sweep::HealsOnce,
        limit: LIMIT,
    },
    Scenario {
        name: "dispatchers",
        about: "no relay, three sweeps dispatch, one of them is killed in the middle",
        cast: sweepers::DISPATCHERS,
        fault: |run| Box::pin(sweepers::dispatchers(run)),
        sweep: Sweep::HealsOnce,
        limit: LIMIT,
    },
];

impl Scenario {
    /// The scenario of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|scenario| scenario.name == name)
    }

    /// Runs it on a fresh deployment, whose choices follow from `seed`.
    ///
    /// # Errors
    /// When it is not over within its limit, a service ends by itself, or a server does not
    /// answer. That the promise was broken is in the report.
    pub async fn run(&self, seed: u64) -> anyhow::Result<Report> {
        // Its own steps are bounded, and compiling the services is none of the system's time.
        let mut run = Run::begin(&self.cast, seed).await?;
        let limit = self.limit;
        let outcome = tokio::time::timeout(limit, self.act(&mut run)).await;
        let outcome = outcome
            .with_context(|| format!("not over within {limit:?}"))
            .flatten();
        let good = outcome
            .as_ref()
            .is_ok_and(|report| report.faults(self.sweep).is_empty());
        if !good {
            tell(&run).await;
        }
        outcome
    }

    async fn act(&self, run: &mut Run) -> anyhow::Result<Report> {
        let begun = Instant::now();
        let proof = (self.fault)(run).await?;
        let recovery = run.recovered(RECOVERY).await?;
        run.more_posts(AFTERWARDS).await?;
        let sent = run.end_load().await?;
        let unaccounted = at_rest(run).await?;
        let mut verdict = run.flow().judge().await?;
        run.flow().walk(&mut verdict, READERS).await?;
        run.all_run()?;
        let report = Report {
            proof,
            verdict,
            sent,
            redelivered: account::redelivered(run.flow()).await?,
            census: account::census(run.flow()).await?,
            unaccounted,
            recovery,
        };
        eprintln!(
            "{}: {} posts, {} deleted, {} unfollows, {} records by the sweep, {} of them of events that a topic had, {:.0?}",
            self.name,
            report.sent.posts,
            report.sent.deleted,
            report.sent.unfollowed,
            report.census.by_sweep(),
            report.census.doubled(),
            begun.elapsed()
        );
        Ok(report)
    }
}

/// Waits until nothing is unaccounted for, by Postgres and by each sweep's own gauge; answers what
/// is left when that does not come about.
async fn at_rest(run: &mut Run) -> anyhow::Result<i64> {
    let begun = Instant::now();
    loop {
        let left = unaccounted(run).await?;
        if left.values().all(|&count| count == 0) || begun.elapsed() > REST {
            // A sweep that is about to send something for nothing gets the time to do so.
            tokio::time::sleep(GRACE * 2).await;
            return Ok(left.into_values().max().unwrap_or(0));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// What is unaccounted for, by who says so.
async fn unaccounted(run: &Run) -> anyhow::Result<BTreeMap<String, i64>> {
    const GAUGE: &str = "tideline_ledger_unaccounted";
    let mut left = BTreeMap::new();
    let sql = run.flow().sql().get().await?;
    for stage in Stage::ALL.into_iter().filter(|stage| stage.critical()) {
        let account = database::account::of_stage(&sql, stage).await?;
        let count = i64::try_from(account.unaccounted)?;
        let _none = left.insert(format!("postgres {}", stage.as_str()), count);
    }
    for (number, sweep) in run.sweeps().enumerate() {
        let text = sweep.scrape()?;
        let stages =
            metrics::series(&text, GAUGE).map(|(labels, value)| (labels.to_owned(), value));
        let stages: Vec<_> = stages.collect();
        anyhow::ensure!(
            stages.len() == Stage::ALL.len(),
            "a sweep does not tell {GAUGE} of every stage"
        );
        for (labels, value) in stages {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a count of events of one run"
            )]
            let _none = left.insert(format!("sweep {number} {labels}"), value.round() as i64);
        }
    }
    Ok(left)
}

/// Says where a run that failed stands.
async fn tell(run: &Run) {
    match unaccounted(run).await {
        Ok(left) => eprintln!("unaccounted: {left:?}"),
        Err(error) => eprintln!("unaccounted: {error:#}"),
    }
    for (name, log) in run.logs() {
        eprintln!("── {name}, {}\n{}", log.display(), sandbox::tail(log, 8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for scenario in ALL {
            let found = Scenario::find(scenario.name).expect("listed");
            assert_eq!(found.about, scenario.about, "{}", scenario.name);
        }
        assert!(Scenario::find("slot").is_none());
    }
}
