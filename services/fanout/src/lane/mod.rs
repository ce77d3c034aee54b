//! Lanes: one consumer group each. They wire source, core and sink, and decide nothing.

pub(crate) mod attempts;
pub(crate) mod drive;
pub(crate) mod posts;
