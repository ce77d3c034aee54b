//! One run: a fresh deployment with its processes, load going on, and the moment the fault ends.
//!
//! Owns the processes by name, so that a fault can freeze, kill and start them, and the clock of
//! the recovery. Does not own what the fault is ([`crate::scenario`]) or what it left
//! ([`crate::report`]).

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use events::{EventId, Stage};
use fastrand::Rng;
use testkit::{
    Addresses, Deployment, Pipeline, Proxy, Service, ServiceProcess, Signal, free_address, proxy,
    ready,
};

use crate::{
    Flow,
    account::{self, Missing},
    load::{self, Load, Sent},
    report::Planted,
    scenario::{Cast, Link, Nodes},
};

/// Few followers: events are what is counted, and the store is compared row by row.
const FOLLOWERS: i64 = 20;
/// As many of them follow an author to the end, at least; the others may leave.
pub(crate) const STAYING: usize = 10;
/// Longer than a service's own deadline for draining.
const STOP_WITHIN: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(100);
/// A process that stands still for a moment answers late; one that is silent for longer is broken.
const TOLD_WITHIN: Duration = Duration::from_secs(30);

/// Short times: a run is over in a minute. Patience stays longer than a busy machine takes for a
/// ledger entry; so does the grace, which the scenario gives.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);
const SWEEP: [(&str, &str); 4] = [
    ("TIDELINE_SWEEP__INTERVAL", "1s"),
    ("TIDELINE_SWEEP__RELAY_PATIENCE", "5s"),
    ("TIDELINE_SWEEP__POLL", "200ms"),
    ("TIDELINE_SWEEP__HOUSEKEEPING", "1s"),
];

/// Everything that a fault needs.
#[derive(Debug)]
pub struct Run {
    // Load and processes end before the deployment: a slot that is in use cannot be dropped.
    load: Option<Load>,
    processes: BTreeMap<&'static str, ServiceProcess>,
    proxies: BTreeMap<Link, Proxy>,
    /// Names that the services know their servers by.
    addresses: Option<Addresses>,
    /// Settings that lead the services through the proxies.
    through: Vec<(String, String)>,
    cast: Cast,
    /// How long each sweep waits for a ledger entry, unless the cast says otherwise.
    grace: Duration,
    flow: Flow,
    rng: Rng,
    /// When the fault was over, and the newest event of that moment.
    over: Option<(Instant, EventId)>,
    expected_letters: i64,
    planted: Planted,
    complaints: Vec<String>,
}

impl Run {
    /// A deployment with the services of `cast`, whose sweeps have this grace, and load that has
    /// gone on for a moment.
    ///
    /// # Errors
    /// When a server refuses.
    pub(crate) async fn begin(cast: &Cast, grace: Duration, seed: u64) -> anyhow::Result<Self> {
        let deployment = match cast.nodes {
            Nodes::Shared => Deployment::new().await,
            Nodes::ThreeBrokers => Deployment::on_three_brokers().await,
            Nodes::ThreeStores => Deployment::on_three_cql_nodes().await,
        };
        let flow = Flow::of(Pipeline::of(deployment), load::CLIENTS, FOLLOWERS).await?;
        let mut run = Self {
            flow,
            cast: *cast,
            grace,
            proxies: BTreeMap::new(),
            addresses: None,
            through: Vec::new(),
            rng: Rng::with_seed(seed),
            load: None,
            processes: BTreeMap::new(),
            over: None,
            expected_letters: 0,
            planted: Planted::default(),
            complaints: Vec::new(),
        };
        for &link in cast.through {
            run.lead_through(link).await;
        }
        run.start("write-api", Service::WriteApi, &[]).await;
        run.start("read-api", Service::ReadApi, &[]).await;
        for name in cast.fanouts {
            run.start(name, Service::Fanout, cast.env(Service::Fanout))
                .await;
        }
        if cast.relay {
            run.start_again(Service::Relay).await;
        }
        for name in cast.sweeps {
            run.start(name, Service::Sweep, cast.env(Service::Sweep))
                .await;
        }
        run.load = Some(run.flow.load_at(seed, cast.pace));
        let posts = run.rng.usize(40..80);
        run.more_posts(posts).await?;
        Ok(run)
    }

    /// Notes that so many rows or records were made that have to become dead letters.
    pub(crate) const fn expect_letters(&mut self, count: i64) {
        self.expected_letters += count;
    }

    /// How many dead letters there have to be at the end.
    pub(crate) const fn expected_letters(&self) -> i64 {
        self.expected_letters
    }

    /// Notes something that is wrong and that neither judge nor account can see.
    pub(crate) fn complain(&mut self, what: String) {
        self.complaints.push(what);
    }

