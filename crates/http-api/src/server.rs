//! The server loop: accepts a bounded number of connections and ends them in order.
//!
//! Own loop rather than `axum::serve`, which bounds neither the number of connections nor the time
//! a client may take for the head of a request, and detaches its connection tasks.
//!
//! Shutdown: the listener closes first, so that a load balancer's next attempt goes elsewhere;
//! requests in flight are answered with `Connection: close`; what is left at the deadline is cut.

use std::{pin::pin, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

/// The bounds of one listener.
#[derive(Clone, Copy, Debug)]
pub struct ServeLimits {
    /// Connections at once; more wait in the kernel's queue.
    pub connections: usize,
    /// The longest a client may take for the head of a request.
    pub head_timeout: Duration,
    /// How long requests in flight may go on after the stop.
    pub drain: Duration,
}

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// All requests in flight were answered.
    Drained,
    /// The deadline passed with this many connections open.
    Cut(usize),
}

/// Serves `router` until `stop` resolves, then drains.
///
/// # Cancel safety
/// Dropping the future cuts all connections.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ServeLimits,
    stop: impl Future<Output = ()>,
) -> Served {
    let mut connections = JoinSet::new();
    let closing = CancellationToken::new();
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(ended) = connections.join_next(), if !connections.is_empty() => report(ended),
            accepted = listener.accept(), if connections.len() < limits.connections => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, router.clone(), limits.head_timeout, closing.clone()));
                }
                Err(error) => {
                    // Out of file descriptors, mostly: waiting is all that helps.
                    warn!(%error, "could not accept a connection");
                    sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    drop(listener);
    closing.cancel();
    let drained = timeout(limits.drain, async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    });
    if drained.await.is_ok() {
        return Served::Drained;
    }
    let left = connections.len();
    info!(
        connections = left,
        "the drain deadline passed, cutting connections"
    );
    connections.shutdown().await;
    Served::Cut(left)
}

async fn connection(
    stream: TcpStream,
    router: Router,
    head_timeout: Duration,
    closing: CancellationToken,
) {
    // Answers are small: waiting to fill a segment only adds latency.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "could not set TCP_NODELAY");
    }
    // Guessing the version would wait for the first bytes before any time limit runs.
    let mut builder = auto::Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(head_timeout);
    let mut connection =
        pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, "a connection ended early");
    }
}

/// Handlers' panics are caught in the frame, so a failed connection task is a bug of this loop.
fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        error!(%error, "a connection task failed");
    }
}
