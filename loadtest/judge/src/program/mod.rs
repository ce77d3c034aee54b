//! One judgement from the journal to the verdict, against any deployment that has addresses.

mod readers;
mod telling;

use std::{
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::Context;
use database::Pool;
use judge::{Fault, Journal, Verdict, journal_file, judge_at_rest};
use timeline_store::{CqlConfig, CqlTimelines};

use telling::Told;

/// How long one statement may take: reading every post of a long run is one.
const STATEMENT_TIMEOUT: &str = "set statement_timeout = '10min'";

/// Between two judgements of `--within`.
const PAUSE: Duration = Duration::from_secs(2);

/// Readers whose timelines are walked through, unless told otherwise.
const WALKS: usize = 40;

/// Compares what a journal says was promised with Postgres, every timeline row, and what readers
/// see.
///
/// Addresses come from the arguments, else from the TIDELINE_ variables that the services read,
/// else they are those of the sandbox. The system has to be at rest: what is still on its way is
/// lost, as far as the judge can see; --within looks again until it has arrived.
#[derive(Debug, clap::Parser)]
#[command(name = "judge")]
pub(crate) struct Arguments {
    /// The journal, as a load generator has written it.
    journal: PathBuf,
    /// The database.
    #[arg(
        long,
        value_name = "URL",
        env = "TIDELINE_POSTGRES__URL",
        hide_env_values = true,
        default_value = "postgresql://postgres@127.0.0.1:17400/tideline"
    )]
    postgres: String,
    /// Nodes of the CQL store, comma separated.
    #[arg(
        long,
        value_name = "ADDRESSES",
        env = "TIDELINE_CQL__NODES",
        default_value = "127.0.0.1:17403"
    )]
    cql: String,
    /// Keyspace of the timelines.
    #[arg(
        long,
        value_name = "NAME",
        env = "TIDELINE_CQL__KEYSPACE",
        default_value = "tideline"
    )]
    keyspace: String,
    /// Where readers ask; without it nobody's timeline is walked through.
    #[arg(long, value_name = "URL", env = "TIDELINE_READ_API__LISTEN")]
    read_api: Option<String>,
    /// File with the secret that signs tokens, to act as readers.
    #[arg(long, value_name = "FILE", env = "TIDELINE_AUTH__SECRET_FILE")]
    token_key: Option<PathBuf>,
    /// Readers whose timelines are walked through to the end [default: 40 with a read API, else
    /// 0].
    #[arg(long, value_name = "N")]
    walks: Option<usize>,
    /// Chooses the readers.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Judges again until the promise holds, for at most so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    within: u64,
    /// Lost rows or posts that are put up with.
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_lost: u64,
    /// Posts that are there twice that are put up with.
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_duplicated: u64,
    /// Rows and posts that have no business there that are put up with.
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_foreign: u64,
    /// Deleted posts that are there that are put up with.
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_resurrected: u64,
    /// Breaks of order that are put up with.
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_disorder: u64,
    /// The verdict as one JSON object on standard output; the words go to standard error.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// How many of this fault are put up with.
    const fn most(&self, fault: Fault) -> u64 {
        match fault {
            Fault::Lost => self.max_lost,
            Fault::Foreign => self.max_foreign,
            Fault::Resurrected => self.max_resurrected,
            Fault::Duplicated => self.max_duplicated,
            Fault::Disorder => self.max_disorder,
        }
    }

    fn passes(&self, verdict: &Verdict) -> bool {
        Fault::ALL
            .into_iter()
            .all(|fault| verdict.tally(fault).count <= self.most(fault))
    }

    fn walks(&self) -> usize {
        let most = if self.read_api.is_some() { WALKS } else { 0 };
        self.walks.unwrap_or(most)
    }
}

/// A failure with its exit code, after `sysexits.h`.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) error: anyhow::Error,
}

impl Failure {
    /// The arguments or the journal are wrong.
    pub(crate) const USAGE: u8 = 64;
    /// A server did not answer.
    pub(crate) const SERVER: u8 = 69;

    pub(crate) fn new(code: u8, error: impl Into<anyhow::Error>) -> Self {
        Self {
            code,
            error: error.into(),
        }
    }

    fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Self::USAGE, error)
    }

    fn server(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Self::SERVER, error)
    }
}

/// Judges; whether the promise held.
pub(crate) async fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let file = journal_file::read(&arguments.journal).map_err(Failure::usage)?;
    let walkers = readers::Walkers::new(arguments).map_err(Failure::usage)?;
    let pool = pool(&arguments.postgres).await?;
    let store = store(arguments).await.map_err(Failure::server)?;
    let deadline = Instant::now() + Duration::from_secs(arguments.within);
    loop {
        let mut journal = file.journal.clone();
        let begun = Instant::now();
        let verdict = judge_at_rest(&mut journal, &pool, &store).await;
        let mut verdict = verdict.map_err(Failure::server)?;
        let took = begun.elapsed();
        if let Some(walkers) = &walkers {
            let walked = walkers.walk(&journal, arguments, &mut verdict).await;
            walked.map_err(Failure::server)?;
        }
        let passes = arguments.passes(&verdict);
        if passes || Instant::now() + PAUSE > deadline {
            let told = Told {
                verdict: &verdict,
                journal: &journal,
                notes: &file.notes,
                passes,
                took,
            };
            tell(&told, arguments.json).map_err(Failure::usage)?;
            return Ok(passes);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// One connection, which keeps its patience for long statements.
async fn pool(url: &str) -> Result<Pool, Failure> {
    let pool = Pool::new(url, 1, "judge").map_err(Failure::usage)?;
    database::migrations::verify(&pool)
        .await
        .context("asking Postgres")
        .map_err(Failure::server)?;
    let client = pool.get().await.map_err(Failure::server)?;
    client
        .batch_execute(STATEMENT_TIMEOUT)
        .await
        .map_err(Failure::server)?;
    drop(client);
    Ok(pool)
}

async fn store(arguments: &Arguments) -> anyhow::Result<CqlTimelines> {
    let config = CqlConfig::at(&arguments.cql, &arguments.keyspace);
    let connected = CqlTimelines::connect(&config).await;
    connected.with_context(|| format!("asking the CQL store at {}", arguments.cql))
}

fn tell(told: &Told<'_>, json: bool) -> io::Result<()> {
    if json {
        telling::words(told, &mut io::stderr())?;
        telling::json(told, &mut io::stdout())
    } else {
        telling::words(told, &mut io::stdout())
    }
}
