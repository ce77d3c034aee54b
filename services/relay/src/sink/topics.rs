//! The start-up check of the topics.

use events::topic::TopicKind;
use kafka::KafkaConfig;

/// Compares the live topics with `schemas/topics.toml` and answers the limit of each topic that
/// carries events: the largest record batch, bytes.
///
/// # Errors
/// The first difference, or that the broker does not answer.
pub async fn verify(
    config: &KafkaConfig,
) -> Result<impl Fn(TopicKind) -> usize + use<>, kafka::Error> {
    kafka::topics::verify(config).await?;
    // What is declared is live, as was just seen.
    let declared = kafka::topics::declared(&config.namespace);
    let namespace = config.namespace.clone();
    Ok(move |kind| {
        let name = namespace.topic(kind);
        let topic = declared.iter().find(|topic| topic.name == name);
        topic.map_or(0, |topic| {
            usize::try_from(topic.max_message_bytes).unwrap_or(usize::MAX)
        })
    })
}
