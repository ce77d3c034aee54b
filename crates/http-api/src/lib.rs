//! What both HTTP APIs share: who asks, how a refusal looks, and which bounds hold for a request.
//!
//! ```text
//!  connection ─▶ serve ─▶ frame ───────────────────────────────▶ handler
//!  (bounded)              request id, time limit, panic guard,    extractors: User, Json,
//!                         bound on requests in flight, metrics    PathId, Query, Traceparent
//!                  client ◀─ problem documents are rendered here ◀─ Problem
//! ```
//!
//! Owns: bearer tokens ([`token`], [`auth`]), problem documents ([`problem`]), the JSON, query and
//! path extractors ([`extract`]), request ids and trace context, the frame around each handler
//! ([`frame`]), the server loop ([`server`]), and the steps of a process around it ([`service`]).
//!
//! Does not own: any route, any resource, any store.
//!
//! Promise: every answer with a status of 400 or more is a problem document (RFC 9457) with a
//! stable `type` and the request id, and never carries an internal message.

pub mod auth;
pub mod config;
pub mod extract;
pub mod frame;
pub mod metrics;
pub mod problem;
pub mod request_id;
pub mod server;
pub mod service;
pub mod token;
pub mod trace_context;

pub use auth::User;
pub use extract::{Json, PathId, Query};
pub use frame::{Frame, Limits, framed};
pub use metrics::HttpMetrics;
pub use problem::Problem;
pub use request_id::RequestId;
pub use server::{ServeLimits, Served, serve};
pub use token::{Claims, Key, Verifier};
pub use trace_context::Traceparent;
