//! Brings a database to the schema that is compiled in, once, under a lock.
//!
//! Owns: creating the database, the versions (`schemas/postgres`), the outbox days, the
//! publication, the first epoch and the slot. Only the operator's command runs it; services call
//! [`verify`].
//!
//! Promise: doing it again changes nothing; two at once do it one after the other; after a failure
//! in the middle, doing it again completes it. A slot that the relay has used and that is gone is
//! not made anew: what it missed is for the relay and the sweep to decide, so it is reported.

mod session;

use refinery::{Migration, Runner};

use crate::{
    Error, Pool,
    outbox::{self, Days},
    pool, slots,
    statement::{self, column},
};
use session::Session;

/// Where the applied versions are noted.
const HISTORY: &str = "tideline.schema_history";

/// The lock that migrations of one database take; the text of "tideline" as a number.
const LOCK: i64 = 0x7469_6465_6c69_6e65;

/// Outbox days made behind today: for a clock that steps back over midnight. The sweep, which knows
/// the retention, makes the others.
const DAYS_BEHIND: u32 = 1;

/// Version, name and text of each migration, in order.
const VERSIONS: [(i32, &str, &str); 3] = [
    (
        1,
        "V1__delivery",
        include_str!("../../../../schemas/postgres/0001_delivery.sql"),
    ),
    (
        2,
        "V2__account",
        include_str!("../../../../schemas/postgres/0002_account.sql"),
    ),
    (
        3,
        "V3__ledger_blocks",
        include_str!("../../../../schemas/postgres/0003_ledger_blocks.sql"),
    ),
];

/// What to migrate.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// The database; made when the server lacks it. May hold a password.
    pub url: &'a str,
    /// The relay's slot.
    pub slot: &'a str,
    /// The relay's publication.
    pub publication: &'a str,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The database was made.
    pub database_created: bool,
    /// Versions applied now.
    pub applied: Vec<String>,
    /// Outbox days.
    pub days: Days,
    /// The publication was made.
    pub publication_created: bool,
    /// The first epoch was begun.
    pub epoch_started: bool,
    /// The slot.
    pub slot: SlotOutcome,
}

/// What was done about the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotOutcome {
    /// Made now.
    Created,
    /// It was there.
    Present,
    /// The relay has used one of this name, and it is gone: left to the relay.
    Lost,
}

/// Migrates.
///
/// # Errors
/// See [`Error::class`]. [`events::Class::Outage`] and [`events::Class::Unsure`]: do it again.
pub async fn migrate(options: &Options<'_>) -> Result<Report, Error> {
    check_name("slot", options.slot)?;
    check_name("publication", options.publication)?;
    let (mut session, database_created) =
        Session::open_or_create(&pool::parse(options.url)?).await?;
    session
        .run(
            "wait for the migration lock",
            &format!("select pg_advisory_lock({LOCK})"),
        )
        .await?;
    let applied = apply(&mut session).await?;
    let report = Report {
        database_created,
        applied,
        days: days(options.url).await?,
        publication_created: ensure_publication(&session, options.publication).await?,
        epoch_started: ensure_epoch(&session).await?,
        slot: ensure_slot(&session, options.slot).await?,
    };
    // The lock goes with the session.
    Ok(report)
}

/// Whether the database has at least the schema that is compiled in. A newer one is fine: changes
/// are expanded before they are contracted.
///
/// # Errors
/// [`Error::NotMigrated`] when it is older, or the database is not there yet; else see
/// [`Error::class`].
pub async fn verify(pool: &Pool) -> Result<(), Error> {
    const TABLE: &str = "select to_regclass('tideline.schema_history') is not null";
    const VERSION: &str = "select coalesce(max(version), 0)::integer from tideline.schema_history";
    let expected = VERSIONS
        .iter()
        .map(|(version, ..)| *version)
        .max()
        .unwrap_or(0);
    let client = match pool.get().await {
        Ok(client) => client,
        Err(error)
            if error.sql_state()
                == Some(&tokio_postgres::error::SqlState::INVALID_CATALOG_NAME) =>
        {
            return Err(Error::NotMigrated { found: 0, expected });
        }
        Err(error) => return Err(error),
    };
    let has_table: bool = column(
        &statement::one(&client, "look for the schema history", TABLE, &[]).await?,
        0,
    )?;
    let found = if has_table {
        column(
            &statement::one(&client, "read the schema version", VERSION, &[]).await?,
            0,
        )?
    } else {
        0
    };
    if found < expected {
        Err(Error::NotMigrated { found, expected })
    } else {
        Ok(())
    }
}

async fn apply(session: &mut Session) -> Result<Vec<String>, Error> {
    session
        .run("create the schema", "create schema if not exists tideline")
        .await?;
    let migrations = VERSIONS
        .iter()
        .map(|(_, name, sql)| Migration::unapplied(name, sql))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|source| Error::Migration {
            source: Box::new(source),
        })?;
    let mut runner = Runner::new(&migrations);
    runner.set_migration_table_name(HISTORY);
    let report = runner
        .run_async(session.client())
        .await
        .map_err(|source| Error::Migration {
            source: Box::new(source),
        })?;
    Ok(report
        .applied_migrations()
        .iter()
        .map(ToString::to_string)
        .collect())
}

/// Each day commits on its own, so this needs no more than a plain connection.
async fn days(url: &str) -> Result<Days, Error> {
    let pool = Pool::new(url, 1, "tideline migrate")?;
    let client = pool.get().await?;
    outbox::ensure_days(&client, DAYS_BEHIND).await
}

async fn ensure_publication(session: &Session, name: &str) -> Result<bool, Error> {
    let exists = format!("select exists (select from pg_publication where pubname = '{name}')");
    if session.flag("look for the publication", &exists).await? {
        return Ok(false);
    }
    let create = format!(
        "create publication \"{name}\" for table tideline.outbox \
         with (publish = 'insert', publish_via_partition_root = true)"
    );
    session.run("create the publication", &create).await?;
    Ok(true)
}

async fn ensure_epoch(session: &Session) -> Result<bool, Error> {
    // pg_walfile_name() knows the timeline at once; pg_control_checkpoint() only after the next
    // checkpoint.
    const INSERT: &str = "with started as (
            insert into tideline.epoch (epoch, system_id, pg_timeline)
            select 1, system_identifier::text,
                ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint
            from pg_control_system() where not exists (select from tideline.epoch)
            returning epoch
        ) select exists (select from started)";
    session.flag("begin the first epoch", INSERT).await
}

async fn ensure_slot(session: &Session, name: &str) -> Result<SlotOutcome, Error> {
    let exists =
        format!("select exists (select from pg_replication_slots where slot_name = '{name}')");
    if session.flag("look for the slot", &exists).await? {
        return Ok(SlotOutcome::Present);
    }
    let used = format!("select exists (select from tideline.relay_position where slot = '{name}')");
    if session.flag("look for the relay position", &used).await? {
        return Ok(SlotOutcome::Lost);
    }
    let version = "select current_setting('server_version_num')::integer >= 170000";
    let failover = session.flag("read the server version", version).await?;
    let create = slots::create_sql(failover).replace("$1", &format!("'{name}'"));
    session.run("create the slot", &create).await?;
    Ok(SlotOutcome::Created)
}

/// The form that Postgres asks of slot names (manual, "Replication Slots"). It needs no quoting,
/// and publications get by with it too.
fn check_name(what: &'static str, name: &str) -> Result<(), Error> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if (1..=63).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(Error::Name {
        what,
        name: name.to_owned(),
    })
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("slot", &self.slot)
            .field("publication", &self.publication)
            .finish_non_exhaustive()
    }
}
