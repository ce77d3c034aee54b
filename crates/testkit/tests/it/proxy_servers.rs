//! The clients of the three servers work through a proxy, feel it, give up on a black hole, and are
//! back after a reset.

use std::time::{Duration, Instant};

use database::Pool;
use events::{PostId, UserId};
use kafka::{Admin, KafkaConfig};
use testkit::{Deployment, Direction, Fault, Proxy, answered, eventually, proxy};
use timeline_store::{CqlConfig, CqlTimelines};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const DELAY: Duration = Duration::from_millis(150);
const SLOW: Fault = Fault::Latency {
    by: DELAY,
    jitter: Duration::ZERO,
};

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_postgres_go_through() {
    let deployment = Deployment::without_timelines().await;
    let (proxy, env) = proxy::in_front_of_postgres(&deployment);
    let pool = Pool::new(&env[0].1, 1, "proxied").expect("a URL");
    answered(|| pool.ping()).await;
    let before = proxy.counters();
    assert!(before.accepted >= 1 && before.bytes_to_client > 0);

    faults(&proxy, async || pool.ping().await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replication_connections_of_postgres_go_through() {
    let deployment = Deployment::without_timelines().await;
    let (proxy, _env) = proxy::in_front_of_postgres(&deployment);
    let mut stream = TcpStream::connect(proxy.address()).await.expect("accepted");
    let words = [
        "user",
        "postgres",
        "database",
        &deployment.keyspace(),
        "replication",
        "database",
    ];
    // Protocol 3.0, then pairs of strings and an empty one (manual, chapter "Message Formats").
    let mut body = vec![0, 3, 0, 0];
    for word in words {
        body.extend(word.bytes().chain([0]));
    }
    body.push(0);
    stream.write_all(&framed(&[], &body)).await.expect("sent");
    assert!(!until_ready(&mut stream).await.contains(&b'E'));
    let query = framed(b"Q", b"IDENTIFY_SYSTEM\0");
    stream.write_all(&query).await.expect("sent");
    assert!(until_ready(&mut stream).await.contains(&b'D'));
    assert!(proxy.counters().bytes_to_client > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_the_broker_go_through() {
    let deployment = Deployment::without_timelines().await;
    let (proxy, env) = proxy::in_front_of_kafka(&deployment).await;
    let config = KafkaConfig {
        brokers: env[0].1.clone(),
        ..deployment.kafka_config()
    };
    let admin = Admin::new(&config).expect("a client");
    answered(|| admin.ping()).await;
    // What follows the first answer goes where the broker says.
    let topic = deployment.namespace().probe();
    let offsets = answered(|| admin.end_offsets(&topic)).await;
    assert_eq!(offsets.len(), 1);
    assert!(proxy.counters().bytes_to_client > 0);

    faults(&proxy, async || admin.end_offsets(&topic).await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_the_cql_store_go_through() {
    let deployment = Deployment::new().await;
    let (proxy, env) = proxy::in_front_of_cql(&deployment);
    let config = CqlConfig {
        nodes: vec![env[0].1.clone()],
        keyspace: deployment.keyspace(),
        ..CqlConfig::default()
    };
    let store = answered(|| CqlTimelines::connect(&config)).await;
    let (owner, post) = (UserId(1), PostId(1));
    // One for control at least, and those that carry requests.
    assert!(proxy.counters().accepted >= 2);

    faults(&proxy, async || store.row(owner, post).await.is_ok()).await;
}

/// Latency is felt; a black hole is given up on, which ends with it; after a reset there is a new
/// connection.
async fn faults(proxy: &Proxy, ask: impl AsyncFn() -> bool) {
    again(&ask).await;
    proxy.set_on(Direction::ToClient, SLOW);
    let late = eventually("a late answer", async || {
        let begun = Instant::now();
        ask().await.then(|| begun.elapsed())
    })
    .await;
    assert!(late >= DELAY, "{late:?}");
    assert!(proxy.counters().delayed > 0);

    proxy.set(Fault::BlackHole);
    let given_up = tokio::time::timeout(Duration::from_secs(30), ask()).await;
    assert_eq!(given_up, Ok(false), "the client gives up by itself");
    assert!(proxy.counters().held + proxy.counters().swallowed > 0);
    proxy.clear();
    again(&ask).await;

    let before = proxy.counters();
    proxy.set(Fault::Reset);
    eventually("a connection is reset", async || {
        (proxy.counters().reset > before.reset).then_some(())
    })
    .await;
    proxy.clear();
    again(&ask).await;
    // Not before it answers: a client with several connections may have kept another one.
    eventually("there is a new connection", async || {
        (proxy.counters().accepted > before.accepted).then_some(())
    })
    .await;
}

/// The first attempts may still meet what a fault has left.
async fn again(ask: &impl AsyncFn() -> bool) {
    eventually("answers come again", async || ask().await.then_some(())).await;
}

fn framed(kind: &[u8], body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("short");
    [kind, &length.to_be_bytes(), body].concat()
}

/// Kinds of the messages up to "ready for query".
async fn until_ready(stream: &mut TcpStream) -> Vec<u8> {
    let mut kinds = Vec::new();
    while kinds.last() != Some(&b'Z') {
        kinds.push(stream.read_u8().await.expect("a message"));
        let length = stream.read_u32().await.expect("its length");
        let mut body = vec![0; usize::try_from(length).expect("short") - 4];
        let _length = stream.read_exact(&mut body).await.expect("its body");
    }
    kinds
}
