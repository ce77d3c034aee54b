//! What the stored names of stages say about each other, and which event types a stage is for.

use events::{Stage, registry};

/// The stages whose ledger rows mean that an id has passed `stage`: delivered implies published.
pub(crate) fn implying(stage: Stage) -> Vec<&'static str> {
    match stage {
        Stage::Published => vec![Stage::Published.as_str(), Stage::Delivered.as_str()],
        Stage::Delivered => vec![Stage::Delivered.as_str()],
    }
}

/// The stages whose dead letters and discards finish `stage`: what will never be published will
/// never be delivered.
pub(crate) fn finishing(stage: Stage) -> Vec<&'static str> {
    match stage {
        Stage::Published => vec![Stage::Published.as_str()],
        Stage::Delivered => vec![Stage::Published.as_str(), Stage::Delivered.as_str()],
    }
}

/// The event types that the stage accounts for.
pub(crate) fn types(stage: Stage) -> Vec<&'static str> {
    registry::entries()
        .iter()
        .filter(|entry| entry.stages.contains(&stage))
        .map(|entry| entry.name)
        .collect()
}
