//! The play, act by act: servers, graph, services, traffic with two kills, rest, judgement.

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use events::UserId;
use fastrand::Rng;
use judge::{Journal, Walker};
use load::client::{Client, Tokens};
use sandbox::Service;

use crate::api::Api;
use crate::args::Args;
use crate::graph::{self, Graph, Size};
use crate::input::{self, Input};
use crate::judgement;
use crate::kills::{Kill, Killer};
use crate::loading;
use crate::plan::{self, Plan, Volume};
use crate::progress::{Progress, Topics};
use crate::report::Report;
use crate::stage::{Set, Stage};
use crate::traffic;

/// How large a run is.
struct Scale {
    size: Size,
    volume: Volume,
    /// How long delivery may take after the last post.
    settle_within: Duration,
}

const FULL: Scale = Scale {
    size: Size {
        users: 60_000,
        celebrity: 50_000,
        authors: 400,
    },
    volume: Volume {
        posts: 3_000,
        span: Duration::from_secs(25),
        deletes: 80,
        edges: 60,
    },
    settle_within: Duration::from_secs(240),
};

const ONCE: Scale = Scale {
    size: Size {
        users: 3_000,
        celebrity: 2_500,
        authors: 60,
    },
    volume: Volume {
        posts: 300,
        span: Duration::from_secs(6),
        deletes: 15,
        edges: 12,
    },
    settle_within: Duration::from_secs(90),
};

/// Posts a page in the judge's walks: the most that read-api gives.
const PAGE: usize = 100;

/// What a whole play ends with.
pub(crate) struct Played {
    pub(crate) report: Report,
    /// What to try while everything is left running.
    pub(crate) hints: String,
}

/// Everything that one run is made of.
struct Run<'a> {
    stage: &'a Stage,
    set: &'a Set,
    api: Arc<Api>,
    graph: Arc<Graph>,
    progress: Progress,
    walker: Walker,
}

/// Plays it from the first server to the judge.
pub(crate) async fn play(stage: &Stage, args: &Args, input: &Input) -> anyhow::Result<Played> {
    let begun = Instant::now();
    let scale = if args.once { ONCE } else { FULL };
    let mut rng = Rng::with_seed(args.seed);
    // Own follows are people's business; beside them a small celebrity is enough.
    let size = if input.follows.is_some() {
        ONCE.size
    } else {
        scale.size
    };
    let graph = Arc::new(graph::build(size, input, &mut rng));
    let plan = plan::make(&graph, input, scale.volume, &mut rng);
    stage.view.say(&describe(args, &graph, &plan));
    let set = stage.set_up().await?;
    stage.view.say("migrating …");
    let _said = stage.tideline(&set.deployment, &["migrate"]).await?;
    let run = prepare(stage, set, graph).await?;
    stage.view.say("posts travel:");
    let (kills, redelivered, travelled) = run.travel(plan, scale.settle_within).await?;
    stage.view.freeze();
    stage
        .view
        .say("at rest; comparing every timeline with the promise …");
    let pool = set.deployment.pool(2)?;
    let store = set.deployment.timelines().await?;
    let verdict =
        judgement::judge(&run.api, &pool, &store, &run.graph, &run.walker, &mut rng).await?;
    let report = Report {
        accepted: run.api.sent().accepted,
        verdict,
        kills,
        redelivered,
        rows_written: set.fleet.look_at_rows().await,
        cost: judgement::cost(&run.api, &pool).await?,
        travelled,
        took: begun.elapsed(),
    };
    Ok(Played {
        report,
        hints: run.hints().await?,
    })
}

fn describe(args: &Args, graph: &Graph, plan: &Plan) -> String {
    let mut text = format!(
        "{} accounts, {} follows, a celebrity with {} followers; {} posts in {} s; seed {}",
        graph.handles.len(),
        graph.edges(),
        graph.audience(graph.celebrity).len(),
        plan.posts(),
        plan.span.as_secs(),
        args.seed
    );
    for (what, path) in [("posts", &args.posts), ("follows", &args.follows)] {
        if path.is_some() {
            // Formatting into a String does not fail.
            let _ = write!(text, "; {what} of {}", input::named(path.as_ref()));
        }
    }
    text
}

