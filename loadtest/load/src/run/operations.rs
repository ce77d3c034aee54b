//! One operation: its requests, what is noted of them, and what follows from it.
//!
//! What follows an acknowledgement (a deletion, a follow that begins again) is due a fixed time
//! after it, and is timed from then.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use events::{PostId, UserId};
use judge::{Change, Op as Entry};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::dispatch::pause;
use super::insist::insist;
use super::{Shared, watcher};
use crate::client::{Created, Failure};
use crate::deliveries::Expected;
use crate::plan::{Op, PlannedEdge, PlannedPost, PlannedRead, ReaderKind};
use crate::tally::Request;

/// Carries out one operation that was due at `due`.
///
/// # Errors
/// When the journal cannot be written. Answers of the APIs are counted, not errors.
pub(super) async fn perform(
    number: u64,
    due: Duration,
    op: Op,
    permit: OwnedSemaphorePermit,
    shared: &Arc<Shared>,
) -> anyhow::Result<()> {
    match op {
        Op::Post(post) => send_post(number, due, post, permit, shared).await,
        Op::Edge(edge) => send_edge(due, edge, permit, shared).await,
        Op::Read(read) => {
            walk(due, read, shared).await;
            Ok(())
        }
    }
}

async fn send_post(
    number: u64,
    due: Duration,
    post: PlannedPost,
    permit: OwnedSemaphorePermit,
    shared: &Arc<Shared>,
) -> anyhow::Result<()> {
    let author = shared.accounts.id(post.author);
    let key = format!("{}-{number}", shared.name);
    let text = format!("post {number} of {}", shared.name);
    let entry = (shared.journal.post_sent(author, &key)).context(JOURNAL)?;
    let (key, text) = (key.as_str(), text.as_str());
    let answer = insist(shared, || async move {
        let sent = shared.clock.now();
        let created = shared.client.post(author, key, text).await?;
        Ok((sent, created))
    })
    .await;
    let (sent, created) = match answer {
        Ok(answer) => answer,
        Err(failure) => return gave_up("a post", &failure, shared),
    };
    // Before it counts: an acknowledged post is an obligation, and the journal outlives this.
    (shared.journal.post_acked(entry, created.id)).context(JOURNAL)?;
    note_created(due, sent, created, &post, shared);
    if post.repeat {
        repeat(entry, author, key, text, shared).await?;
    }
    // Whoever waits to delete is not under way.
    drop(permit);
    if let Some(follower) = post.watcher {
        watcher::start(due, created.id, &post, follower, shared);
    }
    match post.delete_after {
        Some(span) => delete_after(span, entry, author, created.id, shared).await,
        None => Ok(()),
    }
}

const JOURNAL: &str = "writing the journal";

fn note_created(
    due: Duration,
    sent: Duration,
    created: Created,
    post: &PlannedPost,
    shared: &Shared,
) {
    let now = shared.clock.now();
    shared.ahead().observe(
        shared.clock.wall(sent),
        shared.clock.wall(now),
        created.created_us,
    );
    shared.awaited.add(Expected {
        post: created.id,
        due,
        class: post.audience,
        measured: post.delete_after.is_none(),
    });
    shared
        .tally()
        .answered(Request::Post, due, now.saturating_sub(due));
}

/// The same post with the same key, as if its answer had been lost (D-2).
async fn repeat(
    entry: Entry,
    author: UserId,
    key: &str,
    text: &str,
    shared: &Shared,
) -> anyhow::Result<()> {
    match insist(shared, || shared.client.post(author, key, text)).await {
        Ok(again) => shared.journal.post_acked(entry, again.id).context(JOURNAL),
        Err(failure) => gave_up("a repeated post", &failure, shared),
    }
}

async fn delete_after(
    span: Duration,
    entry: Entry,
    author: UserId,
    id: PostId,
    shared: &Arc<Shared>,
) -> anyhow::Result<()> {
    let due = pause(shared, span).await;
    let _permit = permit(&shared.permits).await?;
    shared.journal.delete_sent(entry).context(JOURNAL)?;
    match insist(shared, || shared.client.delete(author, id)).await {
        Ok(()) => {
            shared.journal.delete_acked(entry).context(JOURNAL)?;
            let took = shared.clock.now().saturating_sub(due);
            shared.tally().answered(Request::Delete, due, took);
            Ok(())
        }
        Err(failure) => gave_up("a deletion", &failure, shared),
    }
}

async fn send_edge(
    due: Duration,
    edge: PlannedEdge,
    first: OwnedSemaphorePermit,
    shared: &Arc<Shared>,
) -> anyhow::Result<()> {
    let changed = change(due, edge.change, &edge, shared).await?;
    drop(first);
    // The changes of one edge go one after the other, or their order would be unknown.
    if let (true, Some(span)) = (changed, edge.back_after) {
        let due = pause(shared, span).await;
        let _permit = permit(&shared.permits).await?;
        let _changed = change(due, Change::Follow, &edge, shared).await?;
    }
    Ok(())
}

async fn change(
    due: Duration,
    change: Change,
    edge: &PlannedEdge,
    shared: &Shared,
) -> anyhow::Result<bool> {
    let follower = shared.accounts.id(edge.follower);
    let followee = shared.accounts.id(edge.followee);
    let entry = (shared.journal.edge_sent(change, follower, followee)).context(JOURNAL)?;
    let answer = insist(shared, || shared.client.change(change, follower, followee));
    match answer.await {
        Ok(()) => {
            shared.journal.edge_acked(entry).context(JOURNAL)?;
            let took = shared.clock.now().saturating_sub(due);
            shared.tally().answered(Request::Follow, due, took);
            Ok(true)
        }
        Err(failure) => gave_up("a changed follow", &failure, shared).map(|()| false),
    }
}

/// Page after page, each asked for when the one before has come.
async fn walk(due: Duration, read: PlannedRead, shared: &Shared) {
    let reader = shared.accounts.id(read.reader);
    let mut cursor: Option<String> = None;
    let mut due = due;
    let mut request = match read.kind {
        ReaderKind::Ordinary => Request::FirstPage,
        ReaderKind::Thundering => Request::ThunderingPage,
        ReaderKind::Hot => Request::HotPage,
    };
    for _ in 0..read.pages {
        // A reader does not insist: a page that fails is a failure that they see.
        let page = shared
            .client
            .page(reader, cursor.as_deref(), read.page_size);
        match page.await {
            Ok(page) => {
                let now = shared.clock.now();
                let took = now.saturating_sub(due);
                shared.tally().answered(request, due, took);
                (cursor, due, request) = (page.next_cursor, now, Request::NextPage);
            }
            Err(failure) => {
                let now = shared.clock.now();
                shared.tally().gave_up("a page", now, &failure.to_string());
                return;
            }
        }
        if cursor.is_none() {
            return;
        }
    }
}

fn gave_up(what: &str, failure: &Failure, shared: &Shared) -> anyhow::Result<()> {
    let now = shared.clock.now();
    shared.tally().gave_up(what, now, &failure.to_string());
    Ok(())
}

async fn permit(permits: &Arc<Semaphore>) -> anyhow::Result<OwnedSemaphorePermit> {
    Arc::clone(permits)
        .acquire_owned()
        .await
        .context("waiting to send")
}
