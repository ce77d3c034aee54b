//! A scenario file as it is written: everything may be absent, nothing may be unknown.
//!
//! Each value is read alone first, so that one wrong key does not hide the next one.

use std::collections::BTreeMap;

use runtime::config::value::Span;
use serde::Deserialize;
use toml::{Table, Value};

use super::faults::Faults;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Raw {
    pub(super) about: Option<String>,
    pub(super) seed: Option<u64>,
    pub(super) duration: Option<Span>,
    pub(super) warm_up: Option<Span>,
    pub(super) graph: RawGraph,
    pub(super) posts: Option<RawPosts>,
    pub(super) celebrities: Vec<RawSchedule>,
    pub(super) readers: Option<RawReaders>,
    pub(super) hot_reader: Option<RawHotReader>,
    pub(super) churn: RawChurn,
    pub(super) probe: RawProbe,
    pub(super) limits: RawLimits,
    pub(super) thresholds: RawThresholds,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawGraph {
    pub(super) users: Option<u64>,
    pub(super) exponent: Option<f64>,
    pub(super) smallest: Option<u64>,
    pub(super) largest: Option<u64>,
    pub(super) celebrities: Option<Vec<u64>>,
    pub(super) same_partition: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawArrivals {
    pub(super) process: Option<String>,
    pub(super) rate: Option<f64>,
    pub(super) to: Option<f64>,
    pub(super) peak: Option<f64>,
    pub(super) every: Option<Span>,
    pub(super) length: Option<Span>,
    pub(super) trace: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawPosts {
    pub(super) arrivals: RawArrivals,
    pub(super) mix: BTreeMap<String, f64>,
    pub(super) delete_share: Option<f64>,
    pub(super) delete_within: Option<Span>,
    pub(super) repeat_share: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawSchedule {
    pub(super) authors: Option<u64>,
    pub(super) first: Option<u64>,
    pub(super) at: Option<Span>,
    pub(super) within: Option<Span>,
    pub(super) times: Option<u64>,
    pub(super) every: Option<Span>,
    pub(super) delete_after: Option<Span>,
    pub(super) readers_share: Option<f64>,
    pub(super) readers_within: Option<Span>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawReaders {
    pub(super) arrivals: RawArrivals,
    pub(super) pages: Option<u32>,
    pub(super) page_size: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawHotReader {
    pub(super) follows: Option<u64>,
    pub(super) arrivals: RawArrivals,
    pub(super) pages: Option<u32>,
    pub(super) page_size: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawChurn {
    pub(super) unfollow_rate: Option<f64>,
    pub(super) follow_rate: Option<f64>,
    pub(super) back_after: Option<Span>,
    pub(super) celebrity_share: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawProbe {
    pub(super) share: Option<f64>,
    pub(super) at_once: Option<usize>,
    pub(super) deliveries_per_s: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawLimits {
    pub(super) in_flight: Option<usize>,
    pub(super) patience: Option<Span>,
    pub(super) settle: Option<Span>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawThresholds {
    pub(super) ack_p99: Option<Span>,
    pub(super) page_p99: Option<Span>,
    pub(super) visible_p99: Option<Span>,
    pub(super) first_follower_p99: BTreeMap<String, Span>,
    pub(super) last_follower_p99: BTreeMap<String, Span>,
    pub(super) failed: Option<u64>,
    pub(super) scheduler_lag_p99: Option<Span>,
}

/// Reads a file's tree. What cannot be read is a fault and left out.
pub(super) fn read(table: &Table, faults: &mut Faults) -> Raw {
    let mut good = Table::new();
    for leaf in leaves(table) {
        let alone = leaf.alone();
        match alone.clone().try_into::<Raw>() {
            Ok(_) => merge(&mut good, alone),
            Err(error) => faults.add(leaf.name(), first_line(&error.to_string())),
        }
    }
    good.try_into().unwrap_or_else(|error: toml::de::Error| {
        faults.add("scenario", first_line(&error.to_string()));
        Raw::default()
    })
}

/// One value and the way to it.
#[derive(Clone, Debug)]
struct Leaf {
    path: Vec<Step>,
    value: Value,
}

#[derive(Clone, Debug)]
enum Step {
    Key(String),
    /// An element of an array of tables.
    Element(usize),
}

impl Leaf {
    fn name(&self) -> String {
        let mut name = String::new();
        for step in &self.path {
            match step {
                Step::Key(key) if name.is_empty() => name.push_str(key),
                Step::Key(key) => name.push_str(&format!(".{key}")),
                Step::Element(index) => name.push_str(&format!("[{index}]")),
            }
        }
        name
    }

    /// A tree with nothing but this value; elements before it are empty.
    fn alone(&self) -> Table {
        let mut value = self.value.clone();
        for step in self.path.iter().rev() {
            value = match step {
                Step::Key(key) => Value::Table(Table::from_iter([(key.clone(), value)])),
                Step::Element(index) => {
                    let mut elements = vec![Value::Table(Table::new()); *index];
                    elements.push(value);
                    Value::Array(elements)
                }
            };
        }
        match value {
            Value::Table(table) => table,
            _ => Table::new(),
        }
    }
}

fn leaves(table: &Table) -> Vec<Leaf> {
    let mut found = Vec::new();
    descend(&mut Vec::new(), &Value::Table(table.clone()), &mut found);
    found
}

fn descend(path: &mut Vec<Step>, value: &Value, found: &mut Vec<Leaf>) {
    match value {
        Value::Table(table) if !table.is_empty() || path.is_empty() => {
            for (key, inner) in table {
                path.push(Step::Key(key.clone()));
                descend(path, inner, found);
                let _step = path.pop();
            }
        }
        Value::Array(elements)
            if !elements.is_empty() && elements.iter().all(|e| matches!(e, Value::Table(_))) =>
        {
            for (index, inner) in elements.iter().enumerate() {
                path.push(Step::Element(index));
                descend(path, inner, found);
                let _step = path.pop();
            }
        }
        leaf => found.push(Leaf {
            path: path.clone(),
            value: leaf.clone(),
        }),
    }
}

fn merge(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(mine)), Value::Table(other)) => merge(mine, other),
            (Some(Value::Array(mine)), Value::Array(other)) => {
                for (index, element) in other.into_iter().enumerate() {
                    match (mine.get_mut(index), element) {
                        (Some(Value::Table(mine)), Value::Table(other)) => merge(mine, other),
                        (Some(_), _) => {}
                        (None, element) => mine.push(element),
                    }
                }
            }
            (_, value) => {
                let _before = into.insert(key, value);
            }
        }
    }
}

pub(super) fn first_line(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("invalid")
        .to_owned()
}
