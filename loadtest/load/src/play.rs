//! One run from its first account to its report.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use database::Pool;
use fastrand::Rng;
use judge::journal_file::{self, JournalFile};
use judge::{Journal, Verdict};
use report::{Fact, Machine, Run};
use tokio::sync::watch;

use crate::deliveries::Source;
use crate::judgement::{self, Places};
use crate::metrics::{Metrics, Seen};
use crate::plan::{Plan, Population};
use crate::run::{Arrived, Shared, dispatch};
use crate::scenario::Scenario;
use crate::screen::Screen;
use crate::settle::{self, Unsettled};
use crate::summary::{self, Facts};
use crate::target::{Target, Unfit};
use crate::{process, progress, stage};

/// How long somebody who asked to stop waits for what is on its way.
const HURRY: Duration = Duration::from_secs(5);

/// Turns true when somebody asks to stop.
pub type Stop = watch::Receiver<bool>;

/// What a run ended with.
#[derive(Debug)]
pub struct Played {
    /// Everything that is known of it.
    pub run: Run,
    /// The last line.
    pub last_line: String,
    /// Somebody asked to stop.
    pub stopped: bool,
    /// Nothing at all was answered.
    pub nothing_answered: bool,
}

/// Plays a scenario against a deployment; journal and report go to `folder`.
///
/// # Errors
/// [`Unfit`] when it cannot begin, or what is needed to judge it does not answer.
pub async fn play(
    scenario: &Scenario,
    target: &Target,
    folder: &Path,
    command: String,
    screen: &Arc<Screen>,
    stop: Stop,
) -> Result<Played, Unfit> {
    let machine = Machine::look();
    let started = SystemTime::now().duration_since(UNIX_EPOCH);
    let started_ms = started.map_or(0, |since| since.as_millis() as u64);
    let summary = stage::rehearse(scenario).map_err(Unfit::Usage)?;
    screen.say(&summary.to_string());
    let name = format!("l{started_ms:x}");
    let (stage, plan) = tokio::select! {
        stage = Stage::set(scenario, target, folder, name, screen) => stage?,
        () = stopped(stop.clone()) => return Err(Unfit::Usage(anyhow!("stopped before the first operation"))),
    };
    let before = stage.metrics.look().await;
    let course = stage.run(plan, stop).await.map_err(Unfit::Gone)?;
    screen.say("everything is sent and settled, judging …");
    let found = stage.find(scenario, target, folder).await?;
    let versions = versions(stage.pool.as_ref(), &target.notes).await;
    let tally = stage.shared.tally();
    let facts = Facts {
        scenario,
        summary: &summary,
        tally: &tally,
        verdict: &found.verdict,
        journal: &found.journal,
        journal_notes: found.notes,
        course: &course,
        before,
        versions,
        machine,
        started_ms,
        command,
        lag: stage.metrics.series(),
        uncertainty: stage.shared.ahead().uncertainty(),
        stores_judged: found.stores_judged,
    };
    Ok(Played {
        last_line: summary::last_line(&facts),
        run: summary::run(&facts),
        stopped: course.arrived == Arrived::Stopped,
        nothing_answered: tally.counts.planned > 0 && tally.counts.answered() == 0,
    })
}

/// What was loaded, as far as it tells, and by what.
async fn versions(pool: Option<&Pool>, told: &[Fact]) -> Vec<Fact> {
    let mut versions = vec![Fact::new("load", env!("CARGO_PKG_VERSION"))];
    if let Some(pool) = pool
        && let Ok(client) = pool.get().await
        && let Ok(row) = client.query_one("show server_version", &[]).await
        && let Ok(version) = row.try_get::<_, String>(0)
    {
        versions.push(Fact::new("postgres", version));
    }
    versions.extend_from_slice(told);
    versions
}

/// What the judge found, and in which journal.
struct Found {
    journal: Journal,
    notes: Vec<String>,
    verdict: Verdict,
    stores_judged: bool,
}

/// How a run went, apart from what was counted.
#[derive(Clone, Debug)]
pub struct Course {
    /// How the arrivals ended.
    pub arrived: Arrived,
    /// When the last operation was answered.
    pub sent: Duration,
    /// When everything was at rest.
    pub settled: Duration,
    /// What was not at rest in time.
    pub unsettled: Unsettled,
    /// CPU time of this process while operations arrived.
    pub cpu: Option<Duration>,
    /// The services' own counts at the end.
    pub after: Seen,
}

