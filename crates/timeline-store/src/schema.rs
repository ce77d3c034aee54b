//! The schema runner: numbered files, applied once, by one starter at a time.
//!
//! Owns the keyspace, the tables `schema_version` and `schema_lock`, and the order of the files
//! in `schemas/cql`. [`migrate`] is for `tideline migrate` and for tests; services only verify
//! (when they connect) and wait.
//!
//! Failure promise: any number of starters, stopped at any point and started again, end with the
//! same schema. The lock is a row with an expiry, so a dead holder does not hold it for ever;
//! every statement is `IF NOT EXISTS`, so two holders after such an expiry do no harm either.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use scylla::client::session::Session;
use scylla::response::query_result::QueryRowsResult;
use scylla::serialize::row::SerializeRow;
use tokio::time::{Instant, sleep};

use crate::cql::{check_keyspace, open};
use crate::error::{Operation, StoreError};

/// The files, in order: version, name, text.
const MIGRATIONS: &[(i32, &str, &str)] = &[(
    1,
    "timelines",
    include_str!("../../../schemas/cql/0001_timelines.cql"),
)];

/// The version this program needs.
const NEEDED: i32 = 1;

/// How long one statement may take: schema changes wait for the disk and for other nodes.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// When the lock of a dead holder is free again.
const LOCK_EXPIRY: Duration = Duration::from_secs(120);

/// How long to wait for the lock: a whole expiry and a little.
const LOCK_PATIENCE: Duration = Duration::from_secs(150);

/// How often to ask for the lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(250);

/// What a migration did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrated {
    /// Files applied now.
    pub applied: usize,
    /// The version after it.
    pub version: i32,
}

/// What was found in a keyspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) version: i32,
    pub(crate) gc_grace: Duration,
}

/// Makes the keyspace, if it is not there, and brings its schema to the newest version.
/// A keyspace that is there keeps its replication. Returns when all nodes agree.
///
/// # Errors
/// A bad name, no server, no rights, another starter that does not finish, or no agreement. It
/// may be called again.
///
/// # Cancel safety
/// A lock taken is held until its expiry of two minutes.
pub fn migrate<'a>(
    nodes: &'a [String],
    keyspace: &'a str,
    replication_factor: u32,
) -> BoxFuture<'a, Result<Migrated, StoreError>> {
    migrate_here(nodes, keyspace, replication_factor).boxed()
}

async fn migrate_here(
    nodes: &[String],
    keyspace: &str,
    replication_factor: u32,
) -> Result<Migrated, StoreError> {
    check_keyspace(keyspace)?;
    if replication_factor == 0 {
        return Err(StoreError::Setting {
            reason: "replication factor is 0".to_owned(),
        });
    }
    let session = open(nodes, STATEMENT_TIMEOUT).await?;
    prepare_keyspace(&session, keyspace, replication_factor).await?;
    if let Ok(found) = verify(&session, keyspace).await {
        return Ok(Migrated {
            applied: 0,
            version: found.version,
        });
    }
    let holder = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
    take_lock(&session, keyspace, &holder).await?;
    let applied = apply_all(&session, keyspace).await;
    // An error of the work says more than one of the release, and the lock expires anyway.
    let released = release_lock(&session, keyspace, &holder).await;
    let applied = applied?;
    released?;
    let version = version(&session, keyspace).await?;
    tracing::info!(
        keyspace,
        version,
        applied,
        "schema of the timeline store is in place"
    );
    Ok(Migrated { applied, version })
}

/// Drops a keyspace with every timeline in it, if it is there. For deployments that were made to be
/// thrown away: demos and tests.
///
/// # Errors
/// A bad name, no server, no rights.
pub fn remove<'a>(nodes: &'a [String], keyspace: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
    remove_here(nodes, keyspace).boxed()
}

async fn remove_here(nodes: &[String], keyspace: &str) -> Result<(), StoreError> {
    check_keyspace(keyspace)?;
    let session = open(nodes, STATEMENT_TIMEOUT).await?;
    run(&session, &format!("DROP KEYSPACE IF EXISTS {keyspace}"), ()).await
}

/// Checks that the schema is there and new enough. A newer one is fine: files only add.
pub(crate) async fn verify(session: &Session, keyspace: &str) -> Result<Found, StoreError> {
    let behind = |found| StoreError::SchemaBehind {
        keyspace: keyspace.to_owned(),
        found,
        needed: NEEDED,
    };
    if table_gc_grace(session, keyspace, "schema_version")
        .await?
        .is_none()
    {
        return Err(behind(0));
    }
    let found = version(session, keyspace).await?;
    let gc_grace = table_gc_grace(session, keyspace, "timelines").await?;
    match gc_grace {
        Some(gc_grace) if found >= NEEDED => Ok(Found {
            version: found,
            gc_grace,
        }),
        _ => Err(behind(found)),
    }
}

/// The keyspace and the two tables of the runner. They come before the lock, which is in one of
/// them; `IF NOT EXISTS` and the agreement make that safe.
async fn prepare_keyspace(
    session: &Session,
    keyspace: &str,
    replication_factor: u32,
) -> Result<(), StoreError> {
    if table_gc_grace(session, keyspace, "schema_lock")
        .await?
        .is_some()
    {
        return agree(session).await;
    }
    for statement in [
        format!(
            "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = \
             {{'class': 'NetworkTopologyStrategy', 'replication_factor': {replication_factor}}}"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {keyspace}.schema_version \
             (component text, version int, name text, PRIMARY KEY (component, version))"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {keyspace}.schema_lock \
             (name text PRIMARY KEY, holder text)"
        ),
    ] {
        run(session, &statement, ()).await?;
    }
    agree(session).await
}

