//! `./x bench generator`: what the load generator costs, and how late it is.
//!
//! The generator's own loop (`load::run::dispatch`) sends posts to a server that only answers, so
//! what is measured is the generator: a deployment on the same cores would be in its way. The
//! physical limit is a loop that does nothing but wake up as often. Nothing else generates open
//! load, measured from the intended start, with a journal; there is no other in the table.

use std::{
    fs,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use comfy_table::{Table, presets::UTF8_FULL_CONDENSED};
use graph::{Graph, Shape};
use judge::JournalWriter;
use load::{
    accounts::Accounts,
    client::{Client, Tokens},
    plan::{Plan, Population},
    process::cpu_time,
    run::{Shared, dispatch},
    scenario::{Overrides, Scenario},
};
use report::{Machine, Recorder};
use serde::Serialize;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::{
    numbers::{Runs, millis},
    process::FOLDER,
    report::show,
};

/// Any secret: nobody checks the tokens.
const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
/// Authors; their audiences play no part.
const USERS: u64 = 1_000;

/// How much is sent.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Scale {
    /// Posts a second.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    rate: u32,
    /// Seconds of each run.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// How often; the median counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: u32,
}

/// What was measured.
#[derive(Debug, Default, Serialize)]
struct Measured {
    rate: u32,
    posts: u64,
    machine: Machine,
    generator: Loop,
    bare: Loop,
}

/// One loop: how late it began what was due, and what it took.
#[derive(Debug, Default, Serialize)]
struct Loop {
    lag_p50_ms: Runs,
    lag_p99_ms: Runs,
    lag_max_ms: Runs,
    /// Of one core.
    cpu_pct: Runs,
}

/// Measures, prints a table and the last line, and writes the file.
///
/// # Errors
/// When the answering server does not start, or a post was not sent.
pub(crate) async fn measure(scale: Scale) -> anyhow::Result<()> {
    let server = Answering::start().await?;
    let mut measured = Measured {
        rate: scale.rate,
        machine: Machine::look(),
        ..Measured::default()
    };
    for run in 1..=scale.runs {
        println!("run {run} of {} …", scale.runs);
        measured.posts += generator(&server.url, scale, run, &mut measured.generator).await?;
        bare(scale, &mut measured.bare).await;
    }
    let path = format!("{FOLDER}/generator.json");
    fs::create_dir_all(FOLDER).with_context(|| format!("making {FOLDER}"))?;
    fs::write(&path, serde_json::to_vec_pretty(&measured)?)
        .with_context(|| format!("writing {path}"))?;
    println!("written: {path}\n{}", table(&measured));
    println!("{}", last_line(&measured, scale.runs));
    Ok(())
}

/// Sends with the generator's own loop. How many posts were acknowledged: all.
async fn generator(url: &str, scale: Scale, run: u32, into: &mut Loop) -> anyhow::Result<u64> {
    let text = format!(
        "duration = \"{}s\"\nseed = {run}\n[graph]\nusers = {USERS}\n[posts.arrivals]\n\
         process = \"poisson\"\nrate = {}.0\n",
        scale.seconds, scale.rate
    );
    let scenario = Scenario::parse("generator", &text, &Overrides::default())?;
    let graph = Graph::new(Shape::of(USERS, u64::from(run)))?;
    let population = Arc::new(Population::new(graph, false)?);
    let plan = Plan::new(&scenario, &population)?;
    let journal = std::env::temp_dir().join(format!("tideline-generator-{}", std::process::id()));
    let shared = Arc::new(Shared::new(
        Client::new(url, url, Tokens::new(SECRET)?)?,
        JournalWriter::create(&journal)?,
        Accounts::behind(0),
        &scenario,
        format!("g{run}"),
    ));
    let (began, before) = (Instant::now(), cpu_time());
    dispatch(plan, &shared, std::future::pending()).await?;
    into.cost(began, before);
    let tally = shared.tally();
    into.late(&tally.lag);
    let counts = tally.counts;
    drop(tally);
    let _gone = fs::remove_file(&journal);
    ensure!(
        counts.shed == 0 && counts.posts == counts.planned,
        "of {} posts {} were acknowledged and {} not sent",
        counts.planned,
        counts.posts,
        counts.shed
    );
    Ok(counts.posts)
}

