//! The life of an API's process around its routes.
//!
//! ```text
//!  open: key, metrics, admin port ─▶ (the API waits for its stores) ─▶ listen ─▶ serve ─▶ drain
//! ```
//!
//! Owns the order of these steps, the readiness condition `accepting`, and the watch over a store
//! ([`watch`]). Does not own the stores: the API waits for them with [`runtime::startup`].
//!
//! Promise: the admin port answers from before the first dependency is asked until after the last
//! request is answered.

use std::{error::Error, net::SocketAddr, time::Duration};

use axum::Router;
use events::Class;
use prometheus::Registry;
use runtime::{
    Admin, Health, Shutdown, config::sections::Auth, exit::Exit, report::chain, startup::GivenUp,
};
use tokio::{net::TcpListener, time::sleep};
use tracing::{info, warn};

use crate::{HttpMetrics, Key, config::Section, serve};

/// How often a store is asked whether it is there, for readiness.
const WATCH_EVERY: Duration = Duration::from_secs(5);

/// An API whose admin port answers and that does not listen yet.
#[derive(Debug)]
pub struct Opened {
    /// The key of the tokens.
    pub key: Key,
    /// For the router.
    pub metrics: HttpMetrics,
    /// Where the stores are waited for.
    pub health: Health,
    name: &'static str,
    section: Section,
    admin: Admin,
}

/// Reads the key and opens the admin port.
///
/// # Errors
/// [`Exit`] when there is no key, it is too short, or the address of the admin port is taken.
pub async fn open(name: &'static str, section: &Section, auth: &Auth) -> Result<Opened, Exit> {
    let secret = auth.read_secret().map_err(Exit::config)?;
    let key = Key::new(secret.expose().as_bytes()).map_err(Exit::config)?;
    let registry = Registry::new();
    let metrics = HttpMetrics::new(&registry).map_err(Exit::bug)?;
    let health = Health::new();
    let admin = Admin::open(&section.admin, name, health.clone(), registry)
        .await
        .map_err(Exit::config)?;
    Ok(Opened {
        key,
        metrics,
        health,
        name,
        section: section.clone(),
        admin,
    })
}

impl Opened {
    /// Listens; requests wait in the kernel's queue until [`Listening::serve`].
    ///
    /// # Errors
    /// [`Exit`] when the address cannot be bound.
    pub async fn listen(self, router: Router) -> Result<Listening, Exit> {
        let listen = &self.section.listen;
        let listener = TcpListener::bind(listen).await.map_err(|source| {
            Exit::config(Listen {
                listen: listen.clone(),
                source,
            })
        })?;
        let address = listener.local_addr().map_err(Exit::bug)?;
        self.health.started();
        info!(%address, admin = %self.admin.address(), "{} serves", self.name);
        Ok(Listening {
            opened: self,
            listener,
            address,
            router,
        })
    }
}

/// The API's address could not be bound.
#[derive(Debug, thiserror::Error)]
#[error("listen on {listen}")]
struct Listen {
    listen: String,
    #[source]
    source: std::io::Error,
}

/// An API that has started and listens.
#[derive(Debug)]
pub struct Listening {
    opened: Opened,
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
}

impl Listening {
    /// The address of the API; the port is the real one when 0 was configured.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the admin port.
    #[must_use]
    pub const fn admin_address(&self) -> SocketAddr {
        self.opened.admin.address()
    }

    /// Where the watches report.
    #[must_use]
    pub fn health(&self) -> Health {
        self.opened.health.clone()
    }

    /// Answers requests until `shutdown`, then drains. `watches` run beside and never end.
    pub async fn serve(self, watches: impl Future<Output = ()>, shutdown: Shutdown) {
        let Opened {
            name,
            section,
            admin,
            health,
            ..
        } = self.opened;
        let stop = async {
            shutdown.requested().await;
            health.set("accepting", false, "asked to stop");
        };
        let served = serve(self.listener, self.router, section.serve_limits(), stop);
        tokio::select! {
            outcome = served => info!(?outcome, "{name} stopped"),
            () = watches => {}
        }
        admin.close().await;
    }
}

/// Keeps the readiness condition of one store true to the facts. Never returns.
pub async fn watch<E, F, Fut>(store: &'static str, health: Health, mut ask: F)
where
    E: Error + 'static,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<(), E>>,
{
    let mut answered = true;
    loop {
        sleep(WATCH_EVERY).await;
        match ask().await {
            Ok(()) => {
                if !answered {
                    info!(store, "store answers again");
                }
                answered = true;
                health.set(store, true, "answered");
            }
            Err(error) => {
                let text = chain(&error).to_string();
                if answered {
                    warn!(store, error = %text, "store does not answer");
                }
                answered = false;
                health.set(store, false, text);
            }
        }
    }
}

/// The exit for a store that start-up has given up.
pub fn exit<E: Error + Send + Sync + 'static>(
    given_up: GivenUp<E>,
    class: impl Fn(&E) -> Class,
) -> Exit {
    match given_up {
        GivenUp::Final(error) if class(&error) == Class::Config => Exit::config(error),
        GivenUp::Final(error) => Exit::bug(error),
        GivenUp::OutOfBudget(_) | GivenUp::Shutdown => Exit::dependency(given_up),
    }
}
