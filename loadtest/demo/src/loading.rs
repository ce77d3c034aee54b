//! Loads the follow graph by COPY.

use std::pin::pin;

use anyhow::Context;
use bytes::Bytes;
use database::Pool;
use futures::SinkExt;
use tokio_postgres::CopyInSink;

use crate::graph::Graph;

/// Text gathered before it is sent.
const CHUNK_BYTES: usize = 256 * 1024;

/// Loads accounts and edges. The edges are as old as the database's clock now.
pub(crate) async fn load(pool: &Pool, graph: &Graph) -> anyhow::Result<()> {
    let client = pool.get().await.context("loading the follow graph")?;
    let now: i64 = client
        .query_one("select tideline.clock_us()", &[])
        .await?
        .try_get(0)?;
    let users = graph
        .users()
        .zip(&graph.handles)
        .map(|(id, handle)| format!("{id}\t{}\n", escaped(handle)));
    let sink = client
        .copy_in("copy tideline.users (id, handle) from stdin")
        .await?;
    send(sink, users).await.context("loading the accounts")?;
    let edges = graph.followers.iter().flat_map(|(followee, followers)| {
        followers
            .iter()
            .map(move |follower| format!("{followee}\t{follower}\t{now}\n"))
    });
    let sink = client
        .copy_in("copy tideline.follows (followee_id, follower_id, edge_us) from stdin")
        .await?;
    send(sink, edges).await.context("loading the follows")?;
    const SEQUENCE: &str = "select setval(pg_get_serial_sequence('tideline.users', 'id'), (select max(id) from tideline.users))";
    client
        .execute(SEQUENCE, &[])
        .await
        .context("moving the sequence of accounts")?;
    client
        .batch_execute("analyze tideline.users; analyze tideline.follows")
        .await
        .context("analysing")?;
    Ok(())
}

async fn send(sink: CopyInSink<Bytes>, lines: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut sink = pin!(sink);
    let mut chunk = String::new();
    for line in lines {
        chunk.push_str(&line);
        if chunk.len() >= CHUNK_BYTES {
            sink.send(Bytes::from(std::mem::take(&mut chunk))).await?;
        }
    }
    sink.send(Bytes::from(chunk)).await?;
    sink.as_mut().finish().await?;
    Ok(())
}

/// COPY's text form (PostgreSQL manual, COPY, "Text Format"); handles have no control characters.
fn escaped(handle: &str) -> String {
    handle.replace('\\', r"\\")
}
