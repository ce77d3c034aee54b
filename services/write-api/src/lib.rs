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
mod http;

use std::net::SocketAddr;

use database::Pool;
use http_api::{
    Verifier,
    service::{self, Listening},
};
use runtime::{
    Running, Shutdown,
    exit::Exit,
    startup::{GivenUp, wait_for},
};

use crate::config::Config;

/// The readiness condition, and the word in logs, for the store.
const POSTGRES: &str = "postgres";

/// Runs the service until `shutdown`.
///
/// # Errors
/// [`Exit`] when it cannot start: the configuration is wrong, or Postgres or its schema stayed
/// away for longer than `startup.budget`.
pub fn run(config: Config, shutdown: Shutdown) -> Running {
    Box::pin(run_here(config, shutdown))
}

async fn run_here(config: Config, shutdown: Shutdown) -> Result<(), Exit> {
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
    pool: Pool,
    listening: Listening,
}

impl Service {
    /// Opens the admin port, waits for Postgres and its schema, and listens. None when it was
    /// asked to stop meanwhile.
    ///
    /// # Errors
    /// As [`run`].
    pub async fn start(config: &Config, shutdown: &Shutdown) -> Result<Option<Self>, Exit> {
        let pool = Pool::new(
            config.postgres.url.expose(),
            config.postgres.pool_size,
            "tideline-write-api",
        )
        .map_err(Exit::config)?;
        let opened = service::open("write-api", &config.write_api, &config.auth).await?;
        let verified = wait_for(
            POSTGRES,
            config.startup.budget.0,
            &opened.health,
            shutdown,
            |error: &database::Error| error.class().is_retried(),
            || database::migrations::verify(&pool),
        );
        match verified.await {
            Ok(()) => {}
            Err(GivenUp::Shutdown) => return Ok(None),
            Err(given_up) => return Err(service::exit(given_up, database::Error::class)),
        }
        let state = http::App {
            pool: pool.clone(),
            verifier: Verifier::new(&opened.key),
        };
        let limits = config.write_api.limits(http::BODY_BYTES);
        let router = http::router(state, limits, opened.metrics.clone());
        let listening = opened.listen(router).await?;
        Ok(Some(Self { pool, listening }))
    }

    /// The address of the API; the port is the real one when 0 was configured.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    /// The address of the admin port.
    #[must_use]
    pub const fn admin_address(&self) -> SocketAddr {
        self.listening.admin_address()
    }

    /// Answers requests until `shutdown`, then drains.
    pub async fn serve(self, shutdown: Shutdown) {
        let Self { pool, listening } = self;
        let watch = service::watch(POSTGRES, listening.health(), || pool.ping());
        listening.serve(watch, shutdown).await;
    }
}
