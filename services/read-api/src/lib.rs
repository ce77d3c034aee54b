//! Serves timelines, posts and their delivery status. Reads only.
//!
//! ```text
//!  GET /v1/timelines/home
//!    source: pushed rows (timeline store) ─┐
//!            own posts (Postgres) ─────────┴▶ core: merge ─▶ fill ◀── source: bodies (Postgres)
//!                                                             │       drops deleted, unfollowed
//!  page + cursor ◀────────────────────────────────────────────┘
//! ```
//!
//! Promise: a timeline page has no duplicate, no gap, nothing deleted, and nothing from someone
//! the reader no longer follows. The truth about each post is asked of Postgres at every read, so
//! a row that a late replay brought back is still not shown (D-8).
//!
//! | failure | what the client sees |
//! |---|---|
//! | Postgres or the timeline store away | 503 `unavailable`, `Retry-After` |
//! | one of them too slow | 503 `outcome-unknown` or `timed-out` |
//! | a cursor that is not ours, or of another list | 400 `invalid-cursor` |
//! | asked to stop | answers of requests in flight, then refused connections |

pub mod config;
pub mod core;
mod error;
mod http;
mod source;

use std::{net::SocketAddr, time::Duration};

use database::Pool;
use http_api::{HttpMetrics, Key, Verifier, serve};
use prometheus::Registry;
use runtime::{
    Admin, Health, Shutdown,
    exit::Exit,
    report::chain,
    startup::{GivenUp, wait_for},
};
use timeline_store::{CqlTimelines, TimelineStore};
use tokio::{net::TcpListener, time::sleep};
use tracing::{info, warn};

use crate::{
    config::Config,
    core::cursor::{Cursors, KEY_PURPOSE},
    error::ReadError,
};

/// How often the stores are asked whether they are there, for readiness.
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// Runs the service until `shutdown`.
///
/// # Errors
/// [`Exit`] when it cannot start: the configuration is wrong, or a store or its schema stayed away
/// for longer than `startup.budget`.
pub async fn run(config: Config, shutdown: Shutdown) -> Result<(), Exit> {
    match Service::start(&config, &shutdown).await? {
        Some(service) => service.serve(shutdown).await,
        // Asked to stop before it had started.
        None => return Ok(()),
    }
    Ok(())
}

/// A service that has started and listens, and whose requests are answered by
/// [`Service::serve`].
#[derive(Debug)]
pub struct Service {
    config: Config,
    pool: Pool,
    timelines: CqlTimelines,
    listener: TcpListener,
    address: SocketAddr,
    admin: Admin,
    health: Health,
    router: axum::Router,
}

impl Service {
    /// Opens the admin port, waits for both stores and their schemas, and listens. None when it
    /// was asked to stop meanwhile.
    ///
    /// # Errors
    /// As [`run`].
    pub async fn start(config: &Config, shutdown: &Shutdown) -> Result<Option<Self>, Exit> {
        let secret = config.auth.read_secret().map_err(Exit::config)?;
        let key = Key::new(secret.expose().as_bytes()).map_err(Exit::config)?;
        let registry = Registry::new();
        let metrics = HttpMetrics::new(&registry).map_err(Exit::bug)?;
        let pool = Pool::new(
            config.postgres.url.expose(),
            config.postgres.pool_size,
            "tideline-read-api",
        )
        .map_err(Exit::config)?;
        let health = Health::new();
        let admin = Admin::open(&config.read_api.admin, "read-api", health.clone(), registry)
            .await
            .map_err(Exit::config)?;
        let timelines = match stores(config, &pool, &health, shutdown).await {
            Ok(timelines) => timelines,
            Err(GivenUp::Shutdown) => return Ok(None),
            Err(given_up) => return Err(error::exit(given_up)),
        };
        let listener = TcpListener::bind(&config.read_api.listen)
            .await
            .map_err(|source| {
                Exit::config(error::Listen {
                    listen: config.read_api.listen.clone(),
                    source,
                })
            })?;
        let address = listener.local_addr().map_err(Exit::bug)?;
        let state = http::App {
            pool: pool.clone(),
            timelines: timelines.clone(),
            verifier: Verifier::new(&key),
            cursors: Cursors::new(key.derive(KEY_PURPOSE)),
            retention: config.timelines.retention.0,
        };
        let router = http::router(state, config.read_api.limits(http::BODY_BYTES), metrics);
        health.started();
        info!(%address, admin = %admin.address(), "read-api serves");
        Ok(Some(Self {
            config: config.clone(),
            pool,
            timelines,
            listener,
            address,
            admin,
            health,
            router,
        }))
    }

    /// The address of the API; the port is the real one when 0 was configured.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the admin port.
    #[must_use]
    pub const fn admin_address(&self) -> SocketAddr {
        self.admin.address()
    }

    /// Answers requests until `shutdown`, then drains.
    pub async fn serve(self, shutdown: Shutdown) {
        let stop = async {
            shutdown.requested().await;
            self.health.set("accepting", false, "asked to stop");
        };
        let served = serve(
            self.listener,
            self.router,
            self.config.read_api.serve_limits(),
            stop,
        );
        tokio::select! {
            outcome = served => info!(?outcome, "read-api stopped"),
            () = probe(&self.pool, &self.timelines, &self.health) => {}
        }
        self.admin.close().await;
    }
}

/// Waits for both stores to answer with the schema that this program reads.
async fn stores(
    config: &Config,
    pool: &Pool,
    health: &Health,
    shutdown: &Shutdown,
) -> Result<CqlTimelines, GivenUp<ReadError>> {
    let budget = config.startup.budget.0;
    let passes = |error: &ReadError| error.class().is_retried();
    let cql = config.cql_config();
    let postgres = wait_for("postgres", budget, health, shutdown, passes, || async {
        database::migrations::verify(pool)
            .await
            .map_err(ReadError::from)
    });
    let timelines = wait_for("timelines", budget, health, shutdown, passes, || async {
        CqlTimelines::connect(&cql).await.map_err(ReadError::from)
    });
    tokio::try_join!(postgres, timelines).map(|((), timelines)| timelines)
}

/// Keeps the readiness conditions true to the facts. Never returns.
async fn probe(pool: &Pool, timelines: &CqlTimelines, health: &Health) {
    let (mut postgres, mut cql) = (true, true);
    loop {
        sleep(PROBE_EVERY).await;
        let (pinged, probed) = tokio::join!(pool.ping(), timelines.probe());
        postgres = told(
            "postgres",
            postgres,
            pinged.map_err(ReadError::from),
            health,
        );
        cql = told("timelines", cql, probed.map_err(ReadError::from), health);
    }
}

/// Sets one condition, logs its change, and answers whether it holds.
fn told(
    store: &'static str,
    before: bool,
    outcome: Result<(), ReadError>,
    health: &Health,
) -> bool {
    match outcome {
        Ok(()) => {
            if !before {
                info!(store, "store answers again");
            }
            health.set(store, true, "answered");
            true
        }
        Err(error) => {
            let text = chain(&error).to_string();
            if before {
                warn!(store, error = %text, "store does not answer");
            }
            health.set(store, false, text);
            false
        }
    }
}
