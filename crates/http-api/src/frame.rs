//! The frame around every handler: request id, bounds, panic guard, problem documents, metrics.
//!
//! Order: the request id first, so that every answer has it; then the bound on requests in flight,
//! which refuses at once rather than queue; then the time limit around handler and extractors.
//!
//! Failure: a handler that panics is answered with 500 `internal` and takes nothing else along. A
//! handler that is too slow is dropped where it waits; an open transaction is rolled back by its
//! drop, and a commit that was under way may or may not have happened, as the problem says.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{DefaultBodyLimit, MatchedPath, Request, State},
    http::header,
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};
use tracing::{Instrument, error, info_span, warn};

use crate::{HttpMetrics, Problem, RequestId, metrics::NO_ROUTE, request_id};

/// The bounds of one API.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest a request may take, body included.
    pub request_timeout: Duration,
    /// The largest body in bytes.
    pub body_bytes: usize,
    /// Requests that are answered at once; more are refused with 503.
    pub in_flight: usize,
}

/// What the frame needs at each request.
#[derive(Debug)]
pub struct Frame {
    limits: Limits,
    permits: Semaphore,
    metrics: HttpMetrics,
}

/// Puts the frame around all routes of `router`, its 404 and 405 answers included.
pub fn framed(router: Router, limits: Limits, metrics: HttpMetrics) -> Router {
    let frame = Arc::new(Frame {
        limits,
        permits: Semaphore::new(limits.in_flight),
        metrics,
    });
    router
        .layer(middleware::from_fn_with_state(frame, around))
        .layer(DefaultBodyLimit::max(limits.body_bytes))
}

async fn around(State(frame): State<Arc<Frame>>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let request_id = RequestId::from_headers(request.headers());
    let method = request.method().clone();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
    request.extensions_mut().insert(request_id.clone());

    let span = info_span!("request", %request_id, %method, route);
    let answer = answer(&frame, request, next).instrument(span).await;
    let response = finished(answer, &request_id);
    frame
        .metrics
        .answered(route, &method, response.status(), started.elapsed());
    response
}

async fn answer(frame: &Frame, request: Request, next: Next) -> Response {
    let Ok(_permit) = frame.permits.try_acquire() else {
        return Problem::overloaded().into_response();
    };
    let _in_flight = frame.metrics.started();
    // A panic cannot leave broken state behind: handlers share pools and counters only, which
    // guard themselves.
    let guarded = AssertUnwindSafe(next.run(request)).catch_unwind();
    match timeout(frame.limits.request_timeout, guarded).await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => {
            error!(panic = panic_text(&*panic), "a handler panicked");
            Problem::internal().into_response()
        }
        Err(_) => {
            warn!(limit = ?frame.limits.request_timeout, "a request took longer than it may");
            Problem::timed_out().into_response()
        }
    }
}

/// Renders a problem, or makes one of an error answer that a library wrote, and adds the id.
fn finished(mut response: Response, request_id: &RequestId) -> Response {
    let status = response.status();
    let problem = response.extensions_mut().remove::<Problem>();
    if status.is_client_error() || status.is_server_error() {
        let mut rendered = problem
            .unwrap_or_else(|| Problem::from_status(status))
            .render(request_id);
        // 405 carries the methods that the path does take.
        if let Some(allow) = response.headers().get(header::ALLOW) {
            rendered.headers_mut().insert(header::ALLOW, allow.clone());
        }
        response = rendered;
    }
    response
        .headers_mut()
        .insert(request_id::HEADER, request_id.to_header());
    response
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("not a text")
}
