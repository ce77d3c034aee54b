//! A proxy does to plain connections what it is told to, and counts it.

use std::{
    io::ErrorKind,
    time::{Duration, Instant},
};

use testkit::{Direction, Fault, Proxy, eventually};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

/// Long enough to say that nothing comes.
const SILENCE: Duration = Duration::from_millis(300);
/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that sends back what it gets, on every connection. Ends with the runtime.
async fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let _task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _task = tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                let _outcome = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    address
}

async fn proxied() -> (Proxy, TcpStream) {
    let proxy = Proxy::start(&echo().await);
    let stream = connect(&proxy).await;
    (proxy, stream)
}

async fn connect(proxy: &Proxy) -> TcpStream {
    let connected = TcpStream::connect(proxy.address()).await;
    connected.expect("the proxy accepts")
}

/// Sends and awaits the echo; answers how long that took.
async fn round(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<Duration> {
    let begun = Instant::now();
    stream.write_all(text).await?;
    let mut answer = vec![0; text.len()];
    let read = timeout(PATIENCE, stream.read_exact(&mut answer)).await;
    let _length = read.expect("an answer or an end")?;
    assert_eq!(answer, text);
    Ok(begun.elapsed())
}

/// A new connection is reset: as soon as it is there, or even before its client knows.
async fn new_is_reset(proxy: &Proxy) {
    let error = match TcpStream::connect(proxy.address()).await {
        Ok(mut stream) => end(&mut stream).await.expect_err("reset, not closed"),
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

/// How a connection ended that has nothing more to say.
async fn end(stream: &mut TcpStream) -> std::io::Result<usize> {
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    read.expect("an end")
}

#[tokio::test]
async fn without_a_fault_everything_gets_through_in_both_directions() {
    let (proxy, mut stream) = proxied().await;
    let text: Vec<u8> = (0..100_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let (mut from, mut to) = stream.split();
    let mut answer = vec![0; text.len()];
    let (sent, got) = tokio::join!(to.write_all(&text), from.read_exact(&mut answer));
    sent.expect("sent");
    assert_eq!(got.expect("answered"), text.len());
    assert!(answer == text);
    to.shutdown().await.expect("half closed");
    assert_eq!(end(&mut stream).await.expect("closed, not reset"), 0);
    let counted = proxy.counters();
    assert_eq!(counted.bytes_to_server, 100_000);
    assert_eq!(counted.bytes_to_client, 100_000);
    eventually("the connection is over", async || {
        (proxy.counters().open == 0).then_some(())
    })
    .await;
    let counted = proxy.counters();
    assert_eq!((counted.accepted, counted.reset, counted.cut), (1, 0, 0));
}

#[tokio::test]
async fn latency_is_felt_in_its_direction_and_order_is_kept() {
    let (proxy, mut stream) = proxied().await;
    let by = Duration::from_millis(200);
    let jitter = Duration::from_millis(100);
    proxy.reseed(3);
    proxy.set_on(Direction::ToClient, Fault::Latency { by, jitter });
    for text in [b"one", b"two", b"six"] {
        let took = round(&mut stream, text).await.expect("an answer");
        assert!(took >= by, "{took:?}");
    }
    let counted = proxy.counters();
    assert_eq!(counted.delayed, 3);
    proxy.set(Fault::Latency { by, jitter });
    let took = round(&mut stream, b"both").await.expect("an answer");
    assert!(took >= by * 2, "{took:?}");
}

#[tokio::test]
async fn bandwidth_limits_how_fast_bytes_come() {
    let (proxy, mut stream) = proxied().await;
    proxy.set_on(
        Direction::ToServer,
        Fault::Bandwidth {
            bytes_per_s: 100_000,
        },
    );
    let took = round(&mut stream, &[7; 50_000]).await.expect("an answer");
    assert!(took >= Duration::from_millis(400), "{took:?}");
    assert!(proxy.counters().throttled >= 5, "{:?}", proxy.counters());
}

#[tokio::test]
async fn a_black_hole_freezes_what_is_open_swallows_what_is_new_and_then_lets_go() {
    let (proxy, mut open) = proxied().await;
    let _took = round(&mut open, b"before").await.expect("an answer");
    proxy.set(Fault::BlackHole);
    open.write_all(b"held").await.expect("the system takes it");
    let mut new = connect(&proxy).await;
    new.write_all(b"swallowed")
        .await
        .expect("the system takes it");
    eventually("both are in the hole", async || {
        let counted = proxy.counters();
        (counted.swallowed >= 1 && counted.held >= 2).then_some(())
    })
    .await;
    let mut byte = [0];
    for stream in [&mut open, &mut new] {
        let read = timeout(SILENCE, stream.read(&mut byte)).await;
        assert!(read.is_err(), "no answer and no end: {read:?}");
    }
    let counted = proxy.counters();
    assert_eq!((counted.swallowed, counted.held), (1, 2), "{counted:?}");
    // Who gives up in the hole is forgotten.
    drop(connect(&proxy).await);
    eventually("only those who wait are left", async || {
        let counted = proxy.counters();
        (counted.swallowed == 2 && counted.open == 2).then_some(())
    })
    .await;

    proxy.clear();
    let mut answer = [0; 4];
    let read = timeout(PATIENCE, open.read_exact(&mut answer)).await;
    let _length = read.expect("an answer").expect("no end");
    assert_eq!(&answer, b"held");
    let mut answer = [0; 9];
    let read = timeout(PATIENCE, new.read_exact(&mut answer)).await;
    let _length = read.expect("an answer").expect("no end");
    assert_eq!(&answer, b"swallowed");
}

#[tokio::test]
async fn a_black_hole_of_answers_takes_requests() {
    let (proxy, mut stream) = proxied().await;
    let _took = round(&mut stream, b"before").await.expect("an answer");
    proxy.set_on(Direction::ToClient, Fault::BlackHole);
    stream
        .write_all(b"taken")
        .await
        .expect("the system takes it");
    eventually("the answer is held", async || {
        (proxy.counters().held == 1).then_some(())
    })
    .await;
    assert_eq!(proxy.counters().bytes_to_server, 11);
    assert_eq!(proxy.counters().bytes_to_client, 6);
}

#[tokio::test]
async fn a_black_hole_holds_a_bounded_amount() {
    let (proxy, mut stream) = proxied().await;
    let _took = round(&mut stream, b"before").await.expect("an answer");
    proxy.set_on(Direction::ToServer, Fault::BlackHole);
    let chunk = vec![0; 1 << 20];
    let mut taken = stream.write(&chunk).await.expect("the system takes it");
    // One that has not begun to take takes nothing either.
    eventually("the proxy takes what comes", async || {
        (proxy.counters().held >= 1).then_some(())
    })
    .await;
    // What the system buffers for a connection is bounded too, by a few MiB.
    while let Ok(sent) = timeout(SILENCE, stream.write(&chunk)).await {
        taken += sent.expect("the connection stays");
        assert!(taken < 64 << 20, "the proxy takes everything");
    }
    assert_eq!(proxy.counters().bytes_to_server, 6);
}

#[tokio::test]
async fn reset_ends_what_is_open_and_what_is_new() {
    let (proxy, mut open) = proxied().await;
    let _took = round(&mut open, b"before").await.expect("an answer");
    proxy.set(Fault::Reset);
    let error = end(&mut open).await.expect_err("reset, not closed");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    new_is_reset(&proxy).await;
    eventually("both are counted", async || {
        (proxy.counters().reset == 2).then_some(())
    })
    .await;
    proxy.clear();
    let mut new = connect(&proxy).await;
    let _took = round(&mut new, b"after").await.expect("an answer");
}

#[tokio::test]
async fn a_cut_loses_the_answer_and_not_the_request() {
    let (proxy, mut stream) = proxied().await;
    let _took = round(&mut stream, b"before").await.expect("an answer");
    proxy.set_on(Direction::ToClient, Fault::CutAfter { bytes: 0 });
    stream.write_all(b"lost").await.expect("sent");
    let error = end(&mut stream).await.expect_err("reset, not closed");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let counted = proxy.counters();
    assert_eq!(
        (counted.cut, counted.bytes_to_server),
        (1, 10),
        "{counted:?}"
    );
    assert_eq!(counted.bytes_to_client, 6);
}

#[tokio::test]
async fn a_cut_lets_so_many_bytes_of_each_connection_through() {
    let (proxy, mut stream) = proxied().await;
    let _took = round(&mut stream, b"before").await.expect("an answer");
    proxy.set_on(Direction::ToClient, Fault::CutAfter { bytes: 5 });
    for mut stream in [stream, connect(&proxy).await] {
        let _took = round(&mut stream, b"five!").await.expect("an answer");
        stream.write_all(b"x").await.expect("sent");
        let _error = end(&mut stream).await.expect_err("reset, not closed");
    }
    assert_eq!(proxy.counters().cut, 2);
}

#[tokio::test]
async fn refusal_turns_new_ones_away_only() {
    let (proxy, mut open) = proxied().await;
    let _took = round(&mut open, b"before").await.expect("an answer");
    proxy.set(Fault::Refuse);
    new_is_reset(&proxy).await;
    let _took = round(&mut open, b"still").await.expect("an answer");
    assert_eq!(proxy.counters().refused, 1);
}

#[tokio::test]
async fn a_proxy_that_is_gone_has_left_its_address() {
    let (proxy, mut stream) = proxied().await;
    let _took = round(&mut stream, b"before").await.expect("an answer");
    let address = proxy.address();
    drop(proxy);
    let _outcome = end(&mut stream).await;
    let proxy = Proxy::at(&address, &echo().await).await;
    assert_eq!(proxy.address(), address);
    let _took = round(&mut connect(&proxy).await, b"again")
        .await
        .expect("an answer");
}
