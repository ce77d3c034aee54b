//! Tests of what tests stand on.

mod clock;
mod cluster;
mod nodes;
mod proxy;
mod proxy_servers;
