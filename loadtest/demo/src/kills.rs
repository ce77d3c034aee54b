//! Two SIGKILLs that provably hit work in flight.
//!
//! A kill that hit nothing is repeated, a few times; a run without a hit has proved nothing and
//! fails.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use database::Pool;
use events::{PostId, UserId};
use futures::future::try_join_all;
use sandbox::Service;
use timeline_store::{CqlTimelines, TimelineStore};

use crate::api::Api;
use crate::fleet::Fleet;
use crate::graph::Graph;
use crate::view::View;

/// How often each kill is tried.
const ATTEMPTS: usize = 5;

/// Posts sent at once to keep the relay busy.
const BURST: usize = 80;

/// How long a record in flight is waited for.
const BUSY_WITHIN: Duration = Duration::from_secs(5);

/// How long the celebrity's post may take to reach the first followers, behind all other posts.
const REACHED_WITHIN: Duration = Duration::from_secs(60);

const IN_FLIGHT: &str = "tideline_relay_records_in_flight";

/// What a kill hit.
#[derive(Clone, Debug)]
pub(crate) struct Kill {
    pub(crate) service: Service,
    /// What shows that it hit work in flight; `None` when no attempt did.
    pub(crate) proof: Option<String>,
    /// From the signal until the service was ready again.
    pub(crate) ready_after: Duration,
}

/// Everything that the kills need.
#[derive(Debug)]
pub(crate) struct Killer {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) api: Arc<Api>,
    pub(crate) graph: Arc<Graph>,
    pub(crate) pool: Pool,
    pub(crate) store: CqlTimelines,
    pub(crate) view: Arc<View>,
}

impl Killer {
    /// Kills both parts, each at its share of the traffic's span.
    pub(crate) async fn run(&self, span: Duration) -> anyhow::Result<Vec<Kill>> {
        let begun = tokio::time::Instant::now();
        tokio::time::sleep_until(begun + span.mul_f64(0.25)).await;
        let relay = self.kill(Service::Relay).await?;
        tokio::time::sleep_until(begun + span.mul_f64(0.55)).await;
        let fanout = self.kill(Service::Fanout).await?;
        Ok(vec![relay, fanout])
    }

    async fn kill(&self, service: Service) -> anyhow::Result<Kill> {
        let name = service.name();
        let mut ready_after = Duration::ZERO;
        for attempt in 1..=ATTEMPTS {
            let (proof, killed) = match service {
                Service::Relay => self.kill_relay().await,
                _ => self.kill_fanout().await,
            }
            .with_context(|| format!("killing {name}"))?;
            self.fleet.start(service)?;
            self.fleet.ready(service).await?;
            ready_after = killed.elapsed();
            match proof {
                Ok(proof) => {
                    self.view.say(&format!(
                        "SIGKILL {name}: {proof}; ready again after {ready_after:.1?}"
                    ));
                    return Ok(Kill {
                        service,
                        proof: Some(proof),
                        ready_after,
                    });
                }
                Err(miss) => self.view.say(&format!(
                    "SIGKILL {name}, attempt {attempt} of {ATTEMPTS}: {miss}"
                )),
            }
        }
        Ok(Kill {
            service,
            proof: None,
            ready_after,
        })
    }

