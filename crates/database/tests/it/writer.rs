//! A writer of the outbox that notices when it is kept waiting.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;

use crate::fresh::Fresh;

/// The longest that anything may keep a writer waiting for a lock.
const LONGEST: &str = "200ms";

/// What one of them saw.
#[derive(Debug, Default)]
struct Told {
    rows: u64,
    /// Inserts that were given up after [`LONGEST`].
    late: u64,
    longest: Duration,
}

/// Inserts one row per transaction into today, all the time, on two connections.
pub(crate) struct Writers {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<Told>>,
}

impl Writers {
    pub(crate) async fn start(fresh: &Fresh) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = Vec::new();
        for _ in 0..2 {
            let (client, stop) = (fresh.client().await, stop.clone());
            // The server measures the waits: one that is longer fails the statement.
            client
                .batch_execute(&format!("set lock_timeout = '{LONGEST}'"))
                .await
                .unwrap();
            tasks.push(tokio::spawn(async move {
                let mut told = Told::default();
                while !stop.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    let inserted = client
                        .batch_execute(
                            "insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload)
                             values ('post', '1', '1', 'tideline.post.created.v1', '{}')",
                        )
                        .await;
                    match inserted {
                        Ok(()) => told.rows += 1,
                        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                            told.late += 1;
                        }
                        Err(error) => panic!("{error:?}"),
                    }
                    told.longest = told.longest.max(began.elapsed());
                }
                told
            }));
        }
        Self { stop, tasks }
    }

    /// Stops them. Answers how many inserts were kept waiting for too long.
    pub(crate) async fn finish(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let mut late = 0;
        for task in self.tasks {
            let told = task.await.unwrap();
            assert!(told.rows > 0);
            println!("{told:?}");
            late += told.late;
        }
        late
    }
}
