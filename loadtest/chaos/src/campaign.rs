//! Which runs, in which order, and until when.
//!
//! Owns the choice of the next run (pure: the time that has passed comes in) and doing them one
//! after the other, so that one that fails, or panics, does not stop the rest. Each run leaves a
//! line in the file of results.

use std::{
    panic::AssertUnwindSafe,
    path::PathBuf,
    str::FromStr,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, anyhow};
use futures::FutureExt as _;
use testkit::{Server, Servers};

use crate::{
    Scenario,
    report::Report,
    results::{self, Outcome, Standing},
    server_settings,
};

/// Seeds one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// The first one.
    pub first: u64,
    /// The last one, which belongs to them.
    pub last: u64,
}

impl FromStr for Seeds {
    type Err = String;

    /// `A..B`, both included.
    fn from_str(text: &str) -> Result<Self, String> {
        let fault = || format!("{text:?} are no seeds: write them as 1..10, both included");
        let (first, last) = text.split_once("..").ok_or_else(fault)?;
        let seeds = Self {
            first: first.parse().map_err(|_| fault())?,
            last: last.parse().map_err(|_| fault())?,
        };
        if seeds.first > seeds.last {
            return Err(fault());
        }
        Ok(seeds)
    }
}

/// The runs that are to come: every scenario with the first seed, then with the next.
#[derive(Clone, Debug)]
pub struct Agenda {
    scenarios: Vec<&'static Scenario>,
    seeds: Seeds,
    budget: Option<Duration>,
    index: usize,
    seed: Option<u64>,
    started: bool,
}

impl Agenda {
    /// Every scenario with each of the seeds.
    pub fn of_seeds(scenarios: Vec<&'static Scenario>, seeds: Seeds) -> Self {
        Self {
            scenarios,
            seeds,
            budget: None,
            index: 0,
            seed: Some(seeds.first),
            started: false,
        }
    }

    /// Round after round with rising seeds from `first`, as long as a run would be over within the
    /// budget even if it took as long as it may; at least one.
    pub fn of_time(scenarios: Vec<&'static Scenario>, first: u64, budget: Duration) -> Self {
        let last = u64::MAX;
        Self {
            budget: Some(budget),
            ..Self::of_seeds(scenarios, Seeds { first, last })
        }
    }

    /// The next run, now that so much time has passed.
    pub fn next(&mut self, passed: Duration) -> Option<(&'static Scenario, u64)> {
        // After a whole round of which nothing fits, nothing ever will.
        for _ in 0..self.scenarios.len() {
            let candidate = self.take()?;
            let fits = self
                .budget
                .is_none_or(|budget| passed.saturating_add(candidate.0.bound()) <= budget);
            if fits || !self.started {
                self.started = true;
                return Some(candidate);
            }
        }
        None
    }

    fn take(&mut self) -> Option<(&'static Scenario, u64)> {
        let seed = self.seed?;
        let scenario = *self.scenarios.get(self.index)?;
        self.index += 1;
        if self.index == self.scenarios.len() {
            self.index = 0;
            self.seed = (seed < self.seeds.last).then(|| seed + 1);
        }
        Some((scenario, seed))
    }
}

/// Does one run after another and tells of each.
#[derive(Debug)]
pub struct Campaign {
    /// The file of results.
    pub results: PathBuf,
    /// The commit that is tested.
    pub commit: String,
    /// What has been done.
    pub outcomes: Vec<Outcome>,
}

impl Campaign {
    /// Does every run of the agenda.
    ///
    /// # Errors
    /// When the file of results cannot be written.
    pub async fn run(&mut self, mut agenda: Agenda) -> anyhow::Result<()> {
        let begun = Instant::now();
        while let Some((scenario, seed)) = agenda.next(begun.elapsed()) {
            let outcome = self.one(scenario, seed).await;
            results::append(&self.results, &outcome)?;
            self.outcomes.push(outcome);
        }
        Ok(())
    }

