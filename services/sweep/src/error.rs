//! What can go wrong around the core, and the one classification.

use events::Class;

/// A step that failed.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// Postgres.
    #[error(transparent)]
    Database(#[from] database::Error),
    /// Kafka, a question or a client.
    #[error(transparent)]
    Kafka(#[from] kafka::Error),
    /// A record that the broker has not acknowledged.
    #[error("sending event {event} again")]
    Produce {
        /// The event.
        event: events::EventId,
        /// What the producer said.
        #[source]
        source: kafka::ProduceError,
    },
    /// A record that the client does not take.
    #[error("handing over event {event}")]
    Enqueue {
        /// The event.
        event: events::EventId,
        /// What the client said.
        #[source]
        source: kafka::EnqueueError,
    },
    /// Records that the broker has not acknowledged in time; they may be written nevertheless.
    #[error("{records} records are not acknowledged after {waited:?}")]
    Unacknowledged {
        /// How many.
        records: usize,
        /// How long they were waited for.
        waited: std::time::Duration,
    },
    /// The server is a standby: nothing can be claimed there.
    #[error(
        "the server is in recovery: point the url at the primary; this is tried again, since it may be promoted"
    )]
    Recovery,
    /// An argument that cannot be worked with.
    #[error("{option} {value:?}: {fix}")]
    Argument {
        /// The option, with its dashes.
        option: &'static str,
        /// What was given.
        value: String,
        /// What to give instead.
        fix: String,
    },
    /// A task of this process ended although nobody asked it to.
    #[error("the {task} ended: {text}")]
    Ended {
        /// Which one.
        task: &'static str,
        /// What it said.
        text: String,
    },
}

impl SweepError {
    /// What the failure means for the work that met it (D-12).
    pub fn class(&self) -> Class {
        match self {
            Self::Database(error) => error.class(),
            Self::Kafka(error) => error.class(),
            Self::Produce { source, .. } => source.class(),
            Self::Enqueue { source, .. } => source.class(),
            Self::Unacknowledged { .. } => Class::Unsure,
            Self::Recovery => Class::Outage,
            Self::Argument { .. } => Class::Config,
            Self::Ended { .. } => Class::Bug,
        }
    }
}

#[cfg(test)]
mod tests {
    use events::EventId;
    use kafka::ProduceError;

    use super::*;

    /// D-12: an outage and an unknown outcome are tried again.
    #[test]
    fn d_12_every_failure_has_its_class() {
        let timed_out = SweepError::Produce {
            event: EventId(7),
            source: ProduceError::TimedOut {
                topic: "t".into(),
                waited: std::time::Duration::ZERO,
            },
        };
        assert_eq!(timed_out.class(), Class::Unsure);
        let unacknowledged = SweepError::Unacknowledged {
            records: 3,
            waited: std::time::Duration::ZERO,
        };
        assert_eq!(unacknowledged.class(), Class::Unsure);
        let full = SweepError::Enqueue {
            event: EventId(7),
            source: kafka::EnqueueError::QueueFull(Box::new(kafka::Record {
                topic: "t".into(),
                key: None,
                payload: None,
                headers: Vec::new(),
            })),
        };
        assert_eq!(full.class(), Class::Outage);
        assert_eq!(SweepError::Recovery.class(), Class::Outage);
        let other = SweepError::Database(database::Error::OtherEpoch {
            given: 1,
            current: 2,
        });
        assert_eq!(other.class(), Class::Record);
        let wrong = SweepError::Argument {
            option: "--stage",
            value: "x".into(),
            fix: "use published or delivered".into(),
        };
        assert_eq!(
            (wrong.class(), wrong.to_string().as_str()),
            (Class::Config, "--stage \"x\": use published or delivered")
        );
    }
}
