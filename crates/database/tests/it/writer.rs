//! A writer of the outbox that notices when it is kept waiting.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;

use crate::fresh::Fresh;

/// The longest that anything may keep a writer waiting for a lock.
const LONGEST: &str = "200ms";

/// Inserts one row per transaction into today, all the time, on two connections.
pub(crate) struct Writers {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<(u64, Duration)>>,
}

impl Writers {
    pub(crate) async fn start(fresh: &Fresh) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = Vec::new();
        for _ in 0..2 {
            let (client, stop) = (fresh.client().await, stop.clone());
            // The server measures the waits: one that is longer fails the statement, and the test.
            client
                .batch_execute(&format!("set lock_timeout = '{LONGEST}'"))
                .await
                .unwrap();
            tasks.push(tokio::spawn(async move {
                let (mut rows, mut longest) = (0, Duration::ZERO);
                while !stop.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    client
                        .batch_execute(
                            "insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload)
                             values ('post', '1', '1', 'tideline.post.created.v1', '{}')",
                        )
                        .await
                        .unwrap();
                    longest = longest.max(began.elapsed());
                    rows += 1;
                }
                (rows, longest)
            }));
        }
        Self { stop, tasks }
    }

    /// Stops them, and fails if any was kept waiting for too long.
    pub(crate) async fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            let (rows, longest) = task.await.unwrap();
            assert!(rows > 0);
            println!("{rows} rows, the longest insert took {longest:?}");
        }
    }
}
