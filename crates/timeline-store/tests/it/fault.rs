//! The real store behind a proxy that stalls and cuts: which class an outage has, and that the
//! same call completes once it is over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use events::Class;
use timeline_store::{CqlConfig, StoreError, TimelineStore, WriteMode, Written};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::store::{all, connect, keyspace, now, row};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Bytes pass.
    Open,
    /// Bytes wait, connections stay.
    Stalled,
    /// Connections are closed, new ones too.
    Cut,
}

/// Passes connections on to one server. Everything ends when it is dropped.
struct Proxy {
    address: String,
    line: Arc<watch::Sender<Line>>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    async fn new(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address").to_string();
        let line = Arc::new(watch::Sender::new(Line::Open));
        let mut tasks = JoinSet::new();
        let state = Arc::clone(&line);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&server).await else {
                    continue;
                };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                connections.spawn(pass(from_client, to_server, state.subscribe()));
                connections.spawn(pass(from_server, to_client, state.subscribe()));
            }
        });
        Self {
            address,
            line,
            _tasks: tasks,
        }
    }

    fn set(&self, line: Line) {
        self.line.send_replace(line);
    }
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut line: watch::Receiver<Line>,
) {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let read = tokio::select! {
            read = from.read(&mut bytes) => read.unwrap_or(0),
            _ = line.wait_for(|line| *line == Line::Cut) => return,
        };
        // Read already, so it waits here until the line is open again.
        let open = line.wait_for(|line| *line != Line::Stalled).await;
        let open = open.is_ok_and(|line| *line == Line::Open);
        if read == 0 || !open || to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

/// Repeats a write as a service does, until it is done.
async fn until_written(store: &impl TimelineStore, rows: &[timeline_store::TimelineRow]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match store.write(rows, &now()).await {
            Ok(written) => {
                assert_eq!(
                    written,
                    Written {
                        rows: rows.len() as u64,
                        expired: 0
                    }
                );
                return;
            }
            Err(error) => assert!(repeatable(&error), "{error:?}"),
        }
        assert!(Instant::now() < deadline, "the store does not come back");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn repeatable(error: &StoreError) -> bool {
    matches!(error.class(), Class::Outage | Class::Unsure)
}

async fn check(name: &str, mode: WriteMode) {
    let direct = keyspace(name).await;
    let proxy = Proxy::new(direct.nodes.concat()).await;
    let config = CqlConfig {
        nodes: vec![proxy.address.clone()],
        ..direct.clone()
    };
    let store = connect(&config, mode).await;
    let rows: Vec<_> = (0..500).map(|i| row(i, 1, 0)).collect();

    // A server that does not answer: the outcome is unknown, and that is known within 5 s (D-7).
    proxy.set(Line::Stalled);
    let asked = Instant::now();
    let error = store
        .write(&rows, &now())
        .await
        .expect_err("nothing can be acknowledged");
    assert_eq!(error.class(), Class::Unsure, "{error:?}");
    assert!(
        asked.elapsed() < Duration::from_secs(5),
        "{:?}",
        asked.elapsed()
    );
    proxy.set(Line::Open);
    until_written(&store, &rows).await;

    // A server that is gone.
    proxy.set(Line::Cut);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let error = store
            .write(&rows, &now())
            .await
            .expect_err("nothing can be sent");
        assert!(repeatable(&error), "{error:?}");
        if error.class() == Class::Outage {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "never seen as an outage: {error:?}"
        );
    }
    // A scan of a store that was away is late, not in vain.
    let (read, ()) = tokio::join!(all(&store), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        proxy.set(Line::Open);
    });
    assert_eq!(read.len(), 500);
    until_written(&store, &rows).await;
    assert_eq!(all(&connect(&direct, mode).await).await.len(), 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn d_12_stalls_and_cuts_are_repeated_and_lose_nothing_with_single_writes() {
    check("fault_single", WriteMode::Single).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d_12_stalls_and_cuts_are_repeated_and_lose_nothing_with_grouped_writes() {
    check("fault_grouped", WriteMode::Grouped).await;
}
