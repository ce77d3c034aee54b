//! Turns lines, or a generated graph, into chunks of COPY's text form, on a thread of its own.

use std::{
    fs::File,
    io::{self, BufReader, Read, Write},
    sync::atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use tokio::sync::mpsc::Sender;

use super::{
    Accounts, BadLine, BadLines, Input, Options,
    edge::{Account, Content, account, content},
    line::Lines,
};

/// Text gathered before it is sent.
const CHUNK_BYTES: usize = 256 * 1024;

/// Bytes read from a file at once.
const READ_BYTES: usize = 256 * 1024;

/// Lines between two notes of how far it is.
const NOTED_LINES: u64 = 1_024;

/// How far the reader is, for those who look on.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) edges: AtomicU64,
    pub(super) bytes: AtomicU64,
    /// 0 while nobody knows.
    pub(super) all_bytes: AtomicU64,
}

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Fed {
    pub(super) edges: u64,
    pub(super) self_follows: u64,
    pub(super) bad: BadLines,
}

/// Reads everything; stops early when nobody takes the chunks any more. Blocks.
pub(super) fn feed(
    input: Input,
    options: &Options,
    meter: &Meter,
    chunks: Sender<Bytes>,
) -> io::Result<Fed> {
    let mut feeder = Feeder {
        options,
        meter,
        chunks,
        chunk: Vec::with_capacity(CHUNK_BYTES + 64),
        fed: Fed::default(),
        followee_first: options.followee_first,
        closed: false,
    };
    match input {
        Input::File(path) => {
            let file = File::open(path)?;
            meter
                .all_bytes
                .store(file.metadata()?.len(), Ordering::Relaxed);
            feeder.lines(file)?;
        }
        Input::Stdin => feeder.lines(io::stdin().lock())?,
        Input::Graph(graph) => feeder.graph(&graph),
    }
    feeder.send();
    Ok(feeder.fed)
}

struct Feeder<'a> {
    options: &'a Options,
    meter: &'a Meter,
    chunks: Sender<Bytes>,
    chunk: Vec<u8>,
    fed: Fed,
    followee_first: bool,
    /// Nobody takes chunks any more.
    closed: bool,
}

impl Feeder<'_> {
    fn lines(&mut self, reader: impl Read) -> io::Result<()> {
        let mut lines = Lines::new(BufReader::with_capacity(READ_BYTES, reader));
        let mut at_top = true;
        loop {
            let bytes = lines.bytes();
            let Some(line) = lines.next()? else { break };
            if line.number.is_multiple_of(NOTED_LINES) {
                self.note(bytes);
            }
            let read = match line.text {
                Some(text) => self.line(text, &mut at_top),
                None => Err("is longer than 4096 bytes".to_owned()),
            };
            if let Err(fault) = read {
                self.bad(line.number, fault);
            }
            if self.closed {
                break;
            }
        }
        self.note(lines.bytes());
        Ok(())
    }

    fn line(&mut self, text: &[u8], at_top: &mut bool) -> Result<(), String> {
        let (first, second) = match content(text, *at_top)? {
            Content::Nothing => return Ok(()),
            Content::Header { followee_first } => {
                *at_top = false;
                self.followee_first = followee_first;
                return Ok(());
            }
            Content::Pair(first, second) => (first, second),
        };
        *at_top = false;
        let first = account(first, &self.options.accounts)?;
        let second = account(second, &self.options.accounts)?;
        if self.followee_first {
            self.edge(second, first);
        } else {
            self.edge(first, second);
        }
        Ok(())
    }

    fn graph(&mut self, graph: &crate::Graph) {
        let add = match self.options.accounts {
            Accounts::Ids { add, .. } => add,
            Accounts::Handles => 0,
        };
        for (follower, followee) in graph.edges() {
            self.edge(Account::Id(follower + add), Account::Id(followee + add));
            if self.fed.edges.is_multiple_of(NOTED_LINES) {
                self.note(0);
            }
            if self.closed {
                return;
            }
        }
    }

    fn edge(&mut self, follower: Account<'_>, followee: Account<'_>) {
        self.fed.edges += 1;
        if follower == followee {
            self.fed.self_follows += 1;
            return;
        }
        // A list with a bad line is read on only to tell the others.
        if self.fed.bad.count > 0 && !self.options.skip_bad {
            return;
        }
        put(&mut self.chunk, followee);
        self.chunk.push(b'\t');
        put(&mut self.chunk, follower);
        self.chunk.push(b'\n');
        if self.chunk.len() >= CHUNK_BYTES {
            self.send();
        }
    }

    fn bad(&mut self, number: u64, fault: String) {
        self.fed.bad.count += 1;
        if self.fed.bad.first.len() < self.options.show_bad {
            self.fed.bad.first.push(BadLine { number, fault });
        }
    }

    fn send(&mut self) {
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK_BYTES + 64));
        if !chunk.is_empty() {
            self.closed |= self.chunks.blocking_send(Bytes::from(chunk)).is_err();
        }
    }

    fn note(&self, bytes: u64) {
        self.meter.edges.store(self.fed.edges, Ordering::Relaxed);
        self.meter.bytes.store(bytes, Ordering::Relaxed);
    }
}

/// COPY's text form. Neither handles nor ids have a character that it escapes.
fn put(chunk: &mut Vec<u8>, account: Account<'_>) {
    match account {
        Account::Handle(handle) => chunk.extend_from_slice(handle.as_bytes()),
        // Writing to a vector does not fail.
        Account::Id(id) => drop(write!(chunk, "{id}")),
    }
}
