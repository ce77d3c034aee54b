//! The work in the database: set by set, in temporary tables that go with the connection.

use std::{
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use database::{Client, Pool};
use futures::SinkExt;
use tokio::sync::mpsc;

use super::{
    Accounts, Input, LoadError, Options, Outcome, Progress,
    feed::{Fed, Meter, feed},
};

/// Chunks that wait between the reader and the server.
const WAITING_CHUNKS: usize = 4;

/// How often somebody is told how far it is.
const TICK: Duration = Duration::from_secs(1);

/// For this connection. Sorting tens of millions of edges takes more memory than a service's
/// statement has, and longer.
const SESSION: &str =
    "set statement_timeout = '6h'; set work_mem = '128MB'; set temp_buffers = '64MB'";

/// Ids that were given by hand leave the sequence behind; it must not give them out again.
const SEQUENCE: &str = "select setval(pg_get_serial_sequence('tideline.users', 'id'), last)
    from (select max(id) as last from tideline.users) u
    where last > coalesce(pg_sequence_last_value(pg_get_serial_sequence('tideline.users', 'id')::regclass), 0)";

/// Loads an edge list. `progress` is called about once a second.
///
/// # Errors
/// [`LoadError::Bad`]: nothing was loaded. Others: accounts and whole batches of follows may be
/// loaded; loading the same list again completes it.
pub async fn load(
    input: Input,
    url: &str,
    options: &Options,
    mut progress: impl FnMut(Progress),
) -> Result<Outcome, LoadError> {
    if matches!(input, Input::Graph(_)) && options.accounts == Accounts::Handles {
        return Err(LoadError::GraphByHandles);
    }
    let pool = Pool::new(url, 1, "graph")?;
    database::migrations::verify(&pool).await?;
    let work = Work {
        client: pool.get().await?,
        options,
        generated: match &input {
            Input::Graph(graph) => Some(graph.accounts()),
            Input::File(_) | Input::Stdin => None,
        },
    };
    work.run("set the session up", SESSION).await?;
    let fed = work.stage(input, &mut progress).await?;
    if fed.bad.count > 0 && !options.skip_bad {
        return Err(LoadError::Bad(fed.bad));
    }
    progress(Progress::Accounts);
    let accounts_made = work.accounts().await?;
    progress(Progress::Sorting);
    let distinct = work.sort().await?;
    let follows_made = work.follow(distinct, &mut progress).await?;
    work.run(
        "count what was loaded",
        "analyze tideline.users; analyze tideline.follows",
    )
    .await?;
    Ok(Outcome {
        edges: fed.edges,
        self_follows: fed.self_follows,
        duplicates: fed.edges - fed.self_follows - distinct,
        already: distinct - follows_made,
        follows_made,
        accounts_made,
        bad: fed.bad,
    })
}

struct Work<'a> {
    client: Client,
    options: &'a Options,
    /// Accounts of a generated graph: all of them are made, with edges or without.
    generated: Option<u64>,
}

