//! Bounds and shutdown of the server loop, over real sockets on the loopback interface.

use std::{sync::Arc, time::Duration};

use axum::{Router, routing::get};
use http_api::{ServeLimits, Served, serve};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, oneshot},
    time::timeout,
};

const WAIT: Duration = Duration::from_secs(10);
/// No limit is met unless a test lowers it: on a busy machine half a second passes by itself.
const LIMITS: ServeLimits = ServeLimits {
    connections: 2,
    head_timeout: Duration::from_secs(60),
    drain: Duration::from_secs(60),
};

struct Server {
    address: std::net::SocketAddr,
    entered: Arc<Notify>,
    release: Arc<Notify>,
    stop: oneshot::Sender<()>,
    served: tokio::task::JoinHandle<Served>,
}

async fn server(limits: ServeLimits) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (inside, outside) = (Arc::clone(&entered), Arc::clone(&release));
    let router = Router::new()
        .route("/quick", get(|| async { "quick" }))
        .route(
            "/slow",
            get(move || async move {
                inside.notify_one();
                outside.notified().await;
                "slow"
            }),
        );
    let (stop, stopped) = oneshot::channel();
    let served = tokio::spawn(serve(listener, router, limits, async {
        let _ = stopped.await;
    }));
    Server {
        address,
        entered,
        release,
        stop,
        served,
    }
}

async fn ask(address: std::net::SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes())
        .await
        .unwrap();
    stream
}

async fn read_to_end(mut stream: TcpStream) -> String {
    let mut text = String::new();
    timeout(WAIT, stream.read_to_string(&mut text))
        .await
        .unwrap()
        .unwrap();
    text
}

#[tokio::test]
async fn a_request_in_flight_is_answered_after_the_stop() {
    let s = server(LIMITS).await;
    let stream = ask(s.address, "/slow").await;
    timeout(WAIT, s.entered.notified()).await.unwrap();
    s.stop.send(()).unwrap();
    // The listener is gone before the request is.
    timeout(WAIT, async {
        while TcpStream::connect(s.address).await.is_ok() {}
    })
    .await
    .unwrap();
    s.release.notify_one();
    let text = read_to_end(stream).await;
    assert!(
        text.starts_with("HTTP/1.1 200") && text.ends_with("slow"),
        "{text}"
    );
    assert_eq!(
        timeout(WAIT, s.served).await.unwrap().unwrap(),
        Served::Drained
    );
}

#[tokio::test]
async fn a_request_that_outlasts_the_drain_is_cut() {
    let s = server(ServeLimits {
        drain: Duration::from_millis(500),
        ..LIMITS
    })
    .await;
    let _stream = ask(s.address, "/slow").await;
    timeout(WAIT, s.entered.notified()).await.unwrap();
    s.stop.send(()).unwrap();
    assert_eq!(
        timeout(WAIT, s.served).await.unwrap().unwrap(),
        Served::Cut(1)
    );
}

#[tokio::test]
async fn a_client_that_sends_no_head_is_cut_and_makes_room() {
    let s = server(ServeLimits {
        head_timeout: Duration::from_secs(1),
        ..LIMITS
    })
    .await;
    let silent = [
        TcpStream::connect(s.address).await.unwrap(),
        TcpStream::connect(s.address).await.unwrap(),
    ];
    // Both connections that there may be are taken; the third is served once they time out.
    let mut stream = ask(s.address, "/quick").await;
    let mut head = [0; 12];
    timeout(WAIT, stream.read_exact(&mut head))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    for stream in silent {
        let text = read_to_end(stream).await;
        assert!(
            text.is_empty() || text.starts_with("HTTP/1.1 408"),
            "{text}"
        );
    }
}
