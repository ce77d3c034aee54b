//! Metrics of the requests of one API.
//!
//! Labels are closed: the route is the template, never the path, and the method one of a list, so
//! no client can make new series.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use prometheus::{HistogramVec, IntCounterVec, IntGauge, Registry};
use runtime::metrics::Families;

/// The value of `route` for requests that match none.
pub const NO_ROUTE: &str = "none";

/// Edges of the duration histogram, seconds.
const DURATION_BUCKETS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Counts and times requests. Cheap to clone.
#[derive(Clone, Debug)]
pub struct HttpMetrics {
    requests: IntCounterVec,
    duration: HistogramVec,
    in_flight: IntGauge,
}

impl HttpMetrics {
    /// Registers the three families.
    ///
    /// # Errors
    /// When `registry` has them already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let make = Families::of(registry);
        Ok(Self {
            requests: make.counters(
                "tideline_http_requests_total",
                "Answered HTTP requests by route, method and class of status.",
                &["route", "method", "status"],
            )?,
            duration: make.histograms(
                "tideline_http_request_duration_seconds",
                "Time from the head of a request to the head of its answer.",
                &["route", "method"],
                DURATION_BUCKETS,
            )?,
            in_flight: make.gauge(
                "tideline_http_requests_in_flight",
                "HTTP requests that are being answered.",
            )?,
        })
    }

    pub(crate) fn started(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }

    pub(crate) fn answered(
        &self,
        route: &str,
        method: &Method,
        status: StatusCode,
        took: Duration,
    ) {
        let method = method_label(method);
        self.requests
            .with_label_values(&[route, method, status_label(status)])
            .inc();
        self.duration
            .with_label_values(&[route, method])
            .observe(took.as_secs_f64());
    }
}

/// Counts one request down when it is answered, or dropped because the client went away.
#[derive(Debug)]
pub(crate) struct InFlight(IntGauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn method_label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

fn status_label(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}
