//! Waits for deliveries and times them.
//!
//! A delivery is dated by the one who made it (first row, last row, by Postgres's clock), so it does
//! not matter when it is asked for. From Postgres all are read, in batches; through the API some
//! each second, and the rest when nothing is sent any more.

mod api;
mod postgres;

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use database::Pool;
use events::{Micros, PostId};

use crate::audience::Audience;
use crate::run::Shared;

/// Posts asked for in one go.
const BATCH: usize = 1_000;

/// Between two looks that found nothing more to do.
const PAUSE: Duration = Duration::from_millis(200);

/// A post whose delivery is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Which.
    pub post: PostId,
    /// When it was meant to be sent.
    pub due: Duration,
    /// The class of its author.
    pub class: Audience,
    /// Whether its times count: those of a post that is deleted on its way do not.
    pub measured: bool,
}

/// The posts whose delivery is waited for, oldest first; 48 bytes each.
#[derive(Debug, Default)]
pub struct Awaited(Mutex<VecDeque<Expected>>);

impl Awaited {
    /// Adds one.
    pub fn add(&self, expected: Expected) {
        self.lock().push_back(expected);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn take(&self, most: usize) -> Batch<'_> {
        let mut all = self.lock();
        let count = most.min(all.len());
        Batch {
            posts: all.drain(..count).collect(),
            from: self,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Expected>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Posts that are asked for. Whatever happens to the one who asks, failure and abort included, what
/// is still in the batch goes back.
struct Batch<'a> {
    posts: Vec<Expected>,
    from: &'a Awaited,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.from.lock().extend(self.posts.drain(..));
    }
}

/// What was reported of a delivered post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reported {
    pub(crate) post: PostId,
    pub(crate) rows: u64,
    pub(crate) first: Option<Micros>,
    pub(crate) last: Option<Micros>,
}

/// Where deliveries are read.
#[derive(Clone, Debug)]
pub enum Source {
    /// From Postgres, all of them.
    Postgres(Pool),
    /// Through the API, so many in a second while the load runs.
    Api {
        /// Requests in a second.
        per_second: u32,
    },
}

impl Source {
    /// Follows deliveries until the future is dropped. While the source does not answer, nothing
    /// is known and nothing is lost.
    pub async fn follow(&self, shared: &Shared) {
        loop {
            match self {
                Self::Postgres(_) => {
                    let found = self.look(shared, BATCH).await.unwrap_or(0);
                    // A batch that made headway means that more of them are done.
                    if found < BATCH / 2 {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
                Self::Api { per_second } => {
                    let _outcome = self.look(shared, 1).await;
                    tokio::time::sleep(Duration::from_secs(1) / *per_second).await;
                }
            }
        }
    }

    /// Waits until every post is delivered, until `deadline` of the run's clock. Answers how many
    /// are not.
    pub async fn finish(&self, shared: &Shared, deadline: Duration) -> usize {
        let mut idle = 0;
        loop {
            if shared.awaited.is_empty() || shared.clock.now() >= deadline {
                return shared.awaited.len();
            }
            let batch = match self {
                Self::Postgres(_) => BATCH,
                Self::Api { .. } => api::AT_ONCE * 4,
            };
            idle = if self.look(shared, batch).await.unwrap_or(0) == 0 {
                idle + batch
            } else {
                0
            };
            if idle >= shared.awaited.len() {
                idle = 0;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Asks for the oldest posts, notes those that are delivered, and answers how many were.
    ///
    /// # Cancel safety
    /// Safe: the posts go back.
    async fn look(&self, shared: &Shared, most: usize) -> anyhow::Result<usize> {
        let mut batch = shared.awaited.take(most);
        if batch.posts.is_empty() {
            return Ok(0);
        }
        let mut reported = match self {
            Self::Postgres(pool) => postgres::delivered(pool, &batch.posts).await,
            Self::Api { .. } => api::delivered(shared, &batch.posts).await,
        }?;
        reported.sort_unstable_by_key(|reported| reported.post);
        let asked = batch.posts.len();
        batch.posts.retain(|expected| {
            let place = reported.binary_search_by_key(&expected.post, |reported| reported.post);
            let found = place.ok().and_then(|place| reported.get(place));
            found
                .inspect(|found| note(expected, found, shared))
                .is_none()
        });
        Ok(asked - batch.posts.len())
    }
}

fn note(expected: &Expected, reported: &Reported, shared: &Shared) {
    let ahead = *shared.ahead();
    // Postgres's time, on the run's clock.
    let here = |there: Micros| shared.clock.since_start(ahead.here(there));
    let mut tally = shared.tally();
    tally.counts.delivered += 1;
    tally.counts.rows += reported.rows;
    if let Some(last) = reported.last {
        tally.rows.add(here(last), reported.rows);
    }
    if !expected.measured {
        return;
    }
    if let Some(times) = tally.class(expected.class) {
        for (recorder, at) in [
            (&mut times.first, reported.first),
            (&mut times.last, reported.last),
        ] {
            if let Some(at) = at {
                recorder.record(expected.due, here(at).saturating_sub(expected.due));
            }
        }
    }
}
