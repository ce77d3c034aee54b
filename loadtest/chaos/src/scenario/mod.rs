//! The faults, as data: a name, who is on stage, what happens, and what the sweep may do about it.
//!
//! One file for each family, which lists its own. To add a fault: an async function in its family
//! and an entry in the family's list. The function answers what shows that the fault was hit, or
//! nothing when it was not. Whether the system coped is the judge's to say, for all of them alike;
//! what the judge cannot see, such as an exit code, is a complaint (`Run::complain`).

mod account_damaged;
mod addresses;
mod api;
mod broker;
mod cast;
mod celebrity;
mod clock;
mod fanout;
mod frozen;
mod group;
mod network;
mod nodes;
mod outbox;
mod postgres;
mod power;
mod publication;
mod relay;
mod relay_killed;
mod slot;
mod still;
mod stops;
mod store;
mod sweepers;

use std::time::{Duration, Instant};

use anyhow::Context;
use futures::future::LocalBoxFuture;

pub(crate) use cast::{Cast, Link, Nodes};

use crate::{Run, account, census, report::Report, rest};

/// A system that has not recovered by then is judged as it is.
const RECOVERY: Duration = Duration::from_secs(90);
/// Posts after the fault, to see that the flow goes on.
const AFTERWARDS: usize = 20;
/// Followers whose timelines are read through the API.
const READERS: usize = 6;
/// Making a deployment and starting its processes, before the limit of a scenario begins, takes no
/// longer than this.
const SET_UP: Duration = Duration::from_secs(45);
/// The same with servers of its own.
const SET_UP_NODES: Duration = Duration::from_secs(150);
/// The limit of a scenario that needs no longer one.
const LIMIT: Duration = Duration::from_secs(240);
/// The grace of the sweeps. Faults that have to outlast several rounds are measured by it.
const GRACE: Duration = Duration::from_secs(2);
/// Where every change is tried, on machines that stall, an entry may be some seconds late; a sweep
/// that has to be silent must not take it for lost.
const LONG_GRACE: Duration = Duration::from_secs(10);
/// The limit of one that waits for servers.
const LONG: Duration = Duration::from_secs(360);

/// What a fault shows for having been hit.
pub(crate) type Proof = Option<String>;

/// A fault that happens to a run.
type Fault = for<'a> fn(&'a mut Run) -> LocalBoxFuture<'a, anyhow::Result<Proof>>;

/// One fault.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What happens, in one line.
    pub about: &'static str,
    /// The numbers of the fault table in the design that it shows.
    pub covers: &'static [u8],
    cast: Cast,
    fault: Fault,
    /// What the sweep may do about it.
    pub sweep: Sweep,
    /// A run that takes longer has failed.
    pub limit: Duration,
    /// Whether it is short and steady enough for every change.
    pub quick: bool,
    /// Whether it holds today.
    pub stands: Stands,
}

/// What the sweep may do in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// It has to send something again, or nothing was missing; it may repeat.
    Heals,
    /// It has to, and sends nothing that nobody missed.
    HealsOnce,
    /// It is all that sends: each event once, and none of them again.
    Dispatches,
    /// Nothing is missing, only late: not one record (D-10).
    Silent,
    /// As it sees fit, but what it sends it has to count.
    Counts,
    /// As it sees fit.
    May,
}

/// Whether a scenario holds today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// A run that fails is news.
    Green,
    /// It fails, because something is not built yet; a run that does not is news.
    Failing(&'static str),
}

/// The lists of the families.
const FAMILIES: &[&[Scenario]] = &[
    api::SCENARIOS,
    relay_killed::SCENARIOS,
    postgres::SCENARIOS,
    outbox::SCENARIOS,
    slot::SCENARIOS,
    publication::SCENARIOS,
    relay::SCENARIOS,
    broker::SCENARIOS,
    fanout::SCENARIOS,
    celebrity::SCENARIOS,
    group::SCENARIOS,
    network::SCENARIOS,
    nodes::SCENARIOS,
    addresses::SCENARIOS,
    clock::SCENARIOS,
    store::SCENARIOS,
    sweepers::SCENARIOS,
    account_damaged::SCENARIOS,
    frozen::SCENARIOS,
    power::SCENARIOS,
    stops::SCENARIOS,
];

