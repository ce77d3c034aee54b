//! How fast rows travel: the relay with and without the ledger, the sweep, a bare producer.
//!
//! The relay drains one and the same backlog again and again: each run gets a copy of the slot that
//! was made before the rows. Runs with and without the ledger take turns, so that a machine that
//! slows down slows both. A run counts only when the ledger has every row, or none.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use tokio_postgres::Client;

use crate::{
    deployment::Deployment,
    numbers::{Runs, real},
    outbox::INSERT,
    process::Process,
    records::Topic,
};

/// Rows of one transaction of the backlog.
const TRANSACTION: i64 = 100;
/// The last entries of the ledger follow the last record within this time.
const ENTERED_WITHIN: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(20);
/// As many as the sweep allows: its rate is not what limits here.
const NO_LIMIT: &str = "4000000000";

/// Rows per second.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Rates {
    pub(crate) rows: i64,
    pub(crate) relay: Runs,
    pub(crate) relay_without_ledger: Runs,
    /// Processor time of the relay's process, microseconds per row.
    pub(crate) relay_cpu_us: Runs,
    pub(crate) relay_without_ledger_cpu_us: Runs,
    pub(crate) sweep: Runs,
    pub(crate) producer: Runs,
}

impl Rates {
    /// What the ledger takes from the relay's rate, in percent.
    pub(crate) fn relay_cost_pct(&self) -> f64 {
        let without = self.relay_without_ledger.median();
        (without - self.relay.median()) / without * 100.0
    }

    /// What part of the relay's rate the sweep sends at.
    pub(crate) fn redeliver_vs_relay(&self) -> f64 {
        self.sweep.median() / self.relay.median()
    }
}

/// A backlog, and the slot that has all of it before it.
#[derive(Debug)]
pub(crate) struct Backlog {
    deployment: Deployment,
    sql: Client,
    topic: Topic,
    rows: i64,
}

/// What `tideline-sweep --once --json` prints.
#[derive(Debug, Deserialize)]
struct Printed {
    stages: Vec<PrintedStage>,
}

#[derive(Debug, Deserialize)]
struct PrintedStage {
    redelivered: i64,
}

impl Backlog {
    /// Fills the outbox in small transactions, with the posts that the rows are about.
    pub(crate) async fn make(deployment: &Deployment, rows: i64) -> anyhow::Result<Self> {
        const POSTS: &str = "insert into tideline.posts
                (id, author_id, client_post_id, fingerprint, body, created_at)
            select id + 252000000000000000, id % 1000, 'bench-' || id, '\\x00', 'a post', now()
            from generate_series(1, $1::bigint) as id";
        const SLOT: &str = "select pg_create_logical_replication_slot($1, 'pgoutput')";
        let sql = deployment.sql().await?;
        sql.execute(POSTS, &[&rows]).await?;
        sql.query_one(SLOT, &[&base(deployment)]).await?;
        sql.batch_execute("set synchronous_commit = off").await?;
        let insert = sql.prepare(INSERT).await?;
        let now_us: i64 = sql
            .query_one("select tideline.clock_us()", &[])
            .await?
            .try_get(0)?;
        let none: Vec<i64> = Vec::new();
        for low in (1..=rows).step_by(usize::try_from(TRANSACTION)?) {
            let high = (rows + 1).min(low + TRANSACTION);
            sql.execute(&insert, &[&low, &high, &none, &now_us, &1_i64])
                .await?;
        }
        for table in ["outbox", "posts"] {
            sql.batch_execute(&format!("vacuum (analyze) tideline.{table}"))
                .await?;
        }
        Ok(Self {
            deployment: deployment.clone(),
            topic: Topic::new(deployment.kafka()?)?,
            sql,
            rows,
        })
    }

    /// Every rate, `runs` times each, after one run that warms everything up.
    pub(crate) async fn rates(&self, runs: u32, say: impl Fn(&str)) -> anyhow::Result<Rates> {
        let mut rates = Rates {
            rows: self.rows,
            ..Rates::default()
        };
        say("  a first drain, not counted …");
        let _warm = self.drain(true).await?;
        for run in 1..=runs {
            // Neither of them is always the first.
            for with_ledger in [run % 2 == 1, run % 2 == 0] {
                let (rate, cpu) = self.drain(with_ledger).await?;
                let (rates, cpus, how) = if with_ledger {
                    (&mut rates.relay, &mut rates.relay_cpu_us, "with")
                } else {
                    let Rates {
                        relay_without_ledger,
                        relay_without_ledger_cpu_us,
                        ..
                    } = &mut rates;
                    (relay_without_ledger, relay_without_ledger_cpu_us, "without")
                };
                say(&format!("  run {run}: relay {how} ledger {rate:.0} rows/s"));
                rates.push(rate);
                cpus.push(cpu);
            }
            rates.sweep.push(self.redeliver().await?);
            rates.producer.push(self.topic.raw_rate(self.rows).await?);
        }
        Ok(rates)
    }

