//! How fast the judge is on a large store, and whether it still finds one fault of each kind in it.
//!
//! `cargo run --release -p judge --example measure -- [ROWS]`: makes a deployment on the test
//! servers, fills it with about ROWS rows (1 000 000) of posts by twenty celebrities, judges,
//! plants one fault of each kind, and judges again. Exit code 1 when a count is not what it is
//! planted to be. The speed is told and is no failure: the machine may be busy.

use std::{process::ExitCode, time::Instant};

use anyhow::{Context, bail};
use database::{Pool, posts, posts::Create};
use events::{Micros, PostId, UserId};
use graph::{Graph, Shape};
use judge::{Fault, Journal, PostRef, Verdict, judge_at_rest};
use testkit::Deployment;
use timeline_store::{CqlTimelines, PgNow, TimelineDelete, TimelineRow, TimelineStore};

/// Celebrities with one post each that stays.
const AUTHORS: u64 = 20;

/// Rows handed to the store at once.
const ROWS: usize = 2_000;

/// How often rows are written before it is given up.
const ATTEMPTS: u32 = 10;

struct Filled {
    _deployment: Deployment,
    pool: Pool,
    sql: tokio_postgres::Client,
    store: CqlTimelines,
    graph: Graph,
    journal: Journal,
    /// Author and id of the posts that stay.
    posts: Vec<(UserId, PostId)>,
    deleted: PostId,
    post_us: Micros,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let rows = match std::env::args().nth(1) {
        Some(rows) => rows.parse().context("ROWS is a number")?,
        None => 1_000_000,
    };
    let begun = Instant::now();
    let mut filled = Filled::new(rows / AUTHORS).await?;
    eprintln!("filled in {:.0?}", begun.elapsed());
    let clean = filled.judge().await?;
    filled.plant().await?;
    let planted = filled.judge().await?;
    let counts = |verdict: &Verdict| Fault::ALL.map(|fault| verdict.tally(fault).count);
    let found = counts(&clean) == [0; 5] && counts(&planted) == [1; 5];
    print!("{planted}");
    println!(
        "{}",
        if found {
            "each fault was found, once"
        } else {
            "NOT what was planted"
        }
    );
    Ok(ExitCode::from(u8::from(!found)))
}

impl Filled {
    async fn new(audience: u64) -> anyhow::Result<Self> {
        let deployment = Deployment::new().await;
        let pool = Pool::new(&deployment.database_url(), 2, "judge-measure")?;
        let store = deployment.timelines().await;
        let mut celebrities = vec![audience; usize::try_from(AUTHORS)?];
        // Somebody whom nobody follows, for the post out of order.
        celebrities.push(0);
        let shape = Shape {
            celebrities,
            ..Shape::of(audience + 1_000, 1)
        };
        let mut filled = Self {
            pool,
            sql: deployment.sql().await,
            store,
            graph: Graph::new(shape)?,
            journal: Journal::new(),
            posts: Vec::new(),
            deleted: PostId(0),
            post_us: Micros(0),
            _deployment: deployment,
        };
        filled.fill().await?;
        Ok(filled)
    }

    async fn fill(&mut self) -> anyhow::Result<()> {
        let accounts = id(self.graph.accounts())?;
        self.journal.know_range(UserId(1)..=accounts);
        let authors = "insert into tideline.users (id, handle)
            select id, 'user' || id from generate_series($1::bigint, $2::bigint) id";
        let first = id(self.graph.celebrities().start)?;
        let _made = self.sql.execute(authors, &[&first.0, &accounts.0]).await?;
        let graph = self.graph.clone();
        let authors = graph.celebrities().take(usize::try_from(AUTHORS)?);
        for author in authors {
            let followers: anyhow::Result<Vec<UserId>> = graph.followers(author).map(id).collect();
            let (author, followers) = (id(author)?, followers?);
            let (_, post) = self.post(author).await?;
            for owners in followers.chunks(ROWS) {
                self.write(post, author, owners).await?;
            }
            self.posts.push((author, post));
            self.journal.bulk_follows(author, followers);
        }
        let (author, _) = self.posts[0];
        let (entry, deleted) = self.post(author).await?;
        self.journal.delete_sent(entry);
        let mut client = self.pool.get().await?;
        let _outcome = posts::delete(&mut client, author, deleted, None).await?;
        self.journal.delete_acked(entry);
        self.deleted = deleted;
        Ok(())
    }