    /// Kills the relay while records are in flight. The proof: outbox rows that were committed
    /// before the kill and are published by nobody while it is dead.
    async fn kill_relay(&self) -> anyhow::Result<(Result<String, String>, Instant)> {
        let burst = try_join_all((0..BURST).map(|number| {
            let text = format!("number {number} of a burst");
            async move { self.api.post(self.graph.pacer, &text, false).await }
        }));
        let strike = async {
            let begun = Instant::now();
            let client = self.pool.get().await?;
            loop {
                let clock: i64 = client
                    .query_one("select tideline.clock_us()", &[])
                    .await?
                    .try_get(0)?;
                // A relay that does not answer at once is asked again.
                let in_flight = self.fleet.metric(Service::Relay, IN_FLIGHT).await;
                let in_flight = in_flight.unwrap_or(0.0);
                // Without a hit it is killed as well, and tried again.
                if in_flight > 0.0 || begun.elapsed() > BUSY_WITHIN {
                    let (pid, killed) = (self.fleet.kill(Service::Relay)?, Instant::now());
                    let open = unpublished(&client, clock).await?;
                    return Ok((in_flight, pid, open, killed));
                }
            }
        };
        // The burst goes on while the relay is dead: write-api needs nobody but Postgres.
        let (_posts, (in_flight, pid, open, killed)) = tokio::try_join!(burst, strike)?;
        let facts = format!(
            "pid {pid}, {in_flight} records in flight, {open} committed events not published"
        );
        let hit = in_flight > 0.0 && open > 0;
        Ok((
            if hit {
                Ok(facts)
            } else {
                Err(format!("missed ({facts})"))
            },
            killed,
        ))
    }

    /// Kills the worker inside the celebrity's post. The proof: the rows of that post in the store
    /// while it is dead, more than none and fewer than the audience.
    async fn kill_fanout(&self) -> anyhow::Result<(Result<String, String>, Instant)> {
        let audience = self.graph.audience(self.graph.celebrity);
        // Followers are served in the order of their ids: when this one has the post, the worker is
        // in the middle of it.
        let early = *audience
            .get(audience.len() / 10)
            .context("the celebrity has followers")?;
        let (entry, post) = self
            .api
            .post(self.graph.celebrity, "Everybody gets this, once.", false)
            .await?;
        let must = {
            let journal = self.api.journal();
            journal
                .entry(entry)
                .map_or(0, |post| journal.must_have(post).count()) as u64
        };
        self.wait_for_row(early, post).await?;
        let (pid, killed) = (self.fleet.kill(Service::Fanout)?, Instant::now());
        let rows = judge::store::count_of_post(&self.store, post).await?;
        let facts =
            format!("pid {pid}, {rows} of {must} followers had the celebrity's post {post}");
        Ok((
            if 0 < rows && rows < must {
                Ok(facts)
            } else {
                Err(format!("missed ({facts})"))
            },
            killed,
        ))
    }

    async fn wait_for_row(&self, owner: UserId, post: PostId) -> anyhow::Result<()> {
        let begun = Instant::now();
        let (below, above) = (PostId(post.0 - 1), PostId(post.0 + 1));
        let mut looks = 0_u32;
        loop {
            match self.store.page(owner, Some(above), Some(below), 1).await {
                Ok(rows) if !rows.is_empty() => return Ok(()),
                Ok(_none) => {}
                // A store that stalls for a moment has not shown it yet.
                Err(error) if error.class().is_retried() => {}
                Err(error) => return Err(error).context("looking for the celebrity's post"),
            }
            // What the worker says last before it is killed is what it has written at least.
            if looks.is_multiple_of(20) {
                self.fleet.check()?;
                let _rows = self.fleet.look_at_rows().await;
            }
            looks = looks.wrapping_add(1);
            if begun.elapsed() > REACHED_WITHIN {
                bail!(
                    "the celebrity's post {post} did not reach follower {owner} within {REACHED_WITHIN:?}"
                );
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// How many events older than `clock` nobody has published.
async fn unpublished(client: &database::Client, clock: i64) -> anyhow::Result<i64> {
    const SQL: &str = "with passed as (
            select coalesce(range_agg(r), '{}') as ids from tideline.delivery_ledger l, unnest(l.ids) as r
        )
        select count(*) from tideline.outbox o, passed
        where o.created_at < tideline.at_micros($1) and not passed.ids @> o.id";
    Ok(client
        .query_one(SQL, &[&clock])
        .await
        .context("counting what is not published")?
        .try_get(0)?)
}
