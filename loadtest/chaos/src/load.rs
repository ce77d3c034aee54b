//! Posts, deletions and unfollows in the background while a fault happens.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use events::UserId;
use fastrand::Rng;
use judge::Change;
use tokio::{task::JoinSet, time::sleep};

use crate::{Client, Posted};

/// How many clients post at once, each as an author of its own.
pub(crate) const CLIENTS: i64 = 4;
/// Between two posts of one client: a backlog that a small machine works off in seconds.
pub(crate) const PACE: Duration = Duration::from_millis(40);
/// At most so many posts each: a run that cannot be stopped ends by itself.
const MOST: u32 = 4_000;
/// One post in so many is deleted, soon after it was made.
const DELETE_ONE_IN: u32 = 12;
/// After one post in so many a follower leaves.
const UNFOLLOW_ONE_IN: u32 = 30;
/// A deletion takes one of the newest posts, some of which are on their way.
const NEWEST: usize = 5;

/// Clients that post one after another until they are stopped.
#[derive(Debug)]
pub struct Load {
    clients: JoinSet<anyhow::Result<()>>,
    shared: Arc<Shared>,
}

/// What the clients of a load have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Posts that were acknowledged.
    pub posts: usize,
    /// Of those, posts that were deleted.
    pub deleted: usize,
    /// Followers that left.
    pub unfollowed: usize,
    /// Attempts to post that had no answer, or a 5xx.
    pub failures: u32,
    /// Posts that an attempt without an answer had made.
    pub replayed: usize,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    posts: AtomicUsize,
    deleted: AtomicUsize,
    unfollowed: AtomicUsize,
    failures: AtomicU32,
    replayed: AtomicUsize,
}

/// One client.
struct Worker {
    client: Client,
    author: UserId,
    /// Followers that may leave; the others stay, so that something is always a must.
    may_leave: Vec<UserId>,
    rng: Rng,
    newest: Vec<Posted>,
    pace: Duration,
    shared: Arc<Shared>,
}

impl Load {
    /// Starts posting as the authors 1 to 4, each with a break of `pace` between two posts. What
    /// each of them does follows from `seed`; half of the `followers`, who follow all authors, may
    /// leave.
    pub fn start(client: &Client, seed: u64, followers: Range<i64>, pace: Duration) -> Self {
        let shared = Arc::new(Shared::default());
        let mut clients = JoinSet::new();
        let half = followers.start + (followers.end - followers.start) / 2;
        for author in 1..=CLIENTS {
            let mut rng = Rng::with_seed(seed.wrapping_mul(31).wrapping_add(author.unsigned_abs()));
            let mut may_leave: Vec<UserId> = (followers.start..half).map(UserId).collect();
            rng.shuffle(&mut may_leave);
            let worker = Worker {
                client: client.clone(),
                author: UserId(author),
                may_leave,
                rng,
                newest: Vec::new(),
                pace,
                shared: Arc::clone(&shared),
            };
            let _task = clients.spawn(worker.run());
        }
        Self { clients, shared }
    }

    /// Posts acknowledged up to now.
    pub fn acknowledged(&self) -> usize {
        self.shared.posts.load(Ordering::Relaxed)
    }

    /// Waits until so many more posts are acknowledged.
    ///
    /// # Panics
    /// When they are not within 90 s.
    pub async fn wait_for_more(&self, posts: usize) {
        let goal = self.acknowledged() + posts;
        testkit::eventually_within(Duration::from_secs(90), "the load goes on", async || {
            (self.acknowledged() >= goal).then_some(())
        })
        .await;
    }

    /// Stops and tells what was done.
    ///
    /// # Errors
    /// When an operation was refused or given up.
    pub async fn stop(mut self) -> anyhow::Result<Sent> {
        self.shared.stop.store(true, Ordering::Relaxed);
        while let Some(outcome) = self.clients.join_next().await {
            outcome.context("a client panicked")??;
        }
        Ok(self.sent())
    }

    /// What was done up to now.
    pub fn sent(&self) -> Sent {
        let shared = &self.shared;
        Sent {
            posts: shared.posts.load(Ordering::Relaxed),
            deleted: shared.deleted.load(Ordering::Relaxed),
            unfollowed: shared.unfollowed.load(Ordering::Relaxed),
            failures: shared.failures.load(Ordering::Relaxed),
            replayed: shared.replayed.load(Ordering::Relaxed),
        }
    }
}

impl Worker {
    async fn run(mut self) -> anyhow::Result<()> {
        for number in 0..MOST {
            if self.shared.stop.load(Ordering::Relaxed) {
                break;
            }
            let key = format!("load-{}-{number}", self.author);
            let posted = self.client.post(self.author, &key).await?;
            let _before = self.shared.posts.fetch_add(1, Ordering::Relaxed);
            let _before = self
                .shared
                .failures
                .fetch_add(posted.failures, Ordering::Relaxed);
            let replayed = usize::from(posted.replayed);
            let _before = self.shared.replayed.fetch_add(replayed, Ordering::Relaxed);
            if self.newest.len() == NEWEST {
                let _oldest = self.newest.remove(0);
            }
            self.newest.push(posted);
            self.churn().await?;
            sleep(self.pace).await;
        }
        Ok(())
    }

    /// Deletes a post or takes a follower away, now and then.
    async fn churn(&mut self) -> anyhow::Result<()> {
        if self.rng.u32(..DELETE_ONE_IN) == 0 {
            let index = self.rng.usize(..self.newest.len());
            let posted = self.newest.remove(index);
            self.client.delete(posted).await?;
            let _before = self.shared.deleted.fetch_add(1, Ordering::Relaxed);
        }
        if self.rng.u32(..UNFOLLOW_ONE_IN) == 0
            && let Some(follower) = self.may_leave.pop()
        {
            self.client
                .change(Change::Unfollow, follower, self.author)
                .await?;
            let _before = self.shared.unfollowed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}