/// A deployment that is ready for a run.
struct Stage {
    shared: Arc<Shared>,
    population: Arc<Population>,
    pool: Option<Pool>,
    metrics: Arc<Metrics>,
    source: Source,
    screen: Arc<Screen>,
}

impl Stage {
    /// Finds the deployment, and makes accounts, follows, journal and plan.
    async fn set(
        scenario: &Scenario,
        target: &Target,
        folder: &Path,
        name: String,
        screen: &Arc<Screen>,
    ) -> Result<(Self, Plan), Unfit> {
        let client = target.client().await?;
        let pool = target.pool().await?;
        let metrics = Metrics::new(target.metric_urls()).map_err(Unfit::Usage)?;
        let database = target.postgres.as_deref().zip(pool.as_ref());
        let prepared = stage::prepare(scenario, &name, &client, database, folder, screen).await?;
        let population = Arc::new(prepared.population);
        let plan = Plan::new(scenario, &population).map_err(Unfit::Usage)?;
        let source = match &pool {
            Some(pool) => Source::Postgres(pool.clone()),
            None => Source::Api {
                per_second: scenario.probe.deliveries_per_s,
            },
        };
        let (journal, accounts) = (prepared.journal, prepared.accounts);
        let stage = Self {
            shared: Arc::new(Shared::new(client, journal, accounts, scenario, name)),
            population,
            pool,
            metrics: Arc::new(metrics),
            source,
            screen: Arc::clone(screen),
        };
        Ok((stage, plan))
    }

    async fn run(&self, plan: Plan, stop: Stop) -> anyhow::Result<Course> {
        let watching = {
            let (shared, metrics) = (Arc::clone(&self.shared), Arc::clone(&self.metrics));
            let screen = Arc::clone(&self.screen);
            Aborted(tokio::spawn(async move {
                progress::show(&shared, &metrics, &screen).await;
            }))
        };
        let following = {
            let (shared, source) = (Arc::clone(&self.shared), self.source.clone());
            Aborted(tokio::spawn(async move { source.follow(&shared).await }))
        };
        let cpu_before = process::cpu_time();
        let arrived = dispatch(plan, &self.shared, stopped(stop.clone())).await?;
        let sent = self.shared.clock.now();
        let cpu = process::cpu_time()
            .zip(cpu_before)
            .map(|(now, before)| now - before);
        drop(following);
        let patience = match arrived {
            Arrived::All => self.shared.limits.settle,
            Arrived::Stopped => HURRY,
        };
        let unsettled =
            settle::settle(&self.shared, &self.source, self.pool.as_ref(), patience).await?;
        let after = self.metrics.look().await;
        drop(watching);
        self.screen.freeze();
        Ok(Course {
            arrived,
            sent,
            settled: self.shared.clock.now(),
            unsettled,
            cpu,
            after,
        })
    }

    /// Reads the journal back from its file, as another process would, and judges it.
    async fn find(
        &self,
        scenario: &Scenario,
        target: &Target,
        folder: &Path,
    ) -> Result<Found, Unfit> {
        let ended = self.shared.journal.end().context("ending the journal");
        ended.map_err(Unfit::Gone)?;
        let file = journal_file::read(&folder.join(crate::JOURNAL));
        let file = file.context("reading the journal back");
        let JournalFile { mut journal, notes } = file.map_err(Unfit::Gone)?;
        let store = target.timelines().await.map_err(Unfit::Gone)?;
        let places = Places {
            pool: self.pool.as_ref(),
            store: store.as_ref(),
            read_api: target.read_base(),
            tokens: self.shared.client.tokens(),
        };
        let mut rng = Rng::with_seed(scenario.seed);
        let accounts = &self.shared.accounts;
        let verdict =
            judgement::judge(&mut journal, places, &self.population, accounts, &mut rng).await;
        Ok(Found {
            verdict: verdict.context("judging").map_err(Unfit::Gone)?,
            journal,
            notes,
            stores_judged: self.pool.is_some() && store.is_some(),
        })
    }
}

/// A task that ends with its owner.
struct Aborted(tokio::task::JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn stopped(mut stop: Stop) {
    // Nobody left who could ask: then nobody does.
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