    /// What was noted as wrong.
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.complaints.clone()
    }

    /// Notes what the fault puts into the topics of events itself.
    pub(crate) const fn plant(&mut self, planted: Planted) {
        self.planted = planted;
    }

    /// What the fault put into the topics of events itself.
    pub(crate) const fn planted(&self) -> Planted {
        self.planted
    }

    /// The proxy that the services reach a server through.
    ///
    /// # Errors
    /// When the cast did not ask for it.
    pub(crate) fn proxy(&self, link: Link) -> anyhow::Result<&Proxy> {
        let found = self.proxies.get(&link);
        found.with_context(|| format!("there is no proxy in front of {link:?}"))
    }

    /// Keeps names for as long as there are services that know their servers by them.
    pub(crate) fn keep(&mut self, addresses: Addresses) {
        self.addresses = Some(addresses);
    }

    /// The deployment.
    pub(crate) const fn flow(&self) -> &Flow {
        &self.flow
    }

    /// How long each sweep waits for a ledger entry, unless the cast says otherwise.
    pub(crate) const fn grace(&self) -> Duration {
        self.grace
    }

    /// Chance that follows from the seed.
    pub(crate) const fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Starts a process under a name and waits until it is ready.
    pub(crate) async fn start(
        &mut self,
        name: &'static str,
        service: Service,
        extra: &[(&str, &str)],
    ) {
        let process = ready(self.launch(name, service, extra)).await;
        let _before = self.processes.insert(name, process);
    }

    /// Starts the process that has the name of its service, with the settings that the cast gave
    /// the first one.
    pub(crate) async fn start_again(&mut self, service: Service) {
        self.start(service.name(), service, self.cast.env(service))
            .await;
    }

    /// Starts a process under a name without waiting.
    pub(crate) fn spawn(&mut self, name: &'static str, service: Service, extra: &[(&str, &str)]) {
        let process = self.launch(name, service, extra);
        let _before = self.processes.insert(name, process);
    }

    /// The process of this name.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn process(&mut self, name: &str) -> anyhow::Result<&mut ServiceProcess> {
        let found = self.processes.get_mut(name);
        found.with_context(|| format!("there is no process {name}"))
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When there is no such process, or it has ended by itself.
    pub(crate) fn signal(&mut self, name: &str, signal: Signal) -> anyhow::Result<()> {
        let process = self.process(name)?;
        if let Some(status) = process.exit_status() {
            return Err(process.died(status).into());
        }
        Ok(process.signal(signal)?)
    }

    /// Ends a process with SIGKILL.
    ///
    /// # Errors
    /// As [`Run::signal`].
    pub(crate) fn kill(&mut self, name: &str) -> anyhow::Result<()> {
        self.signal(name, Signal::Kill)?;
        // Dropping it waits for its end.
        drop(self.processes.remove(name));
        Ok(())
    }

    /// Ends a process with SIGTERM and waits for its end.
    ///
    /// # Errors
    /// When there is no such process, or it does not end well.
    pub(crate) async fn stop(&mut self, name: &str) -> anyhow::Result<()> {
        let found = self.processes.remove(name);
        let mut process = found.with_context(|| format!("there is no process {name}"))?;
        let stopped = tokio::task::spawn_blocking(move || process.stop(STOP_WITHIN));
        let status = stopped.await??;
        ensure!(status.success(), "{name} ended with {status}");
        Ok(())
    }

    /// The text of a process's metrics. One that lives is asked again: a single question waits no
    /// longer than a busy machine may stall.
    ///
    /// # Errors
    /// When there is no such process, it has ended, or it does not answer in 30 s.
    pub(crate) fn scrape(&mut self, name: &str) -> anyhow::Result<String> {
        let begun = Instant::now();
        let process = self.process(name)?;
        loop {
            let told = process.scrape();
            if told.is_ok() || begun.elapsed() > TOLD_WITHIN {
                return Ok(told?);
            }
            if let Some(status) = process.exit_status() {
                return Err(process.died(status).into());
            }
            std::thread::sleep(STEP);
        }
    }

    /// Waits until so many more posts are acknowledged.
    ///
    /// # Errors
    /// When there is no load.
    pub(crate) async fn more_posts(&self, posts: usize) -> anyhow::Result<()> {
        let load = self.load.as_ref().context("the load is over")?;
        load.wait_for_more(posts).await;
        Ok(())
    }

    /// What the load has done up to now.
    ///
    /// # Errors
    /// When there is no load.
    pub(crate) fn sent(&self) -> anyhow::Result<Sent> {
        Ok(self.load.as_ref().context("the load is over")?.sent())
    }

    /// What a stage lacks now.
    ///
    /// # Errors
    /// When Postgres does not answer.
    pub(crate) async fn missing(&self, stage: Stage) -> anyhow::Result<Missing> {
        account::missing(&self.flow, stage, EventId(i64::MAX)).await
    }

    /// Asks until the answer is something, for at most `limit`.
    ///
    /// # Errors
    /// When the limit passes, or a question fails.
    pub(crate) async fn until<T>(
        &mut self,
        limit: Duration,
        what: &str,
        mut ask: impl AsyncFnMut(&mut Self) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let begun = Instant::now();
        loop {
            if let Some(answer) = ask(self).await? {
                return Ok(answer);
            }
            if begun.elapsed() > limit {
                bail!("not within {limit:?}: {what}");
            }
            tokio::time::sleep(STEP).await;
        }
    }

    /// Notes that nothing is broken any more: from here on the system has to recover by itself.
    ///
    /// # Errors
    /// When Postgres does not answer.
    pub(crate) async fn fault_over(&mut self) -> anyhow::Result<()> {
        let newest = account::newest(&self.flow).await?;
        self.over = Some((Instant::now(), newest));
        Ok(())
    }

    /// Waits until everything that was committed when the fault was over is delivered; answers how
    /// long that took, or nothing when it takes longer than `limit`. The load goes on meanwhile.
    ///
    /// # Errors
    /// When Postgres does not answer, or a process has ended by itself.
    pub(crate) async fn recovered(&mut self, limit: Duration) -> anyhow::Result<Option<Duration>> {
        if self.over.is_none() {
            self.fault_over().await?;
        }
        let (begun, last) = self.over.context("the fault was over")?;
        while begun.elapsed() < limit {
            self.all_run()?;
            let missing = account::missing(&self.flow, Stage::Delivered, last).await?;
            let unpublished = account::missing(&self.flow, Stage::Published, last).await?;
            if missing.count + unpublished.count == 0 {
                return Ok(Some(begun.elapsed()));
            }
            tokio::time::sleep(STEP).await;
        }
        Ok(None)
    }

    /// Ends the load.
    ///
    /// # Errors
    /// When an operation of it was refused or given up.
    pub(crate) async fn end_load(&mut self) -> anyhow::Result<Sent> {
        self.load.take().context("the load is over")?.stop().await
    }

    /// Fails when a process has ended by itself.
    ///
    /// # Errors
    /// With its last log lines.
    pub(crate) fn all_run(&mut self) -> anyhow::Result<()> {
        for process in self.processes.values_mut() {
            if let Some(status) = process.exit_status() {
                return Err(process.died(status).into());
            }
        }
        Ok(())
    }

    /// The names of the sweeps that run.
    pub(crate) fn sweeps(&self) -> Vec<&'static str> {
        let processes = self.processes.iter();
        processes
            .filter(|(_, process)| process.service() == Service::Sweep)
            .map(|(name, _)| *name)
            .collect()
    }

    /// The log file of every process that runs, with its name.
    pub(crate) fn logs(&self) -> impl Iterator<Item = (&'static str, &std::path::Path)> {
        self.processes
            .iter()
            .map(|(name, process)| (*name, process.log()))
    }

    async fn lead_through(&mut self, link: Link) {
        let deployment = self.flow.pipeline().deployment();
        let (proxy, env) = match link {
            Link::Postgres => proxy::in_front_of_postgres(deployment),
            Link::Kafka => proxy::in_front_of_kafka(deployment).await,
            Link::Cql => proxy::in_front_of_cql(deployment),
        };
        self.through.extend(env);
        let _none = self.proxies.insert(link, proxy);
    }

    fn launch(&self, name: &str, service: Service, extra: &[(&str, &str)]) -> ServiceProcess {
        let address = free_address();
        let admin = format!(
            "TIDELINE_{}__ADMIN",
            service.name().to_uppercase().replace('-', "_")
        );
        let grace = format!("{}s", self.grace.as_secs());
        let mut all = Vec::new();
        // Several processes of a service run at once.
        if name != service.name() {
            all.push((admin.as_str(), address.as_str()));
            if service == Service::Fanout {
                all.push(("TIDELINE_FANOUT__INSTANCE_ID", name));
            }
        }
        if service == Service::Sweep {
            all.extend(SWEEP);
            all.push(("TIDELINE_SWEEP__GRACE", grace.as_str()));
        }
        let through = self.through.iter();
        all.extend(through.map(|(key, value)| (key.as_str(), value.as_str())));
        all.extend(extra);
        self.flow.spawn_as(service, name, &all)
    }
}
