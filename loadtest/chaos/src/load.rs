//! Posts in the background while a fault happens.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use events::UserId;
use tokio::{task::JoinSet, time::sleep};

use crate::{Client, Posted};

/// How many clients post at once.
const CLIENTS: i64 = 4;
/// Between two posts of one client: a backlog that a small machine works off in seconds.
const PACE: Duration = Duration::from_millis(40);
/// At most so many posts each: a run that cannot be stopped ends by itself.
const MOST: u32 = 2_000;

/// Clients that post one after another until they are stopped.
#[derive(Debug)]
pub struct Load {
    clients: JoinSet<anyhow::Result<Vec<Posted>>>,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicUsize>,
}

impl Load {
    /// Starts posting as the authors 1 to 4.
    pub fn start(client: &Client) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let mut clients = JoinSet::new();
        for author in 1..=CLIENTS {
            let (client, stop, acknowledged) = (client.clone(), stop.clone(), acknowledged.clone());
            let _task = clients.spawn(async move {
                let mut posted = Vec::new();
                for number in 0..MOST {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    posted.push(
                        client
                            .post(UserId(author), &format!("load-{author}-{number}"))
                            .await?,
                    );
                    let _before = acknowledged.fetch_add(1, Ordering::Relaxed);
                    sleep(PACE).await;
                }
                Ok(posted)
            });
        }
        Self {
            clients,
            stop,
            acknowledged,
        }
    }

    /// Posts acknowledged up to now.
    pub fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::Relaxed)
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

    /// Stops and hands over what was acknowledged.
    ///
    /// # Errors
    /// When a post was refused or given up.
    pub async fn stop(mut self) -> anyhow::Result<Vec<Posted>> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        while let Some(outcome) = self.clients.join_next().await {
            all.extend(outcome.context("a client panicked")??);
        }
        Ok(all)
    }
}
