//! What goes out: timeline rows, progress, dead letters, requests to the sweep.

pub(crate) mod dead_letters;
pub(crate) mod progress;
pub(crate) mod requests;
pub(crate) mod timeline;
