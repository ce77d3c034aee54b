//! Requests to look at once: from table `sweep_request` to the rounds, and back when a look that
//! began later has ended.
//!
//! Promise: a request is closed only after every stage has taken a look that began after the
//! request was read.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use database::{
    Pool,
    sweep_requests::{self, Request},
};
use events::Stage;
use runtime::{Shutdown, report::chain};
use tokio::{sync::watch, time::sleep};

use crate::{error::SweepError, metrics::SweepMetrics};

/// How often the table is read.
const EVERY: Duration = Duration::from_secs(1);

/// What the rounds are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Rises with every list of new requests.
    pub version: u64,
    /// The lowest id in doubt; `None`: all.
    pub low: Option<i64>,
}

/// Shared by the task that reads the table and the rounds.
#[derive(Debug)]
pub(crate) struct Requests {
    asked: watch::Sender<Asked>,
    looked: Mutex<[u64; Stage::ALL.len()]>,
}

impl Requests {
    pub(crate) fn new() -> Self {
        Self {
            asked: watch::channel(Asked::default()).0,
            looked: Mutex::default(),
        }
    }

    /// What a round listens to.
    pub(crate) fn listen(&self) -> watch::Receiver<Asked> {
        self.asked.subscribe()
    }

    /// A look that began after `version` was asked for has ended.
    pub(crate) fn looked(&self, stage: Stage, version: u64) {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        for (each, at) in Stage::ALL.iter().zip(looked.iter_mut()) {
            if *each == stage {
                *at = (*at).max(version);
            }
        }
    }

    /// The version that every stage has looked for.
    fn honoured(&self) -> u64 {
        let looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        looked.iter().copied().min().unwrap_or(0)
    }

    /// Reads the table until `shutdown`.
    pub(crate) async fn run(&self, pool: &Pool, metrics: &SweepMetrics, shutdown: &Shutdown) {
        let mut open = BTreeMap::new();
        let mut told = String::new();
        while !shutdown.is_requested() {
            match self.turn(pool, &mut open, metrics).await {
                Ok(()) => told.clear(),
                Err(error) => {
                    let text = chain(&error).to_string();
                    if text != told {
                        tracing::warn!(error = %text, "requests cannot be read");
                        told = text;
                    }
                }
            }
            tokio::select! {
                () = sleep(EVERY) => {}
                () = shutdown.requested() => {}
            }
        }
    }

    async fn turn(
        &self,
        pool: &Pool,
        open: &mut BTreeMap<i64, u64>,
        metrics: &SweepMetrics,
    ) -> Result<(), SweepError> {
        let client = pool.get().await?;
        let honoured = self.honoured();
        let done: Vec<i64> = open
            .iter()
            .filter(|(_, version)| **version <= honoured)
            .map(|(request, _)| *request)
            .collect();
        if !done.is_empty() {
            sweep_requests::honour(&client, &done).await?;
            open.retain(|_, version| *version > honoured);
            metrics.requests.inc_by(done.len() as u64);
            tracing::info!(requests = ?done, "requests honoured");
        }
        let pending = sweep_requests::pending(&client).await?;
        self.ask(open, &pending);
        Ok(())
    }

    /// Tells the rounds of requests that are new.
    fn ask(&self, open: &mut BTreeMap<i64, u64>, pending: &[Request]) {
        // Another sweeper may have closed some.
        open.retain(|request, _| pending.iter().any(|each| each.request == *request));
        let new: Vec<&Request> = pending
            .iter()
            .filter(|each| !open.contains_key(&each.request))
            .collect();
        if new.is_empty() {
            return;
        }
        let low = new
            .iter()
            .map(|each| each.range.map(|range| range.low))
            .min()
            .flatten();
        let version = self.asked.borrow().version + 1;
        for each in new {
            tracing::info!(request = each.request, reason = %each.reason, "asked to look at once");
            open.insert(each.request, version);
        }
        self.asked.send_replace(Asked { version, low });
    }
}

#[cfg(test)]
mod tests {
    use events::{Micros, id_ranges::IdRange};

    use super::*;

    fn request(request: i64, low: Option<i64>) -> Request {
        Request {
            request,
            reason: "test".into(),
            range: low.map(|low| IdRange { low, high: low + 1 }),
            requested_us: Micros(0),
        }
    }

    #[test]
    fn a_version_is_honoured_when_every_stage_has_looked() {
        let requests = Requests::new();
        requests.looked(Stage::Published, 7);
        assert_eq!(requests.honoured(), 0);
        requests.looked(Stage::Delivered, 5);
        requests.looked(Stage::Delivered, 3);
        assert_eq!(requests.honoured(), 5);
        requests.looked(Stage::Delivered, 9);
        assert_eq!(requests.honoured(), 7);
    }

    #[test]
    fn new_requests_are_told_once_also_those_with_a_lower_number() {
        let requests = Requests::new();
        let listener = requests.listen();
        let mut open = BTreeMap::new();
        requests.ask(&mut open, &[request(5, Some(70)), request(6, Some(30))]);
        assert_eq!(
            *listener.borrow(),
            Asked {
                version: 1,
                low: Some(30)
            }
        );
        requests.ask(&mut open, &[request(5, None), request(6, None)]);
        assert_eq!(listener.borrow().version, 1);
        // 4 was drawn earlier and committed later; 5 was closed by somebody else.
        requests.ask(&mut open, &[request(4, None), request(6, None)]);
        assert_eq!(
            *listener.borrow(),
            Asked {
                version: 2,
                low: None
            }
        );
        assert_eq!(open, BTreeMap::from([(4, 2), (6, 1)]));
    }
}