/// Loads the graph and starts the services.
async fn prepare<'a>(stage: &'a Stage, set: &'a Set, graph: Arc<Graph>) -> anyhow::Result<Run<'a>> {
    let Set { deployment, fleet } = set;
    let begun = Instant::now();
    loading::load(&deployment.pool(1)?, &graph).await?;
    stage.view.say(&format!(
        "loaded the follow graph in {:.1?}",
        begun.elapsed()
    ));
    for service in Service::ALL {
        fleet.start(service)?;
    }
    for service in Service::ALL {
        fleet.ready(service).await?;
    }
    stage.view.say(&format!(
        "services are ready, logs in {}",
        stage.logs().display()
    ));
    let secret = deployment.setting("TIDELINE_AUTH__SECRET_FILE");
    let secret = std::fs::read_to_string(secret)
        .with_context(|| format!("reading the token secret {secret}"))?;
    let tokens = Tokens::new(secret.trim_end().as_bytes()).context("using the token secret")?;
    let mut journal = Journal::new();
    journal.know_users(graph.users());
    for (followee, followers) in &graph.followers {
        journal.bulk_follows(*followee, followers.iter().copied());
    }
    let url = |key: &str| format!("http://{}", deployment.setting(key));
    let (write, read) = (
        url("TIDELINE_WRITE_API__LISTEN"),
        url("TIDELINE_READ_API__LISTEN"),
    );
    let api = Arc::new(Api::new(Client::new(write, read, tokens)?, journal));
    let walker = Walker::new(url("TIDELINE_READ_API__LISTEN"), PAGE)?;
    let progress = Progress {
        fleet: Arc::clone(fleet),
        api: Arc::clone(&api),
        pool: deployment.pool(2)?,
        topics: Topics::new(deployment.kafka()?)?,
        walker: Walker::new(url("TIDELINE_READ_API__LISTEN"), 20)?,
        token: api.token(reader(&graph))?,
    };
    Ok(Run {
        stage,
        set,
        api,
        graph,
        progress,
        walker,
    })
}

/// Somebody who follows the celebrity.
fn reader(graph: &Graph) -> UserId {
    graph
        .audience(graph.celebrity)
        .first()
        .copied()
        .unwrap_or(graph.pacer)
}

impl Run<'_> {
    /// Sends the traffic, kills both parts in it, and waits until everything is delivered.
    async fn travel(
        &self,
        plan: Plan,
        settle_within: Duration,
    ) -> anyhow::Result<(Vec<Kill>, i64, Duration)> {
        let begun = Instant::now();
        let killer = Killer {
            fleet: Arc::clone(&self.set.fleet),
            api: Arc::clone(&self.api),
            graph: Arc::clone(&self.graph),
            pool: self.set.deployment.pool(2)?,
            store: self.set.deployment.timelines().await?,
            view: Arc::clone(&self.stage.view),
        };
        let span = plan.span;
        let acts = async {
            let (kills, ()) =
                tokio::try_join!(killer.run(span), traffic::run(plan, Arc::clone(&self.api)))?;
            let redelivered = self.progress.settle(settle_within).await?;
            anyhow::Ok((kills, redelivered))
        };
        let (kills, redelivered) = tokio::select! {
            done = acts => done?,
            // It only ends when something is wrong.
            shown = self.progress.show(&self.stage.view) => return Err(shown.err().context("the live view ended")?),
        };
        Ok((kills, redelivered, begun.elapsed()))
    }

    /// URLs, and curl lines with a real token.
    async fn hints(&self) -> anyhow::Result<String> {
        let deployment = &self.set.deployment;
        let reader = reader(&self.graph);
        let (write, read) = (
            deployment.setting("TIDELINE_WRITE_API__LISTEN"),
            deployment.setting("TIDELINE_READ_API__LISTEN"),
        );
        let client = deployment.pool(1)?.get().await?;
        const NEWEST: &str =
            "select max(id) from tideline.posts where author_id = $1 and deleted_at is null";
        let post: Option<i64> = client
            .query_one(NEWEST, &[&self.graph.celebrity.0])
            .await?
            .try_get(0)?;
        let token = self.api.token(reader)?;
        let mut text = format!(
            "everything goes on; ./x down stops it\n\
             \x20 write API  http://{write}\n\
             \x20 read API   http://{read}\n\
             \x20 database   {}\n\
             \x20 logs       {}\n\n\
             try, as user {reader}, who follows the celebrity:\n\
             \x20 TOKEN={token}\n\
             \x20 curl -sS \"http://{read}/v1/timelines/home?limit=5\" -H \"authorization: Bearer $TOKEN\"\n\
             \x20 curl -sS -X POST http://{write}/v1/posts -H \"authorization: Bearer $TOKEN\" \
             -H 'content-type: application/json' -d '{{\"client_post_id\":\"first\",\"body\":\"hello\"}}'\n",
            deployment.database_url(),
            self.stage.logs().display(),
        );
        if let Some(post) = post {
            text.push_str(&format!(
                "\x20 curl -sS http://{read}/v1/posts/{post}/delivery -H \"authorization: Bearer $TOKEN\"   \
                 # where the celebrity's newest post is\n"
            ));
        }
        Ok(text)
    }
}
