//! A TCP proxy that does to connections what networks do.
//!
//! Owns: latency with jitter, limited bandwidth, a black hole, resets, cuts in the middle of an
//! answer and refusal, for each direction, switched while connections are open; and the counters
//! that prove that a fault was met. It runs on a thread of its own, so a test that blocks its
//! runtime does not slow it down. Buffers are bounded: what a fault holds back is at most about
//! 1 MiB for each direction of a connection, then the sender feels it.
//!
//! ```text
//!            accept                    connect
//!   client ──────────▶ intake ▶ lane ▶ outlet ──────────▶ server      ToServer
//!          ◀────────── outlet ◀ lane ◀ intake ◀──────────             ToClient
//! ```
//!
//! Does not own: where the proxy is put ([`in_front_of_postgres`] and the like know how each
//! client finds its server). It works on bytes: no protocol is parsed. What it cannot do is lose
//! single packets: the system answers probes of the connection (keepalive) for a frozen peer, so a
//! black hole is noticed only by a client that has time limits of its own.

mod counters;
mod fault;
mod link;
mod placement;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    thread::JoinHandle,
    time::Duration,
};

use tokio::{runtime, sync::watch, time::sleep};

pub use counters::Counters;
pub use fault::{Direction, Fault};
pub use placement::{in_front_of_cql, in_front_of_kafka, in_front_of_postgres};

use counters::Tally;
use fault::Faults;
use link::Route;

/// How long [`Proxy::at`] waits for an address that another proxy has.
const FREE_WITHIN: Duration = Duration::from_secs(300);

/// A proxy in front of one server. Dropping it ends it and every connection through it.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    faults: watch::Sender<Faults>,
    tally: Tally,
    /// Dropped first of all, which ends the thread.
    end: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A proxy on a free port of 127.0.0.1, with no fault; `upstream` is `host:port`.
    ///
    /// # Panics
    /// When the system has no free port.
    pub fn start(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
        Self::on(listener, upstream)
    }

    /// A proxy at this loopback address, for clients that are told the address by the server.
    /// Waits while another one has it.
    ///
    /// # Panics
    /// When the address is not free within 300 s.
    pub async fn at(address: &str, upstream: &str) -> Self {
        let begun = tokio::time::Instant::now();
        loop {
            match TcpListener::bind(address) {
                Ok(listener) => return Self::on(listener, upstream),
                Err(error) => assert!(
                    begun.elapsed() < FREE_WITHIN,
                    "a proxy at {address}: {error}"
                ),
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// `host:port` for clients.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Sets a fault on both directions, in place of those before: open connections meet it at
    /// once, new ones when they come.
    pub fn set(&self, fault: Fault) {
        self.faults
            .send_modify(|faults| faults.set(&Direction::BOTH, Some(fault)));
    }

    /// Sets a fault on one direction, in place of the one before; the other keeps its own.
    pub fn set_on(&self, direction: Direction, fault: Fault) {
        self.faults
            .send_modify(|faults| faults.set(&[direction], Some(fault)));
    }

    /// Ends every fault. What a black hole has held goes on its way.
    pub fn clear(&self) {
        self.faults
            .send_modify(|faults| faults.set(&Direction::BOTH, None));
    }

    /// Makes the jitter of connections that are still to come follow from this seed.
    pub fn reseed(&self, seed: u64) {
        self.faults.send_modify(|faults| faults.reseed(seed));
    }

    /// What was carried and which fault was met how often, since the start.
    pub fn counters(&self) -> Counters {
        self.tally.read()
    }

    fn on(listener: TcpListener, upstream: &str) -> Self {
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        listener
            .set_nonblocking(true)
            .expect("a socket can be made non-blocking");
        let (faults, seen) = watch::channel(Faults::default());
        let (end, ended) = watch::channel(());
        let tally = Tally::default();
        let route = Route {
            upstream: upstream.to_owned(),
            faults: seen,
            tally: tally.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("proxy".to_owned())
            .spawn(move || serve(listener, route, ended))
            .expect("the system has room for a thread");
        Self {
            address,
            faults,
            tally,
            end: Some(end),
            thread: Some(thread),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It has said why when it panicked, and there is nothing to end then.
            let _outcome = thread.join();
        }
    }
}

/// Carries connections until `ended` has no sender any more.
fn serve(listener: TcpListener, route: Route, mut ended: watch::Receiver<()>) {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the system has room for a runtime");
    runtime.block_on(async {
        let carried = async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            link::accept(&listener, &route).await
        };
        tokio::select! {
            outcome = carried => report(outcome),
            _ = ended.changed() => {}
        }
    });
    // Links that wait for a fault to end are dropped here.
    runtime.shutdown_background();
}

fn report(outcome: io::Result<()>) {
    if let Err(error) = outcome {
        eprintln!("a proxy ended: {error}");
    }
}
