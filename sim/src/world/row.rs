//! One row of the outbox, as Postgres keeps it and as the plugin sends it.

use std::rc::Rc;

use bytes::Bytes;
use events::{Event, EventId, Micros, moment::rfc3339, route::OutboxRow};
use pgoutput::{Cell, Column, Oid, Relation, ReplicaIdentity, Tuple};

/// The number of the outbox.
pub(crate) const OUTBOX: Oid = 7;
/// The largest batch that the topics take.
pub(crate) const MAX_BYTES: usize = 2_000;

/// What is wrong with a row, if anything: who has to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// No key: the relay's dead letter.
    NoKey,
    /// Too large for the topic: the relay's.
    Oversize,
    /// A type that nobody knows: the relay's.
    UnknownType,
    /// Refused by the broker for itself: the relay's, once it was tried.
    Refused,
    /// The key is not the author's: fan-out's.
    WrongKey,
    /// Not JSON: fan-out's.
    BadPayload,
}

impl Flaw {
    pub(crate) const ALL: [Self; 6] = [
        Self::NoKey,
        Self::Oversize,
        Self::UnknownType,
        Self::Refused,
        Self::WrongKey,
        Self::BadPayload,
    ];

    /// Whether the row may end in the dead letters of the step that publishes.
    pub(crate) const fn is_unpublishable(self) -> bool {
        matches!(
            self,
            Self::NoKey | Self::Oversize | Self::UnknownType | Self::Refused
        )
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) id: EventId,
    /// Its name in this world: ids are drawn twice when a standby takes over, names never.
    pub(crate) uid: u64,
    pub(crate) created_us: Micros,
    pub(crate) event: Event,
    pub(crate) flaw: Option<Flaw>,
    type_name: String,
    aggregate: &'static str,
    subject: String,
    created_at: String,
    key: Bytes,
    payload: Bytes,
    /// Carries the name, since it passes every step untouched.
    traceparent: Bytes,
}

impl Row {
    pub(crate) fn new(
        id: EventId,
        uid: u64,
        created_us: Micros,
        event: Event,
        flaw: Option<Flaw>,
    ) -> Rc<Self> {
        let mut type_name = event.event_type().as_str().to_owned();
        let mut key = event.partition_key().to_string();
        let mut payload = event.encode();
        match flaw {
            Some(Flaw::NoKey) => key.clear(),
            Some(Flaw::Oversize) => payload.push_str(&" ".repeat(MAX_BYTES)),
            Some(Flaw::UnknownType) => type_name.push('x'),
            Some(Flaw::WrongKey) => key.push('7'),
            Some(Flaw::BadPayload) => payload.insert(0, '['),
            Some(Flaw::Refused) | None => {}
        }
        Rc::new(Self {
            id,
            uid,
            created_us,
            aggregate: event.event_type().entry().aggregate,
            subject: event.subject(),
            created_at: text_of(created_us),
            key: key.into(),
            payload: payload.into(),
            traceparent: uid.to_string().into(),
            type_name,
            event,
            flaw,
        })
    }

    /// As the plugin sends it.
    pub(crate) fn tuple(&self) -> Tuple {
        let text = |text: &str| Cell::Text(Bytes::copy_from_slice(text.as_bytes()));
        Tuple {
            cells: vec![
                text(&self.id.to_string()),
                text(self.aggregate),
                text(&self.subject),
                Cell::Text(self.key.clone()),
                text(&self.type_name),
                Cell::Text(self.payload.clone()),
                Cell::Text(self.traceparent.clone()),
                text(&self.created_at),
            ],
        }
    }

    /// As a claim reads it.
    pub(crate) fn cells(&self) -> OutboxRow<'_> {
        OutboxRow {
            event: self.id,
            aggregate: self.aggregate,
            subject: &self.subject,
            type_name: &self.type_name,
            created_at: &self.created_at,
            key: Some(&self.key),
            payload: Some(&self.payload),
            traceparent: Some(&self.traceparent),
        }
    }

    /// Its type as the table has it.
    pub(crate) fn type_name(&self) -> &str {
        &self.type_name
    }
}

/// The table as the plugin describes it.
pub(crate) fn relation() -> Relation {
    let names = [
        "id",
        "aggregatetype",
        "aggregateid",
        "partition_key",
        "type",
        "payload",
        "traceparent",
        "created_at",
    ];
    let column = |name: &str| Column {
        key: name == "id",
        name: name.to_owned(),
        type_oid: 25,
        type_modifier: -1,
    };
    Relation {
        oid: OUTBOX,
        schema: "tideline".to_owned(),
        name: "outbox".to_owned(),
        identity: ReplicaIdentity::Default,
        columns: names.into_iter().map(column).collect(),
    }
}

/// A moment as Postgres prints it, in UTC.
fn text_of(at: Micros) -> String {
    rfc3339(at).replace('T', " ").replace('Z', "+00")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_read_as_postgres_prints_them() {
        for (micros, text) in [
            (0, "1970-01-01 00:00:00.000000+00"),
            (1_709_164_800_000_001, "2024-02-29 00:00:00.000001+00"),
            (1_796_041_000_000_000, "2026-11-30 12:16:40.000000+00"),
        ] {
            assert_eq!(text_of(Micros(micros)), text);
        }
    }
}
