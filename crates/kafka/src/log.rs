//! Hands librdkafka's log to `tracing`, at a sane rate.
//!
//! A broker that is down makes each connection of each client complain several times a second;
//! what is not critical is therefore let through at most a few times per window, with a count of
//! what was held back.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use rdkafka::{ClientContext, config::RDKafkaLogLevel, error::KafkaError};

const WINDOW: Duration = Duration::from_secs(10);
const PER_WINDOW: u32 = 5;

/// The log of one client.
#[derive(Debug, Default)]
pub(crate) struct ClientLog {
    window: Mutex<Option<Window>>,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    lines: u32,
    held_back: u32,
}

impl ClientLog {
    pub(crate) fn line(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        match level {
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
                tracing::error!(target: "kafka::client", facility, "{text}");
            }
            RDKafkaLogLevel::Error | RDKafkaLogLevel::Warning | RDKafkaLogLevel::Notice => {
                if let Some(held_back) = self.admit() {
                    tracing::warn!(target: "kafka::client", facility, held_back, "{text}");
                }
            }
            RDKafkaLogLevel::Info | RDKafkaLogLevel::Debug => {
                tracing::debug!(target: "kafka::client", facility, "{text}");
            }
        }
    }

    pub(crate) fn error(&self, error: &KafkaError, reason: &str) {
        if let Some(held_back) = self.admit() {
            tracing::warn!(target: "kafka::client", %error, held_back, "{reason}");
        }
    }

    /// Whether a line may pass; with how many were held back before it.
    fn admit(&self) -> Option<u32> {
        let mut guard = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let held_back = match guard.as_mut() {
            Some(window) if now.duration_since(window.began) < WINDOW => {
                if window.lines >= PER_WINDOW {
                    window.held_back += 1;
                    return None;
                }
                window.lines += 1;
                return Some(0);
            }
            Some(window) => window.held_back,
            None => 0,
        };
        *guard = Some(Window {
            began: now,
            lines: 1,
            held_back: 0,
        });
        Some(held_back)
    }
}

/// The context of clients that need nothing but a log.
#[derive(Debug, Default)]
pub(crate) struct LogContext(pub(crate) ClientLog);

impl ClientContext for LogContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        self.0.line(level, facility, text);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.0.error(&error, reason);
    }
}

impl rdkafka::consumer::ConsumerContext for LogContext {}
