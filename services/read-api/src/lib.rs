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

use std::net::SocketAddr;

use database::Pool;
use http_api::{
    Verifier,
    service::{self, Listening},
};
use runtime::{
    Health, Running, Shutdown,
    exit::Exit,
    startup::{GivenUp, wait_for},
};
use timeline_store::{CqlTimelines, TimelineStore};

use crate::{
    config::Config,
    core::cursor::{Cursors, KEY_PURPOSE},
    error::ReadError,
};

/// The readiness condition, and the word in logs, for the truth about posts.
const POSTGRES: &str = "postgres";
/// The same for the timeline store.
const TIMELINES: &str = "timelines";

/// Runs the service until `shutdown`.
///
/// # Errors
/// [`Exit`] when it cannot start: the configuration is wrong, or a store or its schema stayed away
/// for longer than `startup.budget`.
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
    timelines: CqlTimelines,
    listening: Listening,
}

impl Service {
    /// Opens the admin port, waits for both stores and their schemas, and listens. None when it
    /// was asked to stop meanwhile.
    ///
    /// # Errors
    /// As [`run`].
    pub async fn start(config: &Config, shutdown: &Shutdown) -> Result<Option<Self>, Exit> {
        let pool = Pool::new(
            config.postgres.url.expose(),
            config.postgres.pool_size,
            "tideline-read-api",
        )
        .map_err(Exit::config)?;
        let opened = service::open("read-api", &config.read_api, &config.auth).await?;
        let timelines = match stores(config, &pool, &opened.health, shutdown).await {
            Ok(timelines) => timelines,
            Err(GivenUp::Shutdown) => return Ok(None),
            Err(given_up) => return Err(service::exit(given_up, ReadError::class)),
        };
        let state = http::App {
            pool: pool.clone(),
            timelines: timelines.clone(),
            verifier: Verifier::new(&opened.key),
            cursors: Cursors::new(opened.key.derive(KEY_PURPOSE)),
            retention: config.timelines.retention.0,
        };
        let limits = config.read_api.limits(http::BODY_BYTES);
        let router = http::router(state, limits, opened.metrics.clone());
        let listening = opened.listen(router).await?;
        Ok(Some(Self {
            pool,
            timelines,
            listening,
        }))
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
        let Self {
            pool,
            timelines,
            listening,
        } = self;
        let health = listening.health();
        let watches = async {
            tokio::join!(
                service::watch(POSTGRES, health.clone(), || pool.ping()),
                service::watch(TIMELINES, health, || timelines.probe()),
            );
        };
        listening.serve(watches, shutdown).await;
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
    let postgres = wait_for(POSTGRES, budget, health, shutdown, passes, || async {
        database::migrations::verify(pool)
            .await
            .map_err(ReadError::from)
    });
    let timelines = wait_for(TIMELINES, budget, health, shutdown, passes, || async {
        CqlTimelines::connect(&cql).await.map_err(ReadError::from)
    });
    tokio::try_join!(postgres, timelines).map(|((), timelines)| timelines)
}
