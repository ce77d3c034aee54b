//! write-api is killed, and transactions that come to nothing, or late.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use events::{EventId, UserId};
use testkit::Service;

use super::{Cast, LIMIT, Proof, Scenario, Stands, Sweep, relay, still::Still};
use crate::{Run, bulk, load::CLIENTS};

const WITHIN: Duration = Duration::from_secs(40);
/// Posts in a transaction.
const MANY: i64 = 50;
/// So many that the server spills them to its disk before it decodes them.
const LARGE: i64 = 2_000;

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "api-killed-after-commit",
        about: "write-api is killed between commit and answer; the clients try again",
        covers: &[1],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(killed_after_commit(run)),
        sweep: Sweep::May,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "api-killed-before-commit",
        about: "write-api is killed between the insert of the post and that of its event",
        covers: &[2],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(killed_before_commit(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "rolled-back",
        about: "transactions with outbox rows are rolled back: by themselves, to a savepoint, by the server",
        covers: &[3],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(rolled_back(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: true,
        stands: Stands::Green,
    },
    Scenario {
        name: "late-commit",
        about: "a transaction commits when the sweep has looked past its ids many times",
        covers: &[],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(late_commit(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
];

/// The posts are there once, and their clients get them when they try again.
async fn killed_after_commit(run: &mut Run) -> anyhow::Result<Proof> {
    let first = run.rng().u32(20..60);
    let stop_there = format!("write-api::committed={first}*off->pause");
    run.kill("write-api")?;
    run.spawn(
        "write-api",
        Service::WriteApi,
        &[("FAILPOINTS", stop_there.as_str())],
    );
    let mut still = Still::default();
    let unanswered = run
        .until(WITHIN, "write-api stands behind a commit", async |run| {
            let acknowledged = run.sent()?.posts;
            let unanswered = committed(run).await? - i64::try_from(acknowledged)?;
            let stands = still.see((acknowledged, unanswered > 0));
            Ok((stands && unanswered > 0).then_some(unanswered))
        })
        .await?;
    let before = run.sent()?.replayed;
    run.kill("write-api")?;
    run.start("write-api", Service::WriteApi, &[]).await;
    run.fault_over().await?;
    let replayed = run
        .until(WITHIN, "a client gets its first post", async |run| {
            let replayed = run.sent()?.replayed - before;
            Ok((i64::try_from(replayed)? >= unanswered).then_some(replayed))
        })
        .await?;
    Ok((replayed > 0).then(|| {
        format!("killed with {unanswered} posts committed and not answered; {replayed} of them were found by the next attempt")
    }))
}

/// Nothing of the transaction is ever seen.
async fn killed_before_commit(run: &mut Run) -> anyhow::Result<Proof> {
    const WAITING: &str = "select count(*) from pg_stat_activity where datname = current_database()
        and wait_event_type = 'Lock' and query ilike 'insert into tideline.outbox%'";
    // Inserts wait for it; they stand behind that of the post.
    let lock = run.flow().pipeline().deployment().sql().await;
    lock.batch_execute("begin; lock table tideline.outbox in share mode")
        .await?;
    let waiting = run
        .until(WITHIN, "inserts into the outbox wait", async |run| {
            let sql = run.flow().sql().get().await?;
            let waiting: i64 = sql.query_one(WAITING, &[]).await?.get(0);
            Ok((waiting >= 2).then_some(waiting))
        })
        .await?;
    let before = committed(run).await?;
    run.kill("write-api")?;
    lock.batch_execute("rollback").await?;
    run.until(WITHIN, "the server ends the transactions", async |run| {
        let sql = run.flow().sql().get().await?;
        let waiting: i64 = sql.query_one(WAITING, &[]).await?.get(0);
        Ok((waiting == 0).then_some(()))
    })
    .await?;
    let after = committed(run).await?;
    ensure!(
        before == after,
        "{} posts were committed by nobody",
        after - before
    );
    run.start("write-api", Service::WriteApi, &[]).await;
    run.fault_over().await?;
    Ok(Some(format!(
        "killed while {waiting} posts waited for their event to be inserted, and none was committed"
    )))
}

/// No event of a transaction that was rolled back is ever seen; those around it are.
async fn rolled_back(run: &mut Run) -> anyhow::Result<Proof> {
    let author = UserId(run.rng().i64(1..=CLIENTS));
    let client = run.flow().client().clone();
    let mut nothing: Vec<EventId> = Vec::new();
    let mut sql = run.flow().pipeline().deployment().sql().await;
    for (name, count) in [("gone", MANY), ("gone-too", LARGE)] {
        let transaction = sql.transaction().await?;
        nothing.extend(without_journal(&transaction, author, name, count).await?);
        transaction.rollback().await?;
        run.more_posts(10).await?;
    }
    // A part of a transaction that commits.
    let mut transaction = sql.transaction().await?;
    let kept = bulk::insert(&client, &transaction, author, "kept", MANY).await?;
    let part = transaction.savepoint("part").await?;
    nothing.extend(without_journal(&part, author, "part", MANY).await?);
    part.rollback().await?;
    transaction.commit().await?;
    kept.committed(&client);
    // The server ends the session in the middle.
    let pid: i32 = sql.query_one("select pg_backend_pid()", &[]).await?.get(0);
    let transaction = sql.transaction().await?;
    nothing.extend(without_journal(&transaction, author, "cut", MANY).await?);
    let other = run.flow().sql().get().await?;
    let _ended = other
        .execute("select pg_terminate_backend($1)", &[&pid])
        .await?;
    let refused = transaction.commit().await.is_err();
    drop(other);
    run.more_posts(10).await?;
    run.fault_over().await?;
    let newest = crate::account::newest(run.flow()).await?;
    let passed = nothing.iter().all(|event| *event < newest);
    let rows =
        i64::try_from(nothing.len())? - crate::account::without_row(run.flow(), &nothing).await?;
    ensure!(
        rows == 0,
        "{rows} rows of transactions that were rolled back"
    );
    Ok((refused && passed).then(|| {
        format!(
            "{} events were rolled back, and events with higher ids were committed",
            nothing.len()
        )
    }))
}

/// Ids that no row has are noted and left out; when their rows come after all, they are published
/// by the relay, and by nobody else.
async fn late_commit(run: &mut Run) -> anyhow::Result<Proof> {
    let author = UserId(run.rng().i64(1..=CLIENTS));
    let client = run.flow().client().clone();
    let mut sql = run.flow().pipeline().deployment().sql().await;
    let transaction = sql.transaction().await?;
    let late = bulk::insert(&client, &transaction, author, "late", MANY).await?;
    let open = relay::several_rounds(run);
    let begun = Instant::now();
    while begun.elapsed() < open {
        run.more_posts(5).await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    transaction.commit().await?;
    let newest = crate::account::newest(run.flow()).await?;
    late.committed(&client);
    run.fault_over().await?;
    let passed = late.events.iter().all(|event| *event < newest);
    Ok(passed.then(|| {
        format!(
            "{MANY} events were committed {:.0?} after their ids were drawn, behind events with higher ids",
            begun.elapsed()
        )
    }))
}

/// Inserts posts that will never be.
async fn without_journal(
    transaction: &tokio_postgres::Transaction<'_>,
    author: UserId,
    prefix: &str,
    count: i64,
) -> anyhow::Result<Vec<EventId>> {
    bulk::rows(transaction, author, prefix, count)
        .await
        .map(|rows| rows.into_iter().map(|(event, _)| event).collect())
        .context("insert posts to be rolled back")
}

/// Posts of the load that are committed.
async fn committed(run: &Run) -> anyhow::Result<i64> {
    const SQL: &str = "select count(*) from tideline.posts where client_post_id like 'load-%'";
    let sql = run.flow().sql().get().await?;
    Ok(sql.query_one(SQL, &[]).await?.get(0))
}
