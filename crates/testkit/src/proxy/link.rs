//! One connection through the proxy: two directions, each a bounded lane between a reader and a
//! writer, and the ways in which it ends.

use std::{io, time::Duration};

use fastrand::Rng;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Notify, mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::{
    counters::Tally,
    fault::{Direction, Fault, Faults, delay, until},
};

/// What one read brings at most.
const CHUNK: usize = 16 * 1024;
/// Chunks on their way in one direction.
const LANE: usize = 64;
/// More connections at once than any test has; the next are reset.
const MOST: usize = 512;
/// The longest pause for the sake of a bandwidth.
const SLICE: Duration = Duration::from_millis(50);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Where connections go, and what may happen to them.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) upstream: String,
    pub(super) faults: watch::Receiver<Faults>,
    pub(super) tally: Tally,
}

/// Why a link is over.
#[derive(Debug)]
enum End {
    /// Both sides have said all.
    Closed,
    /// A side is gone, or was never there.
    Broken,
    /// By [`Fault::Reset`].
    Reset,
    /// By [`Fault::CutAfter`].
    Cut,
}

/// Bytes on their way.
struct Chunk {
    bytes: Vec<u8>,
    /// When they arrive, if that is later.
    due: Option<Instant>,
}

/// Accepts connections until the listener fails.
pub(super) async fn accept(listener: &TcpListener, route: &Route) -> io::Result<()> {
    let mut links = JoinSet::new();
    let mut number = 0;
    loop {
        let client = tokio::select! {
            accepted = listener.accept() => accepted?.0,
            Some(_) = links.join_next(), if !links.is_empty() => continue,
        };
        if links.len() >= MOST {
            client.set_zero_linger()?;
            continue;
        }
        number += 1;
        let _handle = links.spawn(carry(client, route.clone(), number));
    }
}

async fn carry(mut client: TcpStream, route: Route, number: u64) {
    let tally = route.tally.clone();
    tally.one(|cells| &cells.accepted);
    let mut server = None;
    let refused = route.faults.borrow().refuses();
    let end = if refused {
        tally.one(|cells| &cells.refused);
        End::Broken
    } else {
        tokio::select! {
            biased;
            () = until(&route.faults, Faults::resets) => End::Reset,
            end = exchange(&mut client, &mut server, &route, number) => end,
        }
    };
    match end {
        End::Reset => tally.one(|cells| &cells.reset),
        End::Cut => tally.one(|cells| &cells.cut),
        End::Closed | End::Broken => {}
    }
    if !matches!(end, End::Closed) {
        // Closing sends RST, and what is still in the buffers is lost. A socket that is gone
        // already needs none.
        for stream in [Some(&client), server.as_ref()].into_iter().flatten() {
            let _outcome = stream.set_zero_linger();
        }
    }
    drop((client, server));
    tally.one(|cells| &cells.ended);
}

/// Carries both directions to their end.
async fn exchange(
    client: &mut TcpStream,
    server: &mut Option<TcpStream>,
    route: &Route,
    number: u64,
) -> End {
    let _outcome = client.set_nodelay(true);
    let (from_client, to_client) = client.split();
    let (requests, requested) = mpsc::channel(LANE);
    let gone = Notify::new();
    let intake = async {
        let lane = Lane::new(route, Direction::ToServer, number);
        lane.take_in(from_client, requests).await;
        gone.notify_one();
        Ok(())
    };
    let rest = async {
        let Some(stream) = open(route, &gone).await else {
            return Err(End::Broken);
        };
        let (from_server, to_server) = server.insert(stream).split();
        let (answers, answered) = mpsc::channel(LANE);
        let lane = |direction| Lane::new(route, direction, number);
        let answering = async {
            let intake = async {
                lane(Direction::ToClient)
                    .take_in(from_server, answers)
                    .await;
                Ok(())
            };
            let outlet = lane(Direction::ToClient).give_out(answered, to_client);
            tokio::try_join!(intake, outlet).map(drop)
        };
        let requesting = lane(Direction::ToServer).give_out(requested, to_server);
        tokio::try_join!(requesting, answering).map(drop)
    };
    // The first fault of either ends both.
    let carried = tokio::try_join!(intake, rest);
    carried.err().unwrap_or(End::Closed)
}

