//! Accepts posts and follows: the truth is written here, and nothing else is.
//!
//! ```text
//!  POST /v1/posts ─▶ http ─▶ core: validate, key, fingerprint ─▶ database: one transaction
//!                                                                post + outbox row ─▶ Postgres
//!  201 / 200 ◀────────────── committed ◀──────────────────────────────┘
//! ```
//!
//! Promise: the post and its outbox row commit together or not at all (D-1); the same
//! `client_post_id` never makes a second post (D-2). It speaks to Postgres only: a Kafka or a
//! timeline store that is down never refuses a post.
//!
//! | failure | what the client sees | what is stored |
//! |---|---|---|
//! | invalid request | 400, 422 with pointers | nothing |
//! | Postgres away | 503 `unavailable`, `Retry-After` | nothing, or the commit that lost its answer |
//! | no answer to the commit | 503 `outcome-unknown` | unknown; the repeat with the same key tells |
//! | crash between commit and answer | a broken connection | the post; the repeat gets 200 |
//! | asked to stop | answers of requests in flight, then refused connections | as answered |

pub mod config;
pub mod core;
mod error;
mod http;

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
use tokio::{net::TcpListener, time::sleep};
use tracing::{info, warn};

use crate::config::Config;

/// How often Postgres is asked whether it is there, for readiness.
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// Runs the service until `shutdown`.
///
/// # Errors
/// [`Exit`] when it cannot start: the configuration is wrong, or Postgres or its schema stayed
/// away for longer than `startup.budget`.
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
    listener: TcpListener,
    address: SocketAddr,
    admin: Admin,
    health: Health,
    router: axum::Router,
}

impl Service {
    /// Opens the admin port, waits for Postgres and its schema, and listens. None when it was
    /// asked to stop meanwhile.
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
            "tideline-write-api",
        )
        .map_err(Exit::config)?;
        let health = Health::new();
        let admin = Admin::open(
            &config.write_api.admin,
            "write-api",
            health.clone(),
            registry,
        )
        .await
        .map_err(Exit::config)?;
        let verified = wait_for(
            "postgres",
            config.startup.budget.0,
            &health,
            shutdown,
            |error: &database::Error| error.class().is_retried(),
            || database::migrations::verify(&pool),
        );
        match verified.await {
            Ok(()) => {}
            Err(GivenUp::Shutdown) => return Ok(None),
            Err(given_up) => return Err(error::exit(given_up)),
        }
        let listener = TcpListener::bind(&config.write_api.listen)
            .await
            .map_err(|source| {
                Exit::config(error::Listen {
                    listen: config.write_api.listen.clone(),
                    source,
                })
            })?;
        let address = listener.local_addr().map_err(Exit::bug)?;
        let state = http::App {
            pool: pool.clone(),
            verifier: Verifier::new(&key),
        };
        let router = http::router(state, config.write_api.limits(http::BODY_BYTES), metrics);
        health.started();
        info!(%address, admin = %admin.address(), "write-api serves");
        Ok(Some(Self {
            config: config.clone(),
            pool,
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
            self.config.write_api.serve_limits(),
            stop,
        );
        tokio::select! {
            outcome = served => info!(?outcome, "write-api stopped"),
            () = probe(&self.pool, &self.health) => {}
        }
        self.admin.close().await;
    }
}

/// Keeps the readiness condition `postgres` true to the facts. Never returns.
async fn probe(pool: &Pool, health: &Health) {
    let mut answered = true;
    loop {
        sleep(PROBE_EVERY).await;
        match pool.ping().await {
            Ok(()) => {
                if !answered {
                    info!("postgres answers again");
                }
                answered = true;
                health.set("postgres", true, "answered");
            }
            Err(error) => {
                let text = chain(&error).to_string();
                if answered {
                    warn!(error = %text, "postgres does not answer");
                }
                answered = false;
                health.set("postgres", false, text);
            }
        }
    }
}
