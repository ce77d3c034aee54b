//! The whole system under faults. One at a time: some of them stop the servers that all share.

mod api_killed;
mod failover;
mod fanout_killed;
mod healed;
mod relay_killed;
mod relay_standby;
mod servers_restarted;

/// Held by each test for its whole length.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
