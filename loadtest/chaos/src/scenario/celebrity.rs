//! Posts with many followers, whose fan-out lasts long enough for something to happen in it.

use std::time::Duration;

use events::UserId;
use judge::Change;
use kafka::surgery;
use testkit::Service;

use super::{Cast, LIMIT, LONG, Proof, Scenario, Stands, Sweep};
use crate::{Run, flow::FIRST_FAN};

const WITHIN: Duration = Duration::from_secs(60);
/// Followers of the celebrity: each post takes seconds.
const FANS: i64 = 3_000;
const MANY_FANS: i64 = 20_000;
/// Who begins to follow in the middle.
const NEWCOMERS: i64 = 200;

/// Slow, in small pages, and gone from its group when it is asked to stop.
const SLOW: &[(&str, &str)] = &[
    ("TIDELINE_FANOUT__INSTANCE_ID", ""),
    ("TIDELINE_FANOUT__PAGE_ROWS", "50"),
    ("FAILPOINTS", "fanout::page-written=sleep(15)"),
];
const DYNAMIC: &[(&str, &str)] = &[("TIDELINE_FANOUT__INSTANCE_ID", "")];

/// The load stays in the background.
const SLOW_CAST: Cast = Cast {
    fanout_env: SLOW,
    pace: Duration::from_millis(200),
    ..Cast::ONE_OF_EACH
};

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "deleted-during-fanout",
        about: "posts are deleted while their fan-out runs, and everything is delivered again later",
        covers: &[33],
        cast: SLOW_CAST,
        fault: |run| Box::pin(deleted(run)),
        sweep: Sweep::May,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "follows-during-fanout",
        about: "followers come and go while the fan-out to them runs",
        covers: &[34],
        cast: SLOW_CAST,
        fault: |run| Box::pin(followed(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "celebrity-and-a-crash",
        about: "fan-out is killed in the middle of posts to 20000 followers",
        covers: &[35],
        cast: Cast {
            pace: Duration::from_millis(200),
            ..Cast::ONE_OF_EACH
        },
        fault: |run| Box::pin(crash(run)),
        sweep: Sweep::Counts,
        limit: LONG,
        quick: false,
        stands: Stands::Green,
    },
];

/// A post that was deleted in the middle is nowhere, also when its events come once more (D-8).
async fn deleted(run: &mut Run) -> anyhow::Result<Proof> {
    const POSTS: usize = 5;
    let celebrity = run.flow().add_author(FANS).await?;
    let client = run.flow().client().clone();
    let mut middle = Vec::new();
    for number in 0..POSTS {
        let posted = client.post(celebrity, &format!("deleted-{number}")).await?;
        // Some pages earlier or later.
        let at_least = run.rng().i64(1..FANS / 2);
        let rows = until_rows(run, posted.id, at_least).await?;
        client.delete(posted).await?;
        middle.push(rows);
    }
    let in_the_middle = middle.iter().filter(|&&rows| rows < FANS).count();
    run.stop("fanout").await?;
    let config = run.flow().pipeline().deployment().kafka_config();
    let records = run.flow().records().await?;
    surgery::delete_offsets(&config, &config.namespace.fanout_posts_group()).await?;
    run.start("fanout", Service::Fanout, DYNAMIC).await;
    run.fault_over().await?;
    Ok((in_the_middle > 0).then(|| {
        format!(
            "{in_the_middle} of {POSTS} posts were deleted when {middle:?} of {FANS} followers had them; {records} records came again"
        )
    }))
}

/// Whoever follows when a post is sent and does not leave has it; the others may.
async fn followed(run: &mut Run) -> anyhow::Result<Proof> {
    const POSTS: usize = 3;
    const CHANGES: i64 = 40;
    let celebrity = run.flow().add_author(FANS).await?;
    let newcomers = run.flow().add_accounts(NEWCOMERS).await?;
    let client = run.flow().client().clone();
    let (mut changes, mut spans) = (0, Vec::new());
    let mut next = newcomers;
    for number in 0..POSTS {
        let posted = client.post(celebrity, &format!("churn-{number}")).await?;
        let before = until_rows(run, posted.id, 1).await?;
        for _ in 0..CHANGES {
            let fan = UserId(FIRST_FAN + run.rng().i64(0..FANS));
            client.change(Change::Unfollow, fan, celebrity).await?;
            if run.rng().bool() {
                client.change(Change::Follow, fan, celebrity).await?;
                changes += 1;
            }
            client
                .change(Change::Follow, UserId(next), celebrity)
                .await?;
            next += 1;
            changes += 2;
        }
        let after = run.flow().rows_of(posted.id).await?;
        spans.push((before, after));
    }
    run.fault_over().await?;
    let inside = spans.iter().filter(|(before, _)| *before < FANS).count();
    Ok((inside > 0).then(|| {
        format!("{changes} follows and unfollows while posts went from {spans:?} of {FANS} rows")
    }))
}

/// The posts are delivered by the worker that comes after.
async fn crash(run: &mut Run) -> anyhow::Result<Proof> {
    const POSTS: usize = 3;
    let celebrity = run.flow().add_author(MANY_FANS).await?;
    let client = run.flow().client().clone();
    let mut posts = Vec::new();
    for number in 0..POSTS {
        posts.push(client.post(celebrity, &format!("storm-{number}")).await?);
    }
    let first = posts.first().map(|posted| posted.id);
    let first = anyhow::Context::context(first, "there are posts")?;
    let at_least = run.rng().i64(1_000..MANY_FANS / 2);
    let _rows = until_rows(run, first, at_least).await?;
    run.kill("fanout")?;
    let mut rows = Vec::new();
    for posted in &posts {
        rows.push(run.flow().rows_of(posted.id).await?);
    }
    run.start("fanout", Service::Fanout, &[]).await;
    run.fault_over().await?;
    let middle = rows.iter().any(|&rows| rows > 0 && rows < MANY_FANS);
    Ok(middle.then(|| format!("killed when {rows:?} of {MANY_FANS} followers had the posts")))
}

/// Waits until so many followers have a post; answers how many have it then.
async fn until_rows(run: &mut Run, post: events::PostId, at_least: i64) -> anyhow::Result<i64> {
    run.until(WITHIN, "a part of the rows is written", async |run| {
        let rows = run.flow().rows_of(post).await?;
        Ok((rows >= at_least).then_some(rows))
    })
    .await
}
