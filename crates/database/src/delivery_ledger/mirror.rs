//! The ledger's rows held in memory, brought up to date by reading only what has changed.
//!
//! Owns when a row that is held is still the row of the table. It is while its number and the
//! transaction that wrote it are the same, on a server that has not been started anew: whoever
//! enters, folds or takes ids out makes a row with another number or another transaction. So the
//! answers are those of reading every row again, whatever was done meanwhile and by whom.
//!
//! Promise: one statement, one snapshot. A failure leaves nothing half known: what is not sure is
//! read again.

use std::collections::HashMap;

use events::{IdRanges, Stage};

use super::parse;
use crate::{
    Client, Error, stages,
    statement::{self, column},
};

/// All rows of the ledger.
#[derive(Debug, Default)]
pub struct Mirror {
    /// When the server was started that the rows are of, Unix microseconds.
    started_us: i64,
    rows: HashMap<i64, Row>,
    passed: [IdRanges; Stage::ALL.len()],
}

/// A row by its number.
#[derive(Debug)]
struct Row {
    stage: String,
    /// The transaction that wrote it, in 32 bits.
    version: i64,
    ids: IdRanges,
}

impl Mirror {
    /// Reads what has changed; everything at the first time, and after a start of the server.
    /// Answers how many rows were read.
    ///
    /// # Errors
    /// See [`Error::class`].
    ///
    /// # Cancel safety
    /// Safe: what was known is known still, or nothing is.
    pub async fn refresh(&mut self, client: &Client) -> Result<usize, Error> {
        const SQL: &str = "select l.entry, l.stage, l.xmin::text::bigint, server.started_us,
                case when known.entry is null then l.ids::text end
            from tideline.delivery_ledger l
            cross join (select tideline.micros(pg_postmaster_start_time()) as started_us offset 0) as server
            left join unnest($1::bigint[], $2::bigint[]) as known (entry, version)
                on known.entry = l.entry and known.version = l.xmin::text::bigint
                and server.started_us = $3";
        let (entries, versions): (Vec<i64>, Vec<i64>) = self
            .rows
            .iter()
            .map(|(entry, row)| (*entry, row.version))
            .unzip();
        let params: statement::Params<'_> = &[&entries, &versions, &self.started_us];
        let found = statement::all(client, "read changes of the ledger", SQL, params).await?;
        // Held again only as a whole.
        let mut before = std::mem::take(self);
        let mut after = Self::default();
        let mut read = 0;
        for row in &found {
            let entry = column(row, 0)?;
            after.started_us = column(row, 3)?;
            let row = match column::<Option<&str>>(row, 4)? {
                Some(ids) => {
                    read += 1;
                    Row {
                        stage: column(row, 1)?,
                        version: column(row, 2)?,
                        ids: parse(ids)?,
                    }
                }
                None => before.rows.remove(&entry).ok_or(Error::Value {
                    what: "a row of the ledger that was read before",
                })?,
            };
            after.rows.insert(entry, row);
        }
        after.passed = if read == 0 && before.rows.is_empty() {
            before.passed
        } else {
            Stage::ALL.map(|stage| after.union(&stages::implying(stage)))
        };
        *self = after;
        Ok(read)
    }

    /// The ids that had passed the stage at the last [`Mirror::refresh`], as
    /// [`super::ranges`] answers them. Delivered ids have been published too.
    pub fn passed(&self, stage: Stage) -> &IdRanges {
        let [published, delivered] = &self.passed;
        match stage {
            Stage::Published => published,
            Stage::Delivered => delivered,
        }
    }

    fn union(&self, stages: &[&str]) -> IdRanges {
        let rows = self.rows.values();
        let of_stages = rows.filter(|row| stages.contains(&row.stage.as_str()));
        IdRanges::from_ranges(of_stages.flat_map(|row| row.ids.iter()))
    }
}
