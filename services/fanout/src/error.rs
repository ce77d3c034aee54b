//! Everything that can go wrong while a record is worked on, and the one classification.

use events::{Class, PostId};
use kafka::record::EnvelopeError;
use timeline_store::StoreError;

/// A step that failed.
#[derive(Debug, thiserror::Error)]
pub enum FanoutError {
    /// Postgres.
    #[error(transparent)]
    Database(#[from] database::Error),
    /// The timeline store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Kafka, a question or a client.
    #[error(transparent)]
    Kafka(#[from] kafka::Error),
    /// A dead letter that was not acknowledged.
    #[error("storing a dead letter")]
    DeadLetter(#[source] kafka::ProduceError),
    /// A record that is not an event.
    #[error("reading a record")]
    Decode(#[source] EnvelopeError),
    /// The key is null or not the event's.
    #[error("record key is {found}, the event asks for {expected}")]
    Key {
        /// What is there.
        found: String,
        /// What should be.
        expected: String,
    },
    /// The post is so old that a delete of it may have been forgotten (D-8).
    #[error("post {post} is past the tombstone horizon")]
    PastHorizon {
        /// The post.
        post: PostId,
    },
    /// The work on a record panicked.
    #[error("the work on a record panicked: {text}")]
    Panicked {
        /// What the panic said.
        text: String,
    },
    /// The state machine met what cannot be.
    #[error("{text}")]
    Order {
        /// What it met.
        text: &'static str,
    },
    /// The consumer is gone although nobody closed it.
    #[error("the consumer ended")]
    ConsumerEnded,
    /// Another member of the group has this one's instance id, or had it during an outage.
    #[error(
        "fenced by another member with the same instance id ({reason}); give each worker a \
         `fanout.instance_id` of its own"
    )]
    Fenced {
        /// What the client said.
        reason: String,
    },
    /// The consumer's client cannot go on: without rights, or broken.
    #[error("the consumer broke: {reason}")]
    ConsumerBroke {
        /// What the client said.
        reason: String,
        /// What it means.
        class: Class,
    },
}

impl FanoutError {
    /// A panic that was caught.
    pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Self::Panicked {
            text: text.unwrap_or_else(|| "no text".to_owned()),
        }
    }

    /// What the failure means for the record that met it (D-12).
    pub fn class(&self) -> Class {
        match self {
            Self::Database(error) => error.class(),
            Self::Store(error) => error.class(),
            Self::Kafka(error) => error.class(),
            // A dead letter that the broker can never take must not be skipped: the lane stops.
            Self::DeadLetter(error) => match error.class() {
                Class::Record => Class::Bug,
                class => class,
            },
            Self::Decode(_) | Self::Key { .. } | Self::PastHorizon { .. } => Class::Record,
            Self::Panicked { .. } | Self::Order { .. } | Self::ConsumerEnded => Class::Bug,
            Self::Fenced { .. } => Class::Config,
            Self::ConsumerBroke { class, .. } => *class,
        }
    }

    /// The stable code of a dead letter.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Decode(error) => error.reason(),
            Self::Key { .. } => "key_mismatch",
            Self::PastHorizon { .. } => "past_horizon",
            Self::Panicked { .. } => "panicked",
            Self::Database(_) => "database_refused",
            Self::Store(_) => "store_refused",
            Self::Kafka(_)
            | Self::DeadLetter(_)
            | Self::Order { .. }
            | Self::ConsumerEnded
            | Self::Fenced { .. }
            | Self::ConsumerBroke { .. } => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use kafka::ProduceError;

    use super::*;

    /// D-12: what an outage or an unknown outcome does to a dead letter is never a skip.
    #[test]
    fn d_12_dead_letters_are_tried_again_or_stop_the_lane() {
        let timed_out = ProduceError::TimedOut {
            topic: "t".into(),
            waited: std::time::Duration::ZERO,
        };
        assert_eq!(FanoutError::DeadLetter(timed_out).class(), Class::Unsure);
        let missing = FanoutError::Decode(EnvelopeError::Missing { header: "ce_id" });
        assert_eq!(
            (missing.class(), missing.reason()),
            (Class::Record, "header_missing")
        );
        let old = FanoutError::PastHorizon {
            post: events::PostId(1),
        };
        assert_eq!((old.class(), old.reason()), (Class::Record, "past_horizon"));
    }
}