/// Every fault there is.
pub fn all() -> impl Iterator<Item = &'static Scenario> {
    FAMILIES.iter().copied().flatten()
}

impl Stands {
    /// Why it is known to fail.
    pub const fn known_failing(self) -> Option<&'static str> {
        match self {
            Self::Green => None,
            Self::Failing(reason) => Some(reason),
        }
    }
}

impl Scenario {
    /// The scenario of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        all().find(|scenario| scenario.name == name)
    }

    /// How long a run takes at most, its preparations included.
    pub fn bound(&self) -> Duration {
        let set_up = match self.cast.nodes {
            Nodes::Shared => SET_UP,
            Nodes::ThreeBrokers | Nodes::ThreeStores => SET_UP_NODES,
        };
        self.limit + set_up
    }

    fn grace(&self) -> Duration {
        if self.quick && self.sweep == Sweep::Silent {
            LONG_GRACE
        } else {
            GRACE
        }
    }

    /// Runs it on a fresh deployment, whose choices follow from `seed`.
    ///
    /// # Errors
    /// When it is not over within its limit, a service ends by itself, or a server does not
    /// answer. That the promise was broken is in the report.
    pub async fn run(&self, seed: u64) -> anyhow::Result<Report> {
        // Its own steps are bounded, and compiling the services is none of the system's time.
        let mut run = Run::begin(&self.cast, self.grace(), seed).await?;
        let limit = self.limit;
        let outcome = tokio::time::timeout(limit, self.act(&mut run)).await;
        let outcome = outcome
            .with_context(|| format!("not over within {limit:?}"))
            .flatten();
        let good = outcome
            .as_ref()
            .is_ok_and(|report| report.faults(self.sweep).is_empty());
        if !good {
            rest::tell(&mut run).await;
        }
        outcome
    }

    async fn act(&self, run: &mut Run) -> anyhow::Result<Report> {
        let begun = Instant::now();
        let proof = (self.fault)(run).await?;
        let recovery = run.recovered(RECOVERY).await?;
        run.more_posts(AFTERWARDS).await?;
        let sent = run.end_load().await?;
        let unaccounted = rest::reached(run).await?;
        run.all_run()?;
        let mut verdict = run.flow().judge().await?;
        verdict.dead_letters_expected = run.expected_letters();
        run.flow().walk(&mut verdict, READERS).await?;
        run.all_run()?;
        let census = census::read(run.flow()).await?;
        let report = Report {
            proof,
            verdict,
            sent,
            redelivered: account::redelivered(run.flow()).await?,
            ghosts: account::without_row(run.flow(), &census.events()).await?,
            census,
            planted: run.planted(),
            complaints: run.complaints(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for scenario in all() {
            let found = Scenario::find(scenario.name).expect("listed");
            assert_eq!(found.about, scenario.about, "{}", scenario.name);
        }
        assert!(Scenario::find("slot").is_none());
    }

    #[test]
    fn the_specification_has_a_row_for_each() {
        const PAGE: &str = include_str!("../../../../docs/specs/chaos.md");
        let rows = |scenario: &Scenario| {
            let mark = if scenario.quick { " *quick*" } else { "" };
            let start = format!("| `{}`{mark} |", scenario.name);
            PAGE.lines().filter(|line| line.starts_with(&start)).count()
        };
        let wrong: Vec<&str> = all()
            .filter(|scenario| rows(scenario) != 1)
            .map(|scenario| scenario.name)
            .collect();
        assert!(
            wrong.is_empty(),
            "docs/specs/chaos.md: no single row of {wrong:?}"
        );
        let listed = PAGE
            .lines()
            .filter(|line| line.starts_with("| `") && line.matches('|').count() == 6);
        // The page has other tables, of fewer columns.
        assert_eq!(
            listed.count(),
            all().count(),
            "rows of scenarios that are gone"
        );
    }

    #[test]
    fn the_quick_ones_hold_and_are_short() {
        let quick: Vec<_> = all().filter(|scenario| scenario.quick).collect();
        assert!(!quick.is_empty());
        for scenario in quick {
            assert_eq!(scenario.stands, Stands::Green, "{}", scenario.name);
            assert!(scenario.limit <= LIMIT, "{}", scenario.name);
        }
    }
}