async fn apply_all(session: &Session, keyspace: &str) -> Result<usize, StoreError> {
    // Asked again under the lock: the holder before may have done the work.
    let present = version(session, keyspace).await?;
    let mut applied = 0;
    for (number, name, text) in MIGRATIONS.iter().filter(|(number, ..)| *number > present) {
        use_keyspace(session, keyspace).await?;
        for statement in statements(text) {
            run(session, &statement, ()).await?;
        }
        agree(session).await?;
        let insert = format!(
            "INSERT INTO {keyspace}.schema_version (component, version, name) \
             VALUES ('timelines', ?, ?)"
        );
        run(session, &insert, (number, name)).await?;
        applied += 1;
    }
    Ok(applied)
}

/// Cuts a file into statements: comments go, a semicolon ends one.
fn statements(text: &str) -> Vec<String> {
    let without_comments: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"))
        .collect();
    without_comments
        .join("\n")
        .split(';')
        .map(str::trim)
        .filter(|statement| !statement.is_empty())
        .map(str::to_owned)
        .collect()
}

async fn take_lock(session: &Session, keyspace: &str, holder: &str) -> Result<(), StoreError> {
    let insert = format!(
        "INSERT INTO {keyspace}.schema_lock (name, holder) VALUES ('migrate', ?) \
         IF NOT EXISTS USING TTL {}",
        LOCK_EXPIRY.as_secs()
    );
    let select = format!("SELECT holder FROM {keyspace}.schema_lock WHERE name = 'migrate'");
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        query(session, &insert, (holder,)).await?;
        // Read it back instead of looking at the answer: its columns differ between the two
        // servers, and after a timeout only the row tells who won.
        let present = query(session, &select, ()).await?;
        let present = present.maybe_first_row::<(String,)>();
        let present = present.map_err(StoreError::answer(Operation::Migrate))?;
        match present {
            Some((present,)) if present == holder => return Ok(()),
            Some((present,)) if Instant::now() >= deadline => {
                return Err(StoreError::SchemaLocked {
                    keyspace: keyspace.to_owned(),
                    holder: present,
                    after: LOCK_PATIENCE,
                });
            }
            Some(_) | None => sleep(LOCK_INTERVAL).await,
        }
    }
}

async fn release_lock(session: &Session, keyspace: &str, holder: &str) -> Result<(), StoreError> {
    let delete = format!("DELETE FROM {keyspace}.schema_lock WHERE name = 'migrate' IF holder = ?");
    query(session, &delete, (holder,)).await.map(drop)
}

async fn version(session: &Session, keyspace: &str) -> Result<i32, StoreError> {
    let select =
        format!("SELECT version FROM {keyspace}.schema_version WHERE component = 'timelines'");
    let answer = query(session, &select, ()).await?;
    let mut newest = 0;
    for row in answer
        .rows::<(i32,)>()
        .map_err(StoreError::answer(Operation::Verify))?
    {
        let (version,) = row.map_err(StoreError::answer(Operation::Verify))?;
        newest = newest.max(version);
    }
    Ok(newest)
}

/// Returns the `gc_grace_seconds` of a table, or `None` if there is no such table.
async fn table_gc_grace(
    session: &Session,
    keyspace: &str,
    table: &str,
) -> Result<Option<Duration>, StoreError> {
    let select = "SELECT gc_grace_seconds FROM system_schema.tables \
                  WHERE keyspace_name = ? AND table_name = ?";
    let answer = query(session, select, (keyspace, table)).await?;
    let row = answer
        .maybe_first_row::<(i32,)>()
        .map_err(StoreError::answer(Operation::Verify))?;
    Ok(row.map(|(seconds,)| Duration::from_secs(u64::try_from(seconds).unwrap_or_default())))
}

async fn use_keyspace(session: &Session, keyspace: &str) -> Result<(), StoreError> {
    session
        .use_keyspace(keyspace, false)
        .await
        .map_err(|error| StoreError::execute(Operation::Migrate)(error.into()))
}

async fn agree(session: &Session) -> Result<(), StoreError> {
    session
        .await_schema_agreement()
        .await
        .map(drop)
        .map_err(|source| StoreError::Agreement {
            source: Box::new(source),
        })
}

/// Executes a statement that answers nothing.
async fn run(
    session: &Session,
    statement: &str,
    values: impl SerializeRow,
) -> Result<(), StoreError> {
    session
        .query_unpaged(statement, values)
        .await
        .map(drop)
        .map_err(StoreError::execute(Operation::Migrate))
}

/// Executes a statement that answers rows.
async fn query(
    session: &Session,
    statement: &str,
    values: impl SerializeRow,
) -> Result<QueryRowsResult, StoreError> {
    session
        .query_unpaged(statement, values)
        .await
        .map_err(StoreError::execute(Operation::Verify))?
        .into_rows_result()
        .map_err(StoreError::answer(Operation::Verify))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_needed_version_is_the_last_file() {
        assert_eq!(MIGRATIONS.last().map(|(number, ..)| *number), Some(NEEDED));
        assert!(MIGRATIONS.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn files_are_cut_into_statements_without_comments() {
        assert_eq!(statements("-- a;\nCREATE x\n;\n-- b\n"), ["CREATE x"]);
        for (_, name, text) in MIGRATIONS {
            let all = statements(text);
            assert!(!all.is_empty(), "{name}");
            assert!(all.iter().all(|s| s.contains("IF NOT EXISTS")), "{name}");
        }
    }
}