    async fn one(&self, scenario: &'static Scenario, seed: u64) -> Outcome {
        eprintln!("{} seed {seed}: begins", scenario.name);
        let begun = Instant::now();
        // In place, so that an interrupt drops it, which puts everything back.
        let report = AssertUnwindSafe(Box::pin(attempt(scenario, seed)))
            .catch_unwind()
            .await
            .unwrap_or_else(|panic| Err(anyhow!("{}", words(panic.as_ref()))));
        let when = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let outcome = Outcome::new(scenario, seed, &report, begun.elapsed(), when, &self.commit);
        if let Some(proof) = &outcome.proof {
            eprintln!("{}: hit: {proof}", scenario.name);
        }
        for fault in &outcome.failed {
            eprintln!("{} seed {seed}: {fault}", scenario.name);
        }
        match (outcome.standing(), &outcome.known_failing) {
            (Standing::KnownFailing, Some(reason)) => {
                eprintln!("{}: known failing: {reason}", scenario.name);
            }
            (Standing::Unexpected, Some(reason)) => eprintln!(
                "{}: GOOD, ALTHOUGH IT IS MARKED AS FAILING ({reason}): remove the mark",
                scenario.name
            ),
            _ => {}
        }
        println!("{outcome}");
        outcome
    }
}

async fn attempt(scenario: &'static Scenario, seed: u64) -> anyhow::Result<Report> {
    as_found().await.context("before the run")?;
    scenario.run(seed).await
}

/// Puts right what a run that was killed, or failed, may have left: a server that is down, a
/// setting that is lowered.
async fn as_found() -> anyhow::Result<()> {
    let servers = Servers::get().await;
    for server in Server::ALL {
        servers.start(server).await;
    }
    server_settings::reset(&servers.postgres_url("postgres")).await
}

/// What a panic said.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("the run panicked").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;

    fn two() -> Vec<&'static Scenario> {
        scenario::all().take(2).collect()
    }

    fn names(agenda: &mut Agenda, passed: Duration) -> Vec<(&'static str, u64)> {
        std::iter::from_fn(|| agenda.next(passed))
            .map(|(scenario, seed)| (scenario.name, seed))
            .take(5)
            .collect()
    }

    #[test]
    fn each_seed_goes_over_every_scenario() {
        let [first, second] = [two()[0].name, two()[1].name];
        let seeds = Seeds { first: 3, last: 4 };
        let mut agenda = Agenda::of_seeds(two(), seeds);
        assert_eq!(
            names(&mut agenda, Duration::MAX),
            [(first, 3), (second, 3), (first, 4), (second, 4)]
        );
        let seeds = Seeds {
            first: u64::MAX,
            last: u64::MAX,
        };
        assert_eq!(
            names(&mut Agenda::of_seeds(two(), seeds), Duration::ZERO).len(),
            2
        );
    }

    #[test]
    fn with_a_budget_the_rounds_go_on_while_a_run_can_end_in_time() {
        let [first, second] = [two()[0], two()[1]];
        let bound = first.bound().max(second.bound());
        let mut agenda = Agenda::of_time(two(), 1, bound);
        assert_eq!(
            names(&mut agenda, Duration::ZERO),
            [
                (first.name, 1),
                (second.name, 1),
                (first.name, 2),
                (second.name, 2),
                (first.name, 3)
            ]
        );
        assert!(agenda.next(bound).is_none());
    }

    #[test]
    fn one_run_is_started_however_small_the_budget() {
        let mut agenda = Agenda::of_time(two(), 9, Duration::ZERO);
        assert_eq!(names(&mut agenda, Duration::ZERO), [(two()[0].name, 9)]);
        assert!(
            Agenda::of_time(Vec::new(), 1, Duration::MAX)
                .next(Duration::ZERO)
                .is_none()
        );
    }

    #[test]
    fn seeds_are_read_with_both_ends() {
        assert_eq!("2..5".parse(), Ok(Seeds { first: 2, last: 5 }));
        for text in ["5..2", "1", "..", "a..b", "1...2"] {
            assert!(text.parse::<Seeds>().is_err(), "{text}");
        }
    }
}
