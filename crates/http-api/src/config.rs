//! The section of the configuration that each HTTP API has under its own name.

use runtime::config::value::Span;
use serde::{Deserialize, Serialize};

use crate::{Limits, ServeLimits};

/// The longest a client may take for the head of a request: no honest one needs more.
const HEAD_TIMEOUT: Span = Span::seconds(10);

/// `[write_api]`, `[read_api]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// Address of the API.
    pub listen: String,
    /// Address of the admin port.
    pub admin: String,
    /// The longest a request may take.
    pub request_timeout: Span,
    /// How long requests in flight may go on after the signal to stop.
    pub drain: Span,
    /// Connections at once; more wait in the kernel's queue.
    pub connections: usize,
    /// Requests that are answered at once; more are refused with 503.
    pub in_flight: usize,
}

impl Section {
    /// The defaults, with these addresses.
    #[must_use]
    pub fn at(listen: &str, admin: &str) -> Self {
        Self {
            listen: listen.to_owned(),
            admin: admin.to_owned(),
            request_timeout: Span::seconds(10),
            drain: Span::seconds(20),
            connections: 1_024,
            in_flight: 256,
        }
    }

    /// The bounds of a request, with the API's own bound on bodies.
    #[must_use]
    pub const fn limits(&self, body_bytes: usize) -> Limits {
        Limits {
            request_timeout: self.request_timeout.0,
            body_bytes,
            in_flight: self.in_flight,
        }
    }

    /// The bounds of the listener.
    #[must_use]
    pub const fn serve_limits(&self) -> ServeLimits {
        ServeLimits {
            connections: self.connections,
            head_timeout: HEAD_TIMEOUT.0,
            drain: self.drain.0,
        }
    }
}