/// Connects to the server, once no black hole is in the way; nothing when the client gave up
/// before, or the server is not there.
async fn open(route: &Route, gone: &Notify) -> Option<TcpStream> {
    let hole = |faults: &Faults| faults.is_black_hole(Direction::ToServer);
    let swallowed = hole(&route.faults.borrow());
    if swallowed {
        route.tally.one(|cells| &cells.swallowed);
        tokio::select! {
            () = gone.notified() => return None,
            () = until(&route.faults, |faults| !hole(faults)) => {}
        }
    }
    let connected = tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(&route.upstream));
    let stream = connected.await.ok()?.ok()?;
    let _outcome = stream.set_nodelay(true);
    Some(stream)
}

/// One direction of a connection.
struct Lane<'a> {
    route: &'a Route,
    direction: Direction,
    rng: Rng,
    /// Bytes handed on since the fault of this direction was last changed, and that change.
    passed: (u64, u64),
}

impl<'a> Lane<'a> {
    fn new(route: &'a Route, direction: Direction, number: u64) -> Self {
        let rng = route.faults.borrow().rng(number, direction);
        Self {
            route,
            direction,
            rng,
            passed: (0, 0),
        }
    }

    fn fault(&self) -> Option<Fault> {
        self.route.faults.borrow().get(self.direction)
    }

    /// Reads until there is nothing more, or nobody to hand it to.
    async fn take_in(mut self, mut from: impl AsyncRead + Unpin, lane: mpsc::Sender<Chunk>) {
        let mut buffer = vec![0; CHUNK];
        let mut last = Instant::now();
        // A side that is gone has nothing more to say.
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            let fault = self.fault();
            if fault == Some(Fault::BlackHole) {
                self.route.tally.one(|cells| &cells.held);
            }
            // Never before the chunk in front of it.
            let due = delay(fault, &mut self.rng).map(|delay| (Instant::now() + delay).max(last));
            last = due.unwrap_or(last);
            let bytes = buffer[..length].to_vec();
            if lane.send(Chunk { bytes, due }).await.is_err() {
                break;
            }
        }
    }

    /// Writes what comes through the lane as the fault of the moment allows, and its end.
    async fn give_out(
        mut self,
        mut lane: mpsc::Receiver<Chunk>,
        mut to: impl AsyncWrite + Unpin,
    ) -> Result<(), End> {
        while let Some(chunk) = lane.recv().await {
            if let Some(due) = chunk.due {
                self.route.tally.one(|cells| &cells.delayed);
                sleep_until(due).await;
            }
            let mut rest = chunk.bytes.as_slice();
            while !rest.is_empty() {
                let (now, pause) = self.portion(rest.len()).await?;
                let (piece, behind) = rest.split_at(now);
                to.write_all(piece).await.map_err(|_| End::Broken)?;
                self.count(piece.len());
                if let Some(pause) = pause {
                    self.route.tally.one(|cells| &cells.throttled);
                    sleep(pause).await;
                }
                rest = behind;
            }
        }
        self.out_of_the_hole().await;
        to.shutdown().await.map_err(|_| End::Broken)
    }

    /// How many of `length` bytes may go now, and the pause behind them.
    async fn portion(&mut self, length: usize) -> Result<(usize, Option<Duration>), End> {
        self.out_of_the_hole().await;
        let changes = self.route.faults.borrow().changes(self.direction);
        if self.passed.1 != changes {
            self.passed = (0, changes);
        }
        match self.fault() {
            Some(Fault::CutAfter { bytes }) => {
                let left = bytes.saturating_sub(self.passed.0);
                if left == 0 {
                    return Err(End::Cut);
                }
                Ok((length.min(usize::try_from(left).unwrap_or(length)), None))
            }
            Some(Fault::Bandwidth { bytes_per_s }) => {
                let rate = bytes_per_s.max(1);
                let slice = u128::from(rate) * SLICE.as_micros() / 1_000_000;
                let now = length.min(usize::try_from(slice).unwrap_or(length).max(1));
                let micros = u64::try_from(now).unwrap_or(u64::MAX) * 1_000_000 / rate;
                Ok((now, Some(Duration::from_micros(micros))))
            }
            _ => Ok((length, None)),
        }
    }

    async fn out_of_the_hole(&self) {
        let direction = self.direction;
        until(&self.route.faults, |faults| {
            !faults.is_black_hole(direction)
        })
        .await;
    }

    fn count(&mut self, length: usize) {
        self.passed.0 += u64::try_from(length).unwrap_or(u64::MAX);
        let tally = &self.route.tally;
        match self.direction {
            Direction::ToServer => tally.add(length, |cells| &cells.bytes_to_server),
            Direction::ToClient => tally.add(length, |cells| &cells.bytes_to_client),
        }
    }
}