impl Work<'_> {
    /// Copies all edges into a temporary table while they are read.
    async fn stage(
        &self,
        input: Input,
        progress: &mut impl FnMut(Progress),
    ) -> Result<Fed, LoadError> {
        const DOING: &str = "stage the edges";
        let kind = match self.options.accounts {
            Accounts::Handles => "text",
            Accounts::Ids { .. } => "bigint",
        };
        let create = format!(
            "create temporary table staged (followee {kind} not null, follower {kind} not null)"
        );
        self.run(DOING, &create).await?;
        let name = match &input {
            Input::File(path) => path.display().to_string(),
            Input::Stdin => "standard input".to_owned(),
            Input::Graph(_) => "the graph".to_owned(),
        };
        let meter = Arc::new(Meter::default());
        let (sender, mut chunks) = mpsc::channel(WAITING_CHUNKS);
        let reader = tokio::task::spawn_blocking({
            let (options, meter) = (self.options.clone(), Arc::clone(&meter));
            move || feed(input, &options, &meter, sender)
        });
        let copy = self
            .client
            .copy_in("copy staged (followee, follower) from stdin");
        let mut sink = pin!(copy.await.map_err(failed(DOING))?);
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                chunk = chunks.recv() => match chunk {
                    Some(chunk) => sink.send(chunk).await.map_err(failed(DOING))?,
                    None => break,
                },
                _ = tick.tick() => progress(meter.progress()),
            }
        }
        let _rows = sink.as_mut().finish().await.map_err(failed(DOING))?;
        let fed = reader.await.map_err(LoadError::Reader)?;
        let fed = fed.map_err(|source| LoadError::Read { name, source })?;
        progress(meter.progress());
        self.run(DOING, "analyze staged").await?;
        Ok(fed)
    }

    /// Makes the accounts that are not there; how many.
    async fn accounts(&self) -> Result<u64, LoadError> {
        const DOING: &str = "make accounts";
        self.run(DOING, SEQUENCE).await?;
        let Accounts::Ids { add, prefix } = &self.options.accounts else {
            const MAKE: &str = "insert into tideline.users (handle)
                select handle from (select followee as handle from staged union select follower from staged) s
                where not exists (select from tideline.users u where u.handle = s.handle)
                order by length(handle), handle collate \"C\"
                on conflict do nothing";
            return self.execute(DOING, MAKE).await;
        };
        const MAKE: &str = "insert into tideline.users (id, handle)
            select id, $1::text || id from listed
            where not exists (select from tideline.users u where u.id = listed.id)
            order by id
            on conflict do nothing";
        const REFUSED: &str = "select min(id) from listed
            where not exists (select from tideline.users u where u.id = listed.id)";
        let listed = self.generated.map_or_else(
            || "select followee as id from staged union select follower from staged".to_owned(),
            |accounts| {
                format!("select {add} + n as id from generate_series(1::bigint, {accounts}) n")
            },
        );
        self.run(DOING, &format!("create temporary table listed as {listed}"))
            .await?;
        let made = self.client.execute(MAKE, &[prefix]).await;
        let made = made.map_err(failed(DOING))?;
        let refused = self.client.query_one(REFUSED, &[]).await;
        let refused = refused.and_then(|row| row.try_get::<_, Option<i64>>(0));
        if let Some(id) = refused.map_err(failed(DOING))? {
            let handle = format!("{prefix}{id}");
            return Err(LoadError::HandleTaken { id, handle });
        }
        self.run(DOING, SEQUENCE).await?;
        Ok(made)
    }

    /// Brings the edges into the order of the primary key, each once; how many.
    async fn sort(&self) -> Result<u64, LoadError> {
        const DOING: &str = "sort the edges";
        const BY_HANDLE: &str = "create temporary table edges as
            select distinct e.id as followee_id, r.id as follower_id
            from staged
                join tideline.users e on e.handle = staged.followee
                join tideline.users r on r.handle = staged.follower
            order by 1, 2";
        const BY_ID: &str = "create temporary table edges as
            select distinct followee as followee_id, follower as follower_id from staged order by 1, 2";
        let sql = match self.options.accounts {
            Accounts::Handles => BY_HANDLE,
            Accounts::Ids { .. } => BY_ID,
        };
        // The planner expects a tenth of the edges to be distinct, and would spill a hash table
        // before it sorts; nearly all are, and the sort alone finds the others.
        self.run(DOING, "set enable_hashagg = off").await?;
        let distinct = self.execute(DOING, sql).await?;
        self.run(
            DOING,
            "reset enable_hashagg; drop table staged; analyze edges",
        )
        .await?;
        Ok(distinct)
    }

    /// Makes the follows, batch by batch; how many are new.
    async fn follow(
        &self,
        distinct: u64,
        progress: &mut impl FnMut(Progress),
    ) -> Result<u64, LoadError> {
        const DOING: &str = "make follows";
        const PAGES: &str =
            "select pg_relation_size('edges') / current_setting('block_size')::bigint,
            tideline.clock_us()";
        let row = self
            .client
            .query_one(PAGES, &[])
            .await
            .map_err(failed(DOING))?;
        let pages: i64 = row.try_get(0).map_err(failed(DOING))?;
        let edge_us: i64 = row.try_get(1).map_err(failed(DOING))?;
        let pages = u64::try_from(pages).unwrap_or(0);
        // The sorted table is read in pieces of whole pages, in its order.
        let batches = distinct.div_ceil(self.options.batch.max(1)).max(1);
        let step = pages.div_ceil(batches).max(1);
        let mut made = 0;
        for first in (0..pages).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            progress(Progress::Following {
                edges: distinct * first / pages,
                of: distinct,
            });
            let sql = format!(
                "insert into tideline.follows (followee_id, follower_id, edge_us)
                select x.followee_id, x.follower_id, greatest({edge_us}, e.unfollow_us + 1)
                from edges x
                    left join tideline.follow_end e
                        on e.followee_id = x.followee_id and e.follower_id = x.follower_id
                where x.ctid >= '({first},0)' and x.ctid < '({},0)'
                on conflict do nothing",
                first + step
            );
            made += self.execute(DOING, &sql).await?;
        }
        progress(Progress::Following {
            edges: distinct,
            of: distinct,
        });
        Ok(made)
    }

    async fn run(&self, doing: &'static str, sql: &str) -> Result<(), LoadError> {
        self.client.batch_execute(sql).await.map_err(failed(doing))
    }

    async fn execute(&self, doing: &'static str, sql: &str) -> Result<u64, LoadError> {
        self.client.execute(sql, &[]).await.map_err(failed(doing))
    }
}

impl Meter {
    fn progress(&self) -> Progress {
        let all = self.all_bytes.load(Ordering::Relaxed);
        let read = self.bytes.load(Ordering::Relaxed);
        Progress::Reading {
            edges: self.edges.load(Ordering::Relaxed),
            share: (all > 0).then(|| read as f64 / all as f64),
        }
    }
}

fn failed(doing: &'static str) -> impl FnOnce(tokio_postgres::Error) -> LoadError {
    move |source| LoadError::Database { doing, source }
}
