//! What goes out: timeline rows, progress, dead letters.

pub(crate) mod dead_letters;
pub(crate) mod progress;
pub(crate) mod timeline;
