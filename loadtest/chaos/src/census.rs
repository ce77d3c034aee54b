//! What is in the topics of events: how often each event, by which path, and in what order.
//!
//! Owns counting from outside, in its own words: nothing here asks the service that is judged.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use bytes::Bytes;
use events::{
    EventId,
    envelope::{self, Path},
    topic::TopicKind,
};
use kafka::{Consumed, KafkaConfig};

use crate::Flow;

/// Longer than partitions take to find their leader.
const BACK_WITHIN: Duration = Duration::from_secs(15);

/// How often the topics of events hold each event, by the path it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// By the relay.
    pub relay: BTreeMap<EventId, u32>,
    /// By the sweep.
    pub sweep: BTreeMap<EventId, u32>,
    /// Records that are no events.
    pub strangers: u64,
    /// Records of the relay that are the first copy of their event and stand behind a later one of
    /// the same key (D-5).
    pub disorder: u64,
    /// Of each key, where in the order of commits its last first copy belongs.
    last: HashMap<Bytes, String>,
}

/// One record.
#[derive(Clone, Debug)]
enum Seen {
    Event {
        path: Path,
        event: EventId,
        key: Bytes,
        sequence: String,
    },
    Stranger,
}

impl Census {
    /// Records that the sweep sent.
    pub fn by_sweep(&self) -> u64 {
        self.sweep.values().map(|&times| u64::from(times)).sum()
    }

    /// Records of the sweep that nobody needed: beyond the first of an event, or of an event that
    /// the relay has sent too.
    pub fn doubled(&self) -> u64 {
        let beyond = |(event, &times): (&EventId, &u32)| {
            let needed = u32::from(!self.relay.contains_key(event));
            u64::from(times.saturating_sub(needed))
        };
        self.sweep.iter().map(beyond).sum()
    }

    /// Records of the relay beyond the first of their event.
    pub fn repeated(&self) -> u64 {
        let beyond = |&times: &u32| u64::from(times.saturating_sub(1));
        self.relay.values().map(beyond).sum()
    }

    /// Every event of which there is a record.
    pub fn events(&self) -> Vec<EventId> {
        let mut events: Vec<EventId> = self
            .relay
            .keys()
            .chain(self.sweep.keys())
            .copied()
            .collect();
        events.sort_unstable();
        events.dedup();
        events
    }

    fn add(&mut self, seen: Seen) {
        let Seen::Event {
            path,
            event,
            key,
            sequence,
        } = seen
        else {
            self.strangers += 1;
            return;
        };
        if path == Path::Sweep {
            *self.sweep.entry(event).or_default() += 1;
            return;
        }
        let times = self.relay.entry(event).or_default();
        *times += 1;
        // What a fault has planted has no place in the order.
        if *times > 1 || sequence.is_empty() {
            return;
        }
        match self.last.get_mut(&key) {
            Some(last) if *last > sequence => self.disorder += 1,
            Some(last) => *last = sequence,
            None => {
                let _none = self.last.insert(key, sequence);
            }
        }
    }
}

/// Reads every record of the topics of events.
///
/// # Errors
/// When the broker does not answer.
pub async fn read(flow: &Flow) -> anyhow::Result<Census> {
    let config = flow.pipeline().deployment().kafka_config();
    let mut census = Census::default();
    for kind in TopicKind::ALL {
        let topic = config.namespace.topic(kind);
        for seen in records(&config, &topic).await? {
            census.add(seen);
        }
    }
    Ok(census)
}

/// Every record, in the order of its partition; a broker that is coming back is asked again.
async fn records(config: &KafkaConfig, topic: &str) -> anyhow::Result<Vec<Seen>> {
    let deadline = Instant::now() + BACK_WITHIN;
    loop {
        match kafka::snapshot::read(config, topic, |record| Some(see(&record))).await {
            Ok(found) => return Ok(found),
            Err(error) if error.class().is_retried() && Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn see(record: &Consumed) -> Seen {
    match record.envelope() {
        Ok(found) => Seen::Event {
            path: found.path,
            event: found.event_id,
            key: record.key.clone().unwrap_or_default(),
            sequence: record
                .header(envelope::SEQUENCE)
                .unwrap_or_default()
                .to_owned(),
        },
        Err(_) => Seen::Stranger,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(path: Path, event: i64, key: &'static str, sequence: &str) -> Seen {
        Seen::Event {
            path,
            event: EventId(event),
            key: Bytes::from_static(key.as_bytes()),
            sequence: sequence.to_owned(),
        }
    }

    #[test]
    fn only_what_nobody_needed_is_doubled() {
        let mut census = Census::default();
        let records = [
            (Path::Cdc, 1),
            // The relay may repeat itself.
            (Path::Cdc, 1),
            // Missing, sent once.
            (Path::Sweep, 2),
            // Missing, sent twice.
            (Path::Sweep, 3),
            (Path::Sweep, 3),
            // In flight, sent for nothing.
            (Path::Cdc, 4),
            (Path::Sweep, 4),
        ];
        for (path, event) in records {
            census.add(seen(path, event, "1", ""));
        }
        census.add(Seen::Stranger);
        assert_eq!((census.by_sweep(), census.doubled()), (4, 2));
        assert_eq!((census.repeated(), census.strangers), (1, 1));
        assert_eq!(census.events(), [1, 2, 3, 4].map(EventId));
    }

    /// D-5: only first copies count, and only among those of their key.
    #[test]
    fn d_5_a_first_copy_behind_a_later_one_is_out_of_order() {
        let mut census = Census::default();
        for (event, key, sequence) in [
            (1, "1", "a"),
            (2, "1", "b"),
            // A repeat, and another key.
            (1, "1", "a"),
            (3, "2", "a"),
        ] {
            census.add(seen(Path::Cdc, event, key, sequence));
        }
        // The sweep keeps no order.
        census.add(seen(Path::Sweep, 4, "1", ""));
        assert_eq!(census.disorder, 0);
        census.add(seen(Path::Cdc, 5, "1", "aa"));
        assert_eq!(census.disorder, 1);
    }
}
