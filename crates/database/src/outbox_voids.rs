//! Gaps: ids that no row has been seen for. Notes for metrics, and for not reading the same nothing
//! every round; claims and drops never read them, so a row that exists always beats a note.

use std::collections::HashMap;

use events::{IdRanges, Micros};

use crate::{
    Client, Error, delivery_ledger,
    statement::{self, column},
};

/// A noted gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Void {
    /// The number of the note.
    pub entry: i64,
    /// The ids.
    pub ids: IdRanges,
    /// Every transaction that had an xid when the gap was noted has a lower one than this.
    pub xmax_seen: u64,
    /// When it was noted.
    pub seen_us: Micros,
}

/// Where the server's transactions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Every transaction below has ended.
    pub xmin: u64,
    /// Every transaction from here on was running or still to come. Not a bound for those that
    /// have begun: running ones may lie above.
    pub xmax: u64,
    /// The server's time.
    pub now_us: Micros,
}

/// Notes gaps, with where the server's transactions are now. No ids, no note.
///
/// # Errors
/// See [`Error::class`].
pub async fn note(client: &Client, ids: &IdRanges) -> Result<(), Error> {
    // The note's own xid: the newest that was given out. pg_snapshot_xmax() is only above the
    // newest that has *ended*; the transaction that drew these ids may be running above it.
    const SQL: &str = "insert into tideline.outbox_void (ids, xmax_seen)
        select $1::text::int8multirange, pg_current_xact_id()";
    if ids.is_empty() {
        return Ok(());
    }
    statement::execute(client, "note gaps", SQL, &[&ids.to_string()])
        .await
        .map(drop)
}

/// All notes, oldest first.
///
/// # Errors
/// See [`Error::class`].
pub async fn list(client: &Client) -> Result<Vec<Void>, Error> {
    let mut mirror = Mirror::default();
    mirror.refresh(client).await?;
    Ok(mirror.voids)
}

/// The notes held in memory, brought up to date by reading only new ones: a note is made and
/// deleted, and never changed. What is held is of one server since its start, so that no other
/// note has the number and the transaction of one that is held.
#[derive(Debug, Default)]
pub struct Mirror {
    started_us: i64,
    voids: Vec<Void>,
}

impl Mirror {
    /// Reads what has changed; everything at the first time, and after a start of the server.
    ///
    /// # Errors
    /// See [`Error::class`].
    ///
    /// # Cancel safety
    /// Safe: what was known is known still, or nothing is.
    pub async fn refresh(&mut self, client: &Client) -> Result<(), Error> {
        const SQL: &str = "select v.entry, v.xmax_seen::text, tideline.micros(v.seen_at),
                server.started_us, case when known.entry is null then v.ids::text end
            from tideline.outbox_void v
            cross join (select tideline.micros(pg_postmaster_start_time()) as started_us offset 0) as server
            left join unnest($1::bigint[], $2::text[]) as known (entry, xmax_seen)
                on known.entry = v.entry and known.xmax_seen = v.xmax_seen::text
                and server.started_us = $3
            order by v.entry";
        let (entries, xids): (Vec<i64>, Vec<String>) = self
            .voids
            .iter()
            .map(|void| (void.entry, void.xmax_seen.to_string()))
            .unzip();
        let params: statement::Params<'_> = &[&entries, &xids, &self.started_us];
        let rows = statement::all(client, "read noted gaps", SQL, params).await?;
        let before = std::mem::take(self).voids;
        let mut known: HashMap<i64, IdRanges> = before
            .into_iter()
            .map(|void| (void.entry, void.ids))
            .collect();
        for row in &rows {
            let entry = column(row, 0)?;
            let ids = match column::<Option<&str>>(row, 4)? {
                Some(text) => delivery_ledger::parse(text)?,
                None => known.remove(&entry).ok_or(Error::Value {
                    what: "a note that was read before",
                })?,
            };
            self.started_us = column(row, 3)?;
            self.voids.push(Void {
                entry,
                ids,
                xmax_seen: xid(column(row, 1)?)?,
                seen_us: Micros(column(row, 2)?),
            });
        }
        Ok(())
    }

    /// The notes of the last [`Mirror::refresh`], oldest first.
    pub fn voids(&self) -> &[Void] {
        &self.voids
    }
}

/// Deletes notes.
///
/// # Errors
/// See [`Error::class`].
pub async fn forget(client: &Client, entries: &[i64]) -> Result<(), Error> {
    const SQL: &str = "delete from tideline.outbox_void where entry = any($1)";
    statement::execute(client, "delete noted gaps", SQL, &[&entries])
        .await
        .map(drop)
}

/// Where the server's transactions are now.
///
/// # Errors
/// See [`Error::class`].
pub async fn snapshot(client: &Client) -> Result<Snapshot, Error> {
    const SQL: &str =
        "select pg_snapshot_xmin(s)::text, pg_snapshot_xmax(s)::text, tideline.clock_us()
        from pg_current_snapshot() as s";
    let row = statement::one(client, "read the snapshot", SQL, &[]).await?;
    Ok(Snapshot {
        xmin: xid(column(&row, 0)?)?,
        xmax: xid(column(&row, 1)?)?,
        now_us: Micros(column(&row, 2)?),
    })
}

/// The driver knows no xid8, so it comes as text.
fn xid(text: &str) -> Result<u64, Error> {
    text.parse().map_err(|_| Error::Value { what: "an xid8" })
}
