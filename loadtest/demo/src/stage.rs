//! Where the demo takes place: the servers, this run's deployment on them, and the services.
//!
//! Promise: whatever was started is stopped again by [`Stage::leave`], after a failure and after
//! Ctrl-C too; servers that were up before stay up. One demo at a time in a checkout.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, bail};
use sandbox::{Instance, Service, State};

use crate::deployment::{Deployment, Remembered};
use crate::fleet::Fleet;
use crate::view::View;

/// Name of the sandbox's instance.
const INSTANCE: &str = "sandbox";

/// Names the checkout, when the demo is not started in it.
const ROOT: &str = "TIDELINE_ROOT";

/// The operator's command line.
const TIDELINE: &str = "tideline";

/// How the stage is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Nothing stays.
    Clean,
    /// Everything is stopped, the data stays until the next run.
    Data,
    /// Everything goes on.
    Running,
}

/// The stage.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) view: Arc<View>,
    root: PathBuf,
    binaries: PathBuf,
    remembered: Remembered,
    /// Some server ran before.
    servers_were_up: bool,
    set: OnceLock<Set>,
    /// Held until the process ends.
    _lock: File,
}

/// What stands on the stage.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    pub(crate) deployment: Deployment,
    pub(crate) fleet: Arc<Fleet>,
}

impl Stage {
    /// Looks whether everything is there that the demo needs; starts nothing.
    pub(crate) fn prepare(view: Arc<View>) -> anyhow::Result<Self> {
        let root = root()?;
        let program = std::env::current_exe().context("finding this program's own folder")?;
        let binaries = program
            .parent()
            .context("finding this program's own folder")?
            .to_owned();
        for name in Service::ALL
            .map(Service::binary)
            .into_iter()
            .chain([TIDELINE])
        {
            if !binaries.join(name).is_file() {
                bail!(
                    "{} is missing; `./x demo` builds it",
                    binaries.join(name).display()
                );
            }
        }
        let instance = Instance::open(&root, INSTANCE);
        fs::create_dir_all(instance.dir())
            .with_context(|| format!("making {}", instance.dir().display()))?;
        let lock = lock(&instance.dir().join("demo.lock"))?;
        let remembered = Remembered::at(instance.dir().join("demo-runs"));
        let servers_were_up = refuse_running_services(&instance)?;
        Ok(Self {
            view,
            root,
            binaries,
            remembered,
            servers_were_up,
            set: OnceLock::new(),
            _lock: lock,
        })
    }

    /// Starts the servers, makes this run's deployment, and removes what earlier runs left.
    pub(crate) async fn set_up(&self) -> anyhow::Result<&Set> {
        let (root, view) = (self.root.clone(), Arc::clone(&self.view));
        let up = tokio::task::spawn_blocking(move || {
            let mut instance = Instance::open(&root, INSTANCE);
            instance.up(&mut |line| view.say(line)).map(|()| instance)
        });
        let instance = up
            .await
            .context("the thread that starts the servers panicked")??;
        self.remembered.remove_all(&instance.env()).await?;
        let deployment = Deployment::fresh(instance.env())?;
        self.remembered.note(&deployment.name)?;
        let fleet = Arc::new(Fleet::new(
            instance,
            self.binaries.clone(),
            deployment.env(),
        )?);
        Ok(self.set.get_or_init(|| Set { deployment, fleet }))
    }

    /// Runs the operator's command line against this run's deployment; its output.
    pub(crate) async fn tideline(
        &self,
        deployment: &Deployment,
        arguments: &[&str],
    ) -> anyhow::Result<String> {
        let output = tokio::process::Command::new(self.binaries.join(TIDELINE))
            .args(arguments)
            .envs(deployment.env())
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .with_context(|| format!("running {TIDELINE}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!(
                "{TIDELINE} {} failed ({}):\n{said}",
                arguments.join(" "),
                output.status
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The folder of all logs.
    pub(crate) fn logs(&self) -> PathBuf {
        Instance::open(&self.root, INSTANCE).dir().join("log")
    }

    /// Stops the services, removes the deployment and stops the servers, as far as `leave` says.
    pub(crate) async fn leave(&self, leave: Leave) -> anyhow::Result<()> {
        let set = self.set.get();
        if leave == Leave::Running {
            return set.map_or(Ok(()), |set| set.fleet.detach_all());
        }
        let mut outcome = Ok(());
        if let Some(Set { deployment, fleet }) = set {
            let fleet = Arc::clone(fleet);
            let stopped = tokio::task::spawn_blocking(move || fleet.stop_all()).await;
            outcome = stopped
                .context("the thread that stops the services panicked")
                .and_then(|stopped| stopped);
            if leave == Leave::Clean {
                let removed = deployment
                    .remove()
                    .await
                    .and_then(|()| self.remembered.forget(&deployment.name));
                outcome = outcome.and(removed);
            } else {
                self.view.say(&format!(
                    "the data of this run stays until the next one: {}",
                    deployment.name
                ));
            }
        }
        if self.servers_were_up {
            return outcome;
        }
        let (root, view) = (self.root.clone(), Arc::clone(&self.view));
        let down = tokio::task::spawn_blocking(move || {
            Instance::open(&root, INSTANCE).down(&mut |line| view.say(line))
        });
        let down = down
            .await
            .context("the thread that stops the servers panicked")?;
        outcome.and(down.map_err(anyhow::Error::from))
    }
}

/// The checkout.
fn root() -> anyhow::Result<PathBuf> {
    let root = match std::env::var_os(ROOT) {
        Some(root) => PathBuf::from(root),
        None => std::env::current_dir().context("finding the current folder")?,
    };
    if !root.join("Cargo.toml").is_file() {
        bail!(
            "{} is no checkout of Tideline; start the demo as ./x demo, or set {ROOT}",
            root.display()
        );
    }
    Ok(root)
}

fn lock(path: &Path) -> anyhow::Result<File> {
    let file = File::create(path).with_context(|| format!("making {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!("another demo runs in this checkout"),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("locking {}", path.display()))
        }
    }
}

/// Two sets of services on the same ports would only confuse. Answers whether a server runs.
fn refuse_running_services(instance: &Instance) -> anyhow::Result<bool> {
    let status = instance.status();
    let mut running = status
        .iter()
        .filter(|line| matches!(line.state, State::Running { .. } | State::Silent { .. }));
    let is_service = |name: &str| Service::ALL.iter().any(|service| service.name() == name);
    if let Some(line) = running.clone().find(|line| is_service(line.name)) {
        bail!(
            "{} runs already, perhaps from an earlier --keep; ./x down stops it",
            line.name
        );
    }
    Ok(running.next().is_some())
}
