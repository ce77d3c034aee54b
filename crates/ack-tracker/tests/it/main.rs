//! Tests of the tracker through its public interface.

mod properties;
mod rules;
