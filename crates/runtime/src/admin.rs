//! The admin port: `/livez`, `/readyz`, `/startupz`, `/metrics`, `/version`.
//!
//! Owns the listener and the answers. Liveness never depends on a dependency. `/readyz` lists
//! its conditions, one per line, so that an on-call person sees the fix without a log.

use std::net::SocketAddr;

use axum::{Router, extract::State, http::StatusCode, response::IntoResponse, routing::get};
use prometheus::{Encoder, Registry, TextEncoder};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{Health, Shutdown};

/// A running admin port.
#[derive(Debug)]
pub struct Admin {
    address: SocketAddr,
    server: JoinHandle<std::io::Result<()>>,
    stop: Shutdown,
}

/// The admin port could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("open the admin port on {listen}")]
pub struct AdminError {
    /// The address asked for.
    pub listen: String,
    /// What the system said.
    #[source]
    pub source: std::io::Error,
}

#[derive(Clone)]
struct Shared {
    health: Health,
    registry: Registry,
    service: &'static str,
}

impl Admin {
    /// Opens the port and answers until [`Admin::close`].
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn open(
        listen: &str,
        service: &'static str,
        health: Health,
        registry: Registry,
    ) -> Result<Self, AdminError> {
        let failed = |source| AdminError {
            listen: listen.to_owned(),
            source,
        };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let router = router(Shared {
            health,
            registry,
            service,
        });
        let stop = Shutdown::new();
        let stopped = stop.clone();
        let server = tokio::spawn(async move {
            axum::serve(listener, router)
                .with_graceful_shutdown(async move { stopped.requested().await })
                .await
        });
        Ok(Self {
            address,
            server,
            stop,
        })
    }

    /// The address that was bound; the port is the real one when 0 was asked for.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the port.
    pub async fn close(self) {
        self.stop.trigger();
        self.server.abort();
        // Aborted on purpose, or already over: either way there is nothing left to do.
        let _outcome = self.server.await;
    }
}

fn router(shared: Shared) -> Router {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/startupz", get(startupz))
        .route("/metrics", get(metrics))
        .route("/version", get(version))
        .with_state(shared)
}

async fn livez(State(shared): State<Shared>) -> impl IntoResponse {
    answer(
        shared.health.is_live(),
        "live\n",
        "the main loop is stuck\n",
    )
}

async fn startupz(State(shared): State<Shared>) -> impl IntoResponse {
    answer(shared.health.is_started(), "started\n", "starting\n")
}

async fn readyz(State(shared): State<Shared>) -> impl IntoResponse {
    let (ready, conditions) = shared.health.readiness();
    let mut text = String::from(if ready { "ready\n" } else { "not ready\n" });
    if !shared.health.is_started() {
        text.push_str("[no] startup: not over yet\n");
    }
    for (name, condition) in conditions {
        let mark = if condition.holds { "ok" } else { "no" };
        text.push_str(&format!("[{mark}] {name}: {}\n", condition.detail));
    }
    answer(ready, text.clone(), text)
}

async fn metrics(State(shared): State<Shared>) -> impl IntoResponse {
    let encoder = TextEncoder::new();
    let mut body = Vec::new();
    match encoder.encode(&shared.registry.gather(), &mut body) {
        Ok(()) => (
            StatusCode::OK,
            [("content-type", encoder.format_type().to_owned())],
            body,
        ),
        Err(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            [("content-type", "text/plain".to_owned())],
            format!("encode metrics: {error}\n").into_bytes(),
        ),
    }
}

async fn version(State(shared): State<Shared>) -> impl IntoResponse {
    format!("{} {}\n", shared.service, env!("CARGO_PKG_VERSION"))
}

fn answer(good: bool, yes: impl Into<String>, no: impl Into<String>) -> (StatusCode, String) {
    if good {
        (StatusCode::OK, yes.into())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, no.into())
    }
}
