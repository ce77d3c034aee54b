//! Carries out the steps of one delivery: reads pages, writes rows, both with retries.
//!
//! Owns the permits: rows that are read and not yet written, all posts together, are bounded by
//! configuration (D-13). A page takes permits for its full size before it is read, gives back
//! what it did not need, and the rest when its rows are written. A record that waits for permits
//! to read ahead holds only permits of a write that is running, so it always gets them.

use std::{pin::Pin, sync::Arc, time::Instant};

use events::Micros;
use futures::{StreamExt, future::Future, stream::FuturesUnordered};
use prometheus::IntGauge;
use timeline_store::{PgNow, TimelineStore, Written};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    core::{
        delivery::{Delivery, Outcome, Rules, Step},
        plan::{Plan, Post},
    },
    lane::attempts::{Attempts, Failure},
    metrics::FanoutMetrics,
    sink::timeline::Timelines,
    source::followers::{Followers, ReadPage},
};

/// What it takes to deliver.
#[derive(Clone, Debug)]
pub(crate) struct Driver<S> {
    pub(crate) followers: Followers,
    pub(crate) timelines: Timelines<S>,
    pub(crate) rules: Rules,
    pub(crate) rows: Arc<Semaphore>,
    pub(crate) attempts: Attempts,
    pub(crate) metrics: FanoutMetrics,
}

/// How a delivery went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) outcome: Outcome,
    pub(crate) audience: u64,
    pub(crate) rows: u64,
    /// Postgres's time after the first and the last page of rows.
    pub(crate) first_row_us: Option<Micros>,
    pub(crate) last_row_us: Option<Micros>,
}

/// The end of one step.
enum Done {
    Read(ReadPage, Rows),
    Wrote(Written, Micros),
}

type Running<'a> =
    FuturesUnordered<Pin<Box<dyn Future<Output = Result<Done, Failure>> + Send + 'a>>>;

/// Rows in flight: permits and the gauge, given back together.
struct Rows {
    permit: OwnedSemaphorePermit,
    counted: usize,
    outstanding: IntGauge,
}

impl Rows {
    /// Keeps only what `count` rows need.
    fn shrink(&mut self, count: usize) {
        let surplus = self.permit.num_permits().saturating_sub(count);
        drop(self.permit.split(surplus));
        self.outstanding.sub(as_i64(self.counted) - as_i64(count));
        self.counted = count;
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.outstanding.sub(as_i64(self.counted));
    }
}

impl<S: TimelineStore> Driver<S> {
    /// Delivers one event.
    pub(crate) async fn deliver(&self, plan: Plan) -> Result<Report, Failure> {
        let (Plan::Direct(post) | Plan::Delete { post, .. }) = plan else {
            return Ok(Report {
                outcome: Outcome::Nothing,
                audience: 0,
                rows: 0,
                first_row_us: None,
                last_row_us: None,
            });
        };
        let (mut delivery, mut steps) = Delivery::new(plan, self.rules);
        let mut running: Running<'_> = FuturesUnordered::new();
        // Of the page read last: each write is handed out before a page behind its own is read.
        let mut page = None;
        let (mut rows, mut first_row_us, mut last_row_us) = (0, None, None);
        loop {
            for step in std::mem::take(&mut steps) {
                match step {
                    Step::Read { after } => running.push(Box::pin(self.read(post, after))),
                    Step::ReadLater { after, pause } => running.push(Box::pin(async move {
                        tokio::time::sleep(pause).await;
                        self.read(post, after).await
                    })),
                    Step::Finished(outcome) => {
                        return Ok(Report {
                            outcome,
                            audience: delivery.audience(),
                            rows,
                            first_row_us,
                            last_row_us,
                        });
                    }
                    Step::Write(_) | Step::Delete { .. } => {
                        if let Some((now, permit)) = page.take() {
                            running.push(Box::pin(self.write(post, step, now, permit)));
                        }
                    }
                }
            }
            let Some(done) = running.next().await else {
                // Not reached: a delivery without running steps has finished.
                return Err(Failure::Stop(crate::error::FanoutError::Order {
                    text: "a delivery stood still",
                }));
            };
            steps = match done? {
                Done::Read(read, mut permit) => {
                    let now = PgNow::new(read.page.pg_now, read.read_at);
                    let steps = delivery.page_read(&read.page);
                    let count = steps.iter().map(Step::rows).sum::<usize>() + delivery.held_rows();
                    permit.shrink(count);
                    page = (count > 0).then_some((now, permit));
                    steps
                }
                Done::Wrote(written, at_us) => {
                    rows += written.rows;
                    first_row_us = first_row_us.or(Some(at_us));
                    last_row_us = Some(at_us);
                    fail::fail_point!("fanout::page-written");
                    delivery.written()
                }
            };
        }
    }

    async fn read(&self, post: Post, after: Option<events::UserId>) -> Result<Done, Failure> {
        let wanted = self.rules.page_rows;
        let permit = Arc::clone(&self.rows)
            .acquire_many_owned(u32::try_from(wanted).unwrap_or(u32::MAX))
            .await
            .expect("the semaphore of rows is never closed");
        let mut rows = Rows {
            permit,
            counted: 0,
            outstanding: self.metrics.rows_outstanding.clone(),
        };
        let read = self
            .attempts
            .until_done("read followers", || self.followers.page(&post, after))
            .await?;
        rows.shrink(read.page.edges.len());
        Ok(Done::Read(read, rows))
    }

    async fn write(&self, post: Post, step: Step, now: PgNow, rows: Rows) -> Result<Done, Failure> {
        let began = Instant::now();
        let written = match &step {
            Step::Write(page) => {
                self.attempts
                    .until_done("write rows", || self.timelines.write(&post, page, &now))
                    .await?
            }
            Step::Delete { owners, del_us } => {
                self.attempts
                    .until_done("delete rows", || {
                        self.timelines.delete(&post, owners, *del_us)
                    })
                    .await?;
                self.metrics.rows_deleted.inc_by(owners.len() as u64);
                Written::default()
            }
            Step::Read { .. } | Step::ReadLater { .. } | Step::Finished(_) => Written::default(),
        };
        self.metrics
            .page_write_seconds
            .observe(began.elapsed().as_secs_f64());
        self.metrics.rows_written.inc_by(written.rows);
        self.metrics.rows_expired.inc_by(written.expired);
        drop(rows);
        Ok(Done::Wrote(written, now.now_us()))
    }
}

fn as_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
