//! What a round costs in which nothing is missing.
//!
//! It is a round of a sweep that has run for a while: it reads what has changed in the ledger and
//! in the notes, and nothing has. Once an hour, and when somebody asks for a look, a round is like
//! the first one of a process; that price is told as the first look.
//!
//! Measured twice. *In use*: other rounds go on in the ten seconds before, as on a server that has
//! more to do than this. *After rest*: nobody asks the server anything in those ten seconds. A
//! virtual machine may take memory away that was at rest, which costs processor time when it is
//! read again; what one page costs then is measured in this process, beside it.

use std::{
    fs,
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::Context;
use database::Pool;
use events::Stage;
use serde::Serialize;
use tokio::time::sleep;

use crate::{
    find::{NOTES_ARE_OLD, looks, timed},
    numbers::{Runs, millis},
};

/// Rounds before those that count: every connection of the pool has then met each statement often
/// enough to keep its plan, as in a sweep that has run for a minute.
const WARM: usize = 40;

/// Rounds of both stages with nothing missing. A sweep takes one every ten seconds.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Idle {
    /// In use: processor time of the server's processes.
    pub(crate) database_ms: Runs,
    /// In use: by the client's clock.
    pub(crate) elapsed_ms: Runs,
    /// After rest: processor time of the server's processes.
    pub(crate) rested_ms: Runs,
    /// Reading a page of memory that rested as long, in microseconds.
    pub(crate) rested_page_us: Runs,
}

/// Times rounds.
pub(crate) async fn idle(pool: &Pool, runs: u32) -> anyhow::Result<Idle> {
    let mut published = looks(pool, Stage::Published)?;
    let mut delivered = looks(pool, Stage::Delivered)?;
    for _ in 0..WARM {
        let _span = timed(&mut published, &[]).await? + timed(&mut delivered, &[]).await?;
    }
    let server = Server::behind(pool).await?;
    let mut idle = Idle::default();
    for _ in 0..runs {
        let due = Instant::now() + NOTES_ARE_OLD;
        while Instant::now() < due {
            for stage in Stage::ALL {
                let _span = timed(&mut looks(pool, stage)?, &[]).await?;
            }
        }
        let before = server.millis()?;
        let elapsed = timed(&mut published, &[]).await? + timed(&mut delivered, &[]).await?;
        idle.elapsed_ms.push(elapsed);
        idle.database_ms.push(server.millis()? - before);
    }
    let memory = Memory::new();
    for _ in 0..runs {
        let _hot = memory.read();
        sleep(NOTES_ARE_OLD).await;
        idle.rested_page_us.push(memory.read());
        let before = server.millis()?;
        let _span = timed(&mut published, &[]).await? + timed(&mut delivered, &[]).await?;
        idle.rested_ms.push(server.millis()? - before);
    }
    Ok(idle)
}

/// The server's processes behind a pool, all of whose connections are open. The servers of the
/// sandbox run on this machine.
struct Server(Vec<i32>);

impl Server {
    async fn behind(pool: &Pool) -> anyhow::Result<Self> {
        const PIDS: &str = "select pid from pg_stat_activity
            where datname = current_database() and application_name = 'tideline-bench'";
        let rows = pool.get().await?.query(PIDS, &[]).await?;
        let pids: Result<_, _> = rows.iter().map(|row| row.try_get(0)).collect();
        Ok(Self(pids?))
    }

    /// Processor time they have had, from `/proc/<pid>/schedstat`: nanoseconds first.
    fn millis(&self) -> anyhow::Result<f64> {
        let mut nanos = 0;
        for pid in &self.0 {
            let path = format!("/proc/{pid}/schedstat");
            let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
            let first = text.split_whitespace().next().context("it has a number")?;
            nanos += first.parse::<u64>()?;
        }
        Ok(millis(Duration::from_nanos(nanos)))
    }
}

/// Some memory of this process.
struct Memory(Vec<u8>);

impl Memory {
    const PAGE: usize = 4096;
    const PAGES: u32 = 256;

    fn new() -> Self {
        Self(vec![1; Self::PAGE * Self::PAGES as usize])
    }

    /// Reads a byte of each page. Microseconds per page.
    fn read(&self) -> f64 {
        let began = Instant::now();
        for byte in self.0.iter().step_by(Self::PAGE) {
            let _read = black_box(*byte);
        }
        millis(began.elapsed()) * 1e3 / f64::from(Self::PAGES)
    }
}
