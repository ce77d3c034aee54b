//! The services of the run: start, look into, kill, stop.
//!
//! Owns the processes and the count of rows that all fan-out workers of the run have written, the
//! killed ones as far as they were last seen. A service that ends by itself is a fault.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use load::metrics;
use sandbox::{Instance, Service, ServiceProcess, Signal};

/// How long a service may take until it is ready.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// How long a service may take to stop: longer than its own deadline for draining.
const GRACE: Duration = Duration::from_secs(30);

/// How long an answer of an admin port may take.
const ADMIN_TIMEOUT: Duration = Duration::from_secs(3);

const ROWS_WRITTEN: &str = "tideline_fanout_rows_written_total";

/// The services of one run.
#[derive(Debug)]
pub(crate) struct Fleet {
    instance: Instance,
    binaries: PathBuf,
    env: Vec<(String, String)>,
    http: reqwest::Client,
    running: Mutex<Vec<ServiceProcess>>,
    rows: Mutex<RowsWritten>,
}

/// Rows written by all workers of the run.
#[derive(Clone, Copy, Debug, Default)]
struct RowsWritten {
    /// By those that were killed.
    before: u64,
    /// By the one that runs.
    now: u64,
}

impl Fleet {
    /// Nothing runs yet. `binaries` is the folder with the services' programs.
    pub(crate) fn new(
        instance: Instance,
        binaries: PathBuf,
        env: Vec<(String, String)>,
    ) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            .timeout(ADMIN_TIMEOUT)
            .build()
            .context("making an HTTP client")?;
        Ok(Self {
            instance,
            binaries,
            env,
            http,
            running: Mutex::default(),
            rows: Mutex::default(),
        })
    }

    /// Starts a service.
    pub(crate) fn start(&self, service: Service) -> anyhow::Result<()> {
        let log = self.instance.log_path(service.name());
        let process = service.spawn(
            &self.instance,
            &self.binaries.join(service.binary()),
            &self.env,
            &log,
        )?;
        self.running().push(process);
        Ok(())
    }

    /// Waits until a service is ready.
    pub(crate) async fn ready(&self, service: Service) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            if self.get(service, "/readyz").await.is_ok() {
                return Ok(());
            }
            self.check()?;
            if begun.elapsed() > READY_WITHIN {
                let log = self.instance.log_path(service.name());
                let said = sandbox::tail(&log, 20);
                bail!(
                    "{} is not ready after {READY_WITHIN:?}; {}:\n{said}",
                    service.name(),
                    log.display()
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Fails when a service has ended by itself.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for process in self.running().iter_mut() {
            if let Some(status) = process.exit_status() {
                return Err(process.died(status).into());
            }
        }
        Ok(())
    }

    /// Whether a service was started and not killed since.
    pub(crate) fn is_up(&self, service: Service) -> bool {
        self.running()
            .iter()
            .any(|process| process.service() == service)
    }

    /// Ends a service with SIGKILL and answers the pid it had.
    pub(crate) fn kill(&self, service: Service) -> anyhow::Result<u32> {
        let mut running = self.running();
        let place = running
            .iter()
            .position(|process| process.service() == service);
        let mut process =
            running.swap_remove(place.with_context(|| format!("{} does not run", service.name()))?);
        if let Some(status) = process.exit_status() {
            return Err(process.died(status).into());
        }
        let pid = process.pid();
        process.signal(Signal::Kill)?;
        let ended = process.wait_exit(Duration::from_secs(5));
        drop(running);
        if service == Service::Fanout {
            let mut rows = self.rows();
            *rows = RowsWritten {
                before: rows.before + rows.now,
                now: 0,
            };
        }
        ended
            .with_context(|| format!("{} survived SIGKILL", service.name()))
            .map(|_| pid)
    }

    /// The value of one metric of a service, all series together.
    pub(crate) async fn metric(&self, service: Service, name: &str) -> anyhow::Result<f64> {
        let text = self.get(service, "/metrics").await?;
        metrics::sum(&text, name, "")
            .with_context(|| format!("{} has no metric {name}", service.name()))
    }

    /// Looks how many rows the worker has written and answers the sum over all workers.
    pub(crate) async fn look_at_rows(&self) -> u64 {
        // A worker that is dead or starting has nothing to say; what it said last counts.
        if let Ok(rows) = self.metric(Service::Fanout, ROWS_WRITTEN).await
            && self.is_up(Service::Fanout)
        {
            let mut written = self.rows();
            // A counter is a whole number below 2^53. A scrape that was overtaken counts nothing.
            written.now = written.now.max(rows as u64);
        }
        self.rows_written()
    }

    /// Rows written by all workers, as far as they were seen.
    pub(crate) fn rows_written(&self) -> u64 {
        let rows = self.rows();
        rows.before + rows.now
    }

    /// Asks every service to stop, in the order the data flows.
    pub(crate) fn stop_all(&self) -> anyhow::Result<()> {
        let mut unclean = Vec::new();
        let mut running = self.running();
        running.sort_by_key(|process| {
            Service::ALL
                .iter()
                .position(|service| *service == process.service())
        });
        for mut process in running.drain(..) {
            let status = process.stop(GRACE)?;
            if !status.success() {
                unclean.push(format!(
                    "{} ({status}, see {})",
                    process.service().name(),
                    process.log().display()
                ));
            }
        }
        if unclean.is_empty() {
            Ok(())
        } else {
            bail!("not stopped cleanly: {}", unclean.join(", "))
        }
    }

    /// Leaves the services running beyond the end of this process.
    pub(crate) fn detach_all(&self) -> anyhow::Result<()> {
        for process in self.running().drain(..) {
            process.detach(&self.instance)?;
        }
        Ok(())
    }

    async fn get(&self, service: Service, path: &str) -> anyhow::Result<String> {
        let admin = self
            .running()
            .iter()
            .find(|p| p.service() == service)
            .map(|p| p.admin().to_owned());
        let admin = admin.with_context(|| format!("{} does not run", service.name()))?;
        let answer = self
            .http
            .get(format!("http://{admin}{path}"))
            .send()
            .await?
            .error_for_status()?;
        Ok(answer.text().await?)
    }

    fn running(&self) -> MutexGuard<'_, Vec<ServiceProcess>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rows(&self) -> MutexGuard<'_, RowsWritten> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
