//! Makes the session: what every request has in common.

use std::sync::Arc;
use std::time::Duration;

use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::statement::{Consistency, SerialConsistency};

use crate::error::StoreError;

/// How long one TCP connection may take to open.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(3);

/// How often the driver asks on each connection whether the node is there, and how long it waits
/// for the answer. A node that stands still keeps its connections; with the
/// driver's defaults (30 s each) it was sent requests for a minute.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(3);

/// How long the whole of a new session may take.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens a session without a keyspace. Every request on it has this time limit, `LOCAL_QUORUM`
/// and no retry by the driver: the default policy repeats some errors and not others.
pub(crate) async fn open(
    nodes: &[String],
    request_timeout: Duration,
) -> Result<Session, StoreError> {
    let profile = ExecutionProfile::builder()
        .consistency(Consistency::LocalQuorum)
        .serial_consistency(Some(SerialConsistency::LocalSerial))
        .request_timeout(Some(request_timeout))
        .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
        .speculative_execution_policy(None)
        .build();
    let builder = SessionBuilder::new()
        .known_nodes(nodes)
        .default_execution_profile_handle(profile.into_handle())
        .connection_timeout(CONNECTION_TIMEOUT)
        .keepalive_interval(KEEPALIVE_INTERVAL)
        .keepalive_timeout(KEEPALIVE_TIMEOUT);
    // Boxed because the driver's future is large.
    match tokio::time::timeout(SESSION_TIMEOUT, Box::pin(builder.build())).await {
        Ok(Ok(session)) => Ok(session),
        Ok(Err(source)) => Err(StoreError::Connect {
            nodes: nodes.join(","),
            source: Box::new(source),
        }),
        Err(_) => Err(StoreError::ConnectTimeout {
            nodes: nodes.join(","),
            after: SESSION_TIMEOUT,
        }),
    }
}