    /// A post, which the journal learns of.
    async fn post(&mut self, author: UserId) -> anyhow::Result<(PostRef, PostId)> {
        let key = format!("post-{}", self.journal.posts().len());
        let entry = self.journal.post_sent(author, key.as_str());
        let new = posts::NewPost {
            author,
            client_post_id: &key,
            fingerprint: b"f",
            body: "text",
            traceparent: None,
        };
        let mut client = self.pool.get().await?;
        let Create::Created(post) = posts::create(&mut client, &new).await? else {
            bail!("{key} was not made");
        };
        self.journal.post_acked(entry, post.id);
        self.post_us = post.created_us;
        Ok((entry, post.id))
    }

    async fn write(&self, post: PostId, author: UserId, owners: &[UserId]) -> anyhow::Result<()> {
        let row = |&owner| TimelineRow {
            owner,
            post,
            author,
            write_us: self.post_us,
            expires_us: self.post_us.plus(Micros::HOUR),
        };
        let rows: Vec<TimelineRow> = owners.iter().map(row).collect();
        let now = PgNow::new(self.post_us, Instant::now());
        // A busy machine answers late now and then; writing again is harmless (D-7).
        let mut attempt = 1;
        while let Err(error) = self.store.write(&rows, &now).await {
            if attempt == ATTEMPTS {
                return Err(error.into());
            }
            attempt += 1;
        }
        Ok(())
    }

    /// One fault of each kind.
    async fn plant(&mut self) -> anyhow::Result<()> {
        let [(first, first_post), (second, second_post), ..] = self.posts[..] else {
            bail!("two posts are needed");
        };
        let follower = |author: UserId| {
            let follower = self.graph.followers(u64::try_from(author.0)?).next();
            id(follower.context("a celebrity has followers")?)
        };
        let lost = TimelineDelete {
            owner: follower(first)?,
            post: first_post,
            write_us: self.post_us.plus(Micros::HOUR),
        };
        self.store.delete(&[lost]).await?;
        // The authors themselves follow nobody.
        self.write(second_post, second, &[first]).await?;
        self.write(self.deleted, first, &[follower(first)?]).await?;
        let doubled = "insert into tideline.posts (id, author_id, client_post_id, fingerprint, body, created_at)
            select id + 1, author_id, client_post_id, fingerprint, body, created_at
            from tideline.posts where id = $1";
        self.sql
            .batch_execute(
                "alter table tideline.posts drop constraint posts_author_id_client_post_id_key",
            )
            .await?;
        let _one = self.sql.execute(doubled, &[&second_post.0]).await?;
        let nobodys = id(self.graph.accounts())?;
        let entry = self.journal.post_sent(nobodys, "late");
        let late = "insert into tideline.posts (id, author_id, client_post_id, fingerprint, body, created_at)
            values (1, $1, 'late', '', '', now())";
        let _one = self.sql.execute(late, &[&nobodys.0]).await?;
        self.journal.post_acked(entry, PostId(1));
        Ok(())
    }

    async fn judge(&self) -> anyhow::Result<Verdict> {
        let begun = Instant::now();
        let verdict = judge_at_rest(&mut self.journal.clone(), &self.pool, &self.store).await?;
        let took = begun.elapsed();
        println!(
            "{} rows in {took:.1?}: {:.0} rows a minute",
            verdict.rows_read,
            verdict.rows_read as f64 * 60.0 / took.as_secs_f64()
        );
        Ok(verdict)
    }
}

fn id(number: u64) -> anyhow::Result<UserId> {
    Ok(UserId(i64::try_from(number)?))
}
