//! What can go wrong at the broker, and the one table from Kafka's codes to [`Class`].

use events::Class;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// An operation on the broker that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A client could not be made from its settings.
    #[error("making a kafka {client} client")]
    Client {
        /// `producer`, `consumer` or `admin`.
        client: &'static str,
        /// What librdkafka said.
        #[source]
        source: KafkaError,
    },
    /// A request to the broker failed.
    #[error("asking kafka for {what}")]
    Request {
        /// What was asked for.
        what: String,
        /// What librdkafka said.
        #[source]
        source: KafkaError,
    },
    /// The broker refused to do something for one topic.
    #[error("{what} topic {topic}: {code}")]
    Topic {
        /// What was tried, `creating` for example.
        what: &'static str,
        /// The topic.
        topic: String,
        /// Kafka's code.
        code: RDKafkaErrorCode,
    },
    /// A topic that must exist does not.
    #[error("topic {topic} does not exist: run `tideline migrate`")]
    TopicMissing {
        /// The topic.
        topic: String,
    },
    /// A topic differs from `schemas/topics.toml`.
    #[error(
        "topic {topic} has {setting} {found}, but {expected} is declared: alter the topic, \
         nothing else changes one that exists"
    )]
    TopicDiffers {
        /// The topic.
        topic: String,
        /// The setting that differs.
        setting: &'static str,
        /// What is declared.
        expected: String,
        /// What the broker has.
        found: String,
    },
    /// A thread or task of this crate ended before it was done.
    #[error("the {what} ended before it was done")]
    Ended {
        /// Which one.
        what: &'static str,
    },
}

impl Error {
    /// What the failure means for the work that met it.
    pub fn class(&self) -> Class {
        match self {
            Self::Client { source, .. } => match source {
                KafkaError::ClientCreation(_) | KafkaError::ClientConfig(..) => Class::Config,
                other => class_of_error(other),
            },
            Self::Request { source, .. } => class_of_error(source),
            Self::Topic { code, .. } => class_of(*code),
            // Services wait for the operator's `migrate`, which may still be running.
            Self::TopicMissing { .. } => Class::Outage,
            Self::TopicDiffers { .. } => Class::Config,
            Self::Ended { .. } => Class::Bug,
        }
    }
}

/// The class of an error of `rdkafka`: that of its code, or an outage when it has none.
pub(crate) fn class_of_error(error: &KafkaError) -> Class {
    error.rdkafka_error_code().map_or(Class::Outage, class_of)
}

/// The one table from Kafka's codes to [`Class`].
///
/// What is listed is known to be final; everything else is a broker that is down, moving or busy,
/// which passes (D-12: an outage never sends a good record to the dead letters).
pub fn class_of(code: RDKafkaErrorCode) -> Class {
    use RDKafkaErrorCode as Code;
    match code {
        // The record itself can never be taken.
        Code::MessageSizeTooLarge
        | Code::MessageBatchTooLarge
        | Code::InvalidRecord
        | Code::InvalidTimestamp => Class::Record,
        // It may or may not have been written.
        Code::MessageTimedOut
        | Code::OperationTimedOut
        | Code::RequestTimedOut
        | Code::TimedOutQueue
        | Code::PurgeInflight
        | Code::NotEnoughReplicasAfterAppend => Class::Unsure,
        // An operator has to change something.
        Code::InvalidArgument
        | Code::InvalidConfig
        | Code::InvalidTopic
        | Code::InvalidGroupId
        | Code::InvalidSessionTimeout
        | Code::InconsistentGroupProtocol
        | Code::InvalidPartitions
        | Code::InvalidReplicationFactor
        | Code::PolicyViolation
        | Code::TopicAuthorizationFailed
        | Code::GroupAuthorizationFailed
        | Code::ClusterAuthorizationFailed
        | Code::SaslAuthenticationFailed
        | Code::Authentication
        | Code::UnsupportedSASLMechanism
        | Code::IllegalSASLState
        | Code::UnsupportedVersion
        | Code::UnsupportedFeature
        | Code::UnsupportedForMessageFormat
        | Code::SSL => Class::Config,
        // The client is unusable: only a new process has a fresh one.
        Code::Fatal
        | Code::Fenced
        | Code::FencedInstanceId
        | Code::ProducerFenced
        | Code::InvalidProducerEpoch
        | Code::OutOfOrderSequenceNumber
        | Code::GaplessGuarantee
        | Code::Inconsistent
        | Code::State => Class::Bug,
        _ => Class::Outage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D-12: only a record that is itself wrong is classed as one.
    #[test]
    fn d12_table_of_codes() {
        use RDKafkaErrorCode as Code;
        let table = [
            (Code::MessageSizeTooLarge, Class::Record),
            (Code::InvalidRecord, Class::Record),
            (Code::MessageTimedOut, Class::Unsure),
            (Code::BrokerTransportFailure, Class::Outage),
            (Code::AllBrokersDown, Class::Outage),
            (Code::NotEnoughReplicas, Class::Outage),
            (Code::UnknownTopicOrPartition, Class::Outage),
            (Code::UnknownTopic, Class::Outage),
            (Code::LeaderNotAvailable, Class::Outage),
            (Code::TopicAuthorizationFailed, Class::Config),
            (Code::FencedInstanceId, Class::Bug),
            (Code::Fatal, Class::Bug),
        ];
        for (code, class) in table {
            assert_eq!(class_of(code), class, "{code:?}");
        }
    }
}