/// Only wakes up when something would be due.
async fn bare(scale: Scale, into: &mut Loop) {
    let (began, before) = (tokio::time::Instant::now(), cpu_time());
    let mut lag = Recorder::new();
    for number in 0..scale.rate * scale.seconds {
        let due = Duration::from_secs(1) * number / scale.rate;
        tokio::time::sleep_until(began + due).await;
        lag.record(due, began.elapsed().saturating_sub(due));
    }
    into.cost(began.into_std(), before);
    into.late(&lag);
}

impl Loop {
    fn cost(&mut self, began: Instant, before: Option<Duration>) {
        let used = cpu_time()
            .unwrap_or_default()
            .saturating_sub(before.unwrap_or_default());
        let share = used.as_secs_f64() / began.elapsed().as_secs_f64();
        self.cpu_pct.push(share * 100.0);
    }

    fn late(&mut self, lag: &Recorder) {
        let at = |quantile| millis(lag.quantile(quantile).unwrap_or_default());
        self.lag_p50_ms.push(at(0.5));
        self.lag_p99_ms.push(at(0.99));
        self.lag_max_ms.push(at(1.0));
    }
}

/// This program once more, as the server.
struct Answering {
    url: String,
    /// Ends when it is dropped.
    _process: Child,
}

impl Answering {
    async fn start() -> anyhow::Result<Self> {
        let mut process = Command::new(std::env::current_exe().context("this program")?)
            .arg("answer")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("starting the answering server")?;
        let output = process.stdout.take().context("its output")?;
        let address = BufReader::new(output).lines().next_line().await?;
        let address = address.context("the answering server ended")?;
        Ok(Self {
            url: format!("http://{address}"),
            _process: process,
        })
    }
}

fn table(measured: &Measured) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["", "Tideline", "physical limit: a timer alone", "target"]);
    let (own, bare) = (&measured.generator, &measured.bare);
    for (what, own, bare, target) in [
        ("late, p50, ms", &own.lag_p50_ms, &bare.lag_p50_ms, ""),
        ("late, p99, ms", &own.lag_p99_ms, &bare.lag_p99_ms, "< 5"),
        ("late, at most, ms", &own.lag_max_ms, &bare.lag_max_ms, ""),
        ("of one core, %", &own.cpu_pct, &bare.cpu_pct, "≤ 25"),
    ] {
        table.add_row([
            what.to_owned(),
            show(own, 1),
            show(bare, 1),
            target.to_owned(),
        ]);
    }
    table
}

fn last_line(measured: &Measured, runs: u32) -> String {
    let (own, bare) = (&measured.generator, &measured.bare);
    format!(
        "BENCH generator rate={} cpu_pct={:.1} lag_p50_ms={:.1} lag_p99_ms={:.1} lag_max_ms={:.1} \
         bare_lag_p99_ms={:.1} posts={} runs={runs}",
        measured.rate,
        own.cpu_pct.median(),
        own.lag_p50_ms.median(),
        own.lag_p99_ms.median(),
        own.lag_max_ms.median(),
        bare.lag_p99_ms.median(),
        measured.posts,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_has_the_medians() {
        let runs = |values: [f64; 3]| values.into_iter().collect::<Runs>();
        let measured = Measured {
            rate: 1_000,
            posts: 60_000,
            generator: Loop {
                lag_p50_ms: runs([1.0, 1.1, 1.2]),
                lag_p99_ms: runs([2.0, 9.0, 3.0]),
                lag_max_ms: runs([20.0, 30.0, 10.0]),
                cpu_pct: runs([12.0, 10.0, 14.0]),
            },
            bare: Loop {
                lag_p99_ms: runs([1.0, 1.5, 2.0]),
                ..Loop::default()
            },
            ..Measured::default()
        };
        assert_eq!(
            last_line(&measured, 3),
            "BENCH generator rate=1000 cpu_pct=12.0 lag_p50_ms=1.1 lag_p99_ms=3.0 lag_max_ms=20.0 \
             bare_lag_p99_ms=1.5 posts=60000 runs=3"
        );
        assert!(table(&measured).to_string().contains("3.0 (2.0-9.0)"));
    }
}
