//! Tests of what tests stand on.

mod cluster;
