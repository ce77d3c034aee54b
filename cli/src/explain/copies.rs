//! The copies of an event in Kafka, found by reading the partition of its key.

use std::time::Duration;

use events::{EventType, Micros, envelope};
use kafka::{
    Consumed, KafkaConfig,
    lookup::{Search, search as search_log},
};
use serde::Serialize;

use super::postgres::Found;

/// How long a partition is read.
const BUDGET: Duration = Duration::from_secs(15);

/// How far before the outbox row the search begins: records carry the clock of who sent them.
const MARGIN_US: i64 = 60_000_000;

/// What was found, and where was looked.
#[derive(Debug, Serialize)]
pub(super) struct Copies {
    /// The topic.
    pub(super) topic: String,
    /// The partition of the key.
    pub(super) partition: i32,
    /// The first offset that was looked at.
    pub(super) from: i64,
    /// The offset behind the last one that was looked at.
    pub(super) to: i64,
    /// Whether everything up to the end of the partition was looked at.
    pub(super) complete: bool,
    /// The copies, in the order of the log.
    pub(super) found: Vec<Copy>,
}

/// One copy.
#[derive(Debug, Serialize)]
pub(super) struct Copy {
    /// Its offset.
    pub(super) offset: i64,
    /// The path it came by.
    pub(super) path: &'static str,
    /// `ce_source`: database and epoch.
    pub(super) source: Option<String>,
    /// The broker's time of it, milliseconds.
    pub(super) append_ms: i64,
}

/// Searches the partition of the event's key; `None` where topic and key are not known.
///
/// # Errors
/// When Kafka does not answer.
pub(super) async fn search(
    kafka: &KafkaConfig,
    found: &Found,
    full: bool,
) -> Result<Option<Copies>, kafka::Error> {
    let known = found.type_name.as_deref().and_then(EventType::from_name);
    let (Some(event_type), Some(key), Some(created_us)) = (known, &found.key, found.created_us)
    else {
        return Ok(None);
    };
    let wanted = Search {
        topic: kafka.namespace.topic(event_type.entry().topic),
        key: key.as_bytes().to_vec(),
        since_ms: (!full).then(|| created_us.plus(-MARGIN_US).0 / 1_000),
        budget: BUDGET,
    };
    let id = found.event.to_string();
    let searched = search_log(kafka, &wanted, move |record| {
        record.header(envelope::ID) == Some(&id)
    })
    .await?;
    Ok(Some(Copies {
        topic: wanted.topic,
        partition: searched.partition,
        from: searched.from,
        to: searched.to,
        complete: searched.is_complete(),
        found: searched.matches.iter().map(copy).collect(),
    }))
}

fn copy(record: &Consumed) -> Copy {
    let path = match record.header(envelope::PATH) {
        Some(text) if text == envelope::Path::Sweep.as_str() => envelope::Path::Sweep,
        _ => envelope::Path::Cdc,
    };
    Copy {
        offset: record.offset,
        path: path.as_str(),
        source: record.header(envelope::SOURCE).map(str::to_owned),
        append_ms: record.append_ms,
    }
}

impl Copy {
    /// The broker's time of it.
    pub(super) fn appended(&self) -> Micros {
        Micros(self.append_ms.saturating_mul(1_000))
    }
}