    /// Rows per second of a relay that drains the backlog, and its processor time per row.
    async fn drain(&self, with_ledger: bool) -> anyhow::Result<(f64, f64)> {
        const COPY: &str = "select pg_copy_logical_replication_slot($1, $2)";
        self.forget_everything().await?;
        let slot = format!("{}_run", self.deployment.name);
        self.sql
            .query_one(COPY, &[&base(&self.deployment), &slot])
            .await?;
        let mut env = self.deployment.env(&slot);
        env.push(("TIDELINE_RELAY__LEDGER".to_owned(), with_ledger.to_string()));
        let before = self.topic.count().await?;
        let mut relay = Process::start("tideline-relay", &[], &env)?;
        let rate = self
            .topic
            .arrival(before, self.rows, || relay.check())
            .await?;
        let entered = self
            .entered(if with_ledger { self.rows } else { 0 })
            .await?;
        let cpu = relay.cpu_millis();
        relay.kill().await?;
        self.drop_slot(&slot).await?;
        let expected = if with_ledger { self.rows } else { 0 };
        ensure!(
            entered == expected,
            "the ledger has {entered} of {expected} rows"
        );
        let cpu = i64::try_from(cpu).unwrap_or(i64::MAX);
        Ok((rate, real(cpu) * 1e3 / real(self.rows)))
    }

    /// Rows per second of a sweep that finds no relay and everything missing.
    async fn redeliver(&self) -> anyhow::Result<f64> {
        self.forget_everything().await?;
        let mut env = self
            .deployment
            .env(&format!("{}_absent", self.deployment.name));
        let own = [
            ("TIDELINE_SWEEP__RATE", NO_LIMIT.to_owned()),
            ("TIDELINE_SWEEP__LOOK_IDS", self.rows.to_string()),
        ];
        env.extend(own.map(|(key, value)| (key.to_owned(), value)));
        let before = self.topic.count().await?;
        let arguments = ["--once", "--stage", "published", "--json"];
        let mut sweep = Process::start("tideline-sweep", &arguments, &env)?;
        let rate = self
            .topic
            .arrival(before, self.rows, || sweep.check())
            .await?;
        let printed: Printed = serde_json::from_str(&sweep.output().await?)
            .context("reading what tideline-sweep prints")?;
        let sent: i64 = printed.stages.iter().map(|stage| stage.redelivered).sum();
        ensure!(
            sent == self.rows && self.entered(self.rows).await? == self.rows,
            "the sweep sent {sent} of {} rows",
            self.rows
        );
        Ok(rate)
    }

    /// How many rows the ledger has, once it has so many or none has come for too long.
    async fn entered(&self, expected: i64) -> anyhow::Result<i64> {
        const SQL: &str = "select coalesce(sum(upper(r) - lower(r)), 0)::bigint from unnest((
            select range_agg(r) from tideline.delivery_ledger l, unnest(l.ids) as r)) as r";
        let began = Instant::now();
        loop {
            let entered = self.sql.query_one(SQL, &[]).await?.try_get(0)?;
            if entered == expected || began.elapsed() > ENTERED_WITHIN {
                return Ok(entered);
            }
            tokio::time::sleep(STEP).await;
        }
    }

    async fn forget_everything(&self) -> anyhow::Result<()> {
        const TRUNCATE: &str = "truncate tideline.delivery_ledger, tideline.redelivery";
        self.sql.batch_execute(TRUNCATE).await?;
        Ok(self.sql.batch_execute("checkpoint").await?)
    }

    /// Drops a slot whose reader was just killed.
    async fn drop_slot(&self, slot: &str) -> anyhow::Result<()> {
        const END: &str = "select pg_terminate_backend(active_pid, 5000) from pg_replication_slots
            where slot_name = $1 and active_pid is not null";
        self.sql.execute(END, &[&slot]).await?;
        self.sql
            .query_one("select pg_drop_replication_slot($1)", &[&slot])
            .await?;
        Ok(())
    }
}

fn base(deployment: &Deployment) -> String {
    format!("{}_base", deployment.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_and_shares_are_of_the_medians() {
        let rates = Rates {
            relay: [97.0, 90.0, 99.0].into_iter().collect(),
            relay_without_ledger: [100.0].into_iter().collect(),
            sweep: [48.5].into_iter().collect(),
            ..Rates::default()
        };
        assert!((rates.relay_cost_pct() - 3.0).abs() < 1e-9);
        assert!((rates.redeliver_vs_relay() - 0.5).abs() < 1e-9);
    }
}
