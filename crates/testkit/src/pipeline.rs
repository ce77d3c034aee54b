//! All services of one deployment as processes.

use std::time::Duration;

use sandbox::{Service, ServiceProcess};

use crate::{Deployment, binary, free_address};

const READY: Duration = Duration::from_secs(60);

/// Services of one deployment; those that still run are killed when it is dropped.
#[derive(Debug)]
pub struct Pipeline {
    deployment: Deployment,
    env: Vec<(String, String)>,
}

impl Pipeline {
    /// Addresses for the services of a fresh deployment; starts none of them.
    ///
    /// # Panics
    /// When a server refuses.
    pub async fn new() -> Self {
        Self::of(Deployment::new().await)
    }

    /// Addresses for the services of this deployment; starts none of them.
    ///
    /// # Panics
    /// When the system has no free port.
    pub fn of(deployment: Deployment) -> Self {
        let mut env = deployment.env();
        for key in [
            "WRITE_API__LISTEN",
            "WRITE_API__ADMIN",
            "READ_API__LISTEN",
            "READ_API__ADMIN",
            "RELAY__ADMIN",
            "FANOUT__ADMIN",
            "SWEEP__ADMIN",
        ] {
            env.push((format!("TIDELINE_{key}"), free_address()));
        }
        Self { deployment, env }
    }

    /// Names and addresses of the deployment.
    pub const fn deployment(&self) -> &Deployment {
        &self.deployment
    }

    /// The services' configuration, listen addresses included.
    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// `http://host:port` of an API.
    ///
    /// # Panics
    /// When the service has no API.
    pub fn url(&self, service: Service) -> String {
        let key = match service {
            Service::WriteApi => "TIDELINE_WRITE_API__LISTEN",
            Service::ReadApi => "TIDELINE_READ_API__LISTEN",
            other => panic!("{} has no API", other.name()),
        };
        let found = self.env.iter().find(|(name, _)| name == key);
        format!(
            "http://{}",
            found.expect("every listen address was set at the start").1
        )
    }

    /// Starts a service and waits until it is ready.
    ///
    /// # Panics
    /// When it is not ready in time; its last log lines are told.
    pub async fn start(&self, service: Service, extra: &[(&str, &str)]) -> ServiceProcess {
        ready(self.spawn(service, extra)).await
    }

    /// Starts a service and does not wait.
    ///
    /// # Panics
    /// When its binary cannot be started.
    pub fn spawn(&self, service: Service, extra: &[(&str, &str)]) -> ServiceProcess {
        self.spawn_as(service, service.name(), extra)
    }

    /// Starts one of several processes of a service, with a log of its own, and does not wait.
    ///
    /// # Panics
    /// When its binary cannot be started.
    pub fn spawn_as(&self, service: Service, name: &str, extra: &[(&str, &str)]) -> ServiceProcess {
        let mut env = self.env.clone();
        env.extend(
            extra
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned())),
        );
        let instance = self.deployment.servers().instance();
        let log = instance.log_path(&format!("{}-{name}", self.deployment.keyspace()));
        service
            .spawn(instance, &binary(service), &env, &log)
            .unwrap_or_else(|error| panic!("start {}: {error}", service.name()))
    }
}

/// Waits until a process is ready.
///
/// # Panics
/// When it is not in time; its last log lines are told.
pub async fn ready(mut process: ServiceProcess) -> ServiceProcess {
    let ready = tokio::task::spawn_blocking(move || process.wait_ready(READY).map(|()| process));
    let outcome = ready.await.expect("the thread that waits does not panic");
    outcome.unwrap_or_else(|error| panic!("{error}"))
}
