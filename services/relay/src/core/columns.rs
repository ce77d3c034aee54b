//! Where the outbox's columns stand in the tuples of one table description, and reading a row.
//!
//! Owns the first half of rule 8: columns are found by name in the latest description of the row's
//! own table, and a missing required column is a schema error. What becomes of a row that was read
//! is decided in `events::route`.

use events::{EventId, route::OutboxRow};
use pgoutput::{Cell, Relation, Tuple};

/// Places of the columns that the relay reads. Every other column is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    id: usize,
    aggregate: usize,
    subject: usize,
    key: usize,
    type_name: usize,
    payload: usize,
    created_at: usize,
    traceparent: Option<usize>,
}

/// A required column is not in the table as the server describes it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("outbox table {schema}.{table} has no published column {column:?}")]
pub struct MissingColumn {
    /// Schema.
    pub schema: String,
    /// Table.
    pub table: String,
    /// The column.
    pub column: &'static str,
}

/// A row whose cells do not have the types that the outbox promises: the table has changed.
#[derive(Debug, thiserror::Error)]
#[error("reading column {column} of an outbox row")]
pub struct BadCell {
    column: &'static str,
    #[source]
    source: pgoutput::ValueError,
}

impl Columns {
    /// Finds the columns by name.
    ///
    /// # Errors
    /// The first required one that is missing.
    pub fn find(relation: &Relation) -> Result<Self, MissingColumn> {
        let required = |column| {
            relation.position(column).ok_or_else(|| MissingColumn {
                schema: relation.schema.clone(),
                table: relation.name.clone(),
                column,
            })
        };
        Ok(Self {
            id: required("id")?,
            aggregate: required("aggregatetype")?,
            subject: required("aggregateid")?,
            key: required("partition_key")?,
            type_name: required("type")?,
            payload: required("payload")?,
            created_at: required("created_at")?,
            traceparent: relation.position("traceparent"),
        })
    }

    /// Reads the cells of a row, without judging them.
    ///
    /// # Errors
    /// [`BadCell`] when the table is not what the relay was built for.
    pub fn read<'a>(&self, row: &'a Tuple) -> Result<OutboxRow<'a>, BadCell> {
        let cell = |position: usize| row.get(position).unwrap_or(&Cell::Null);
        let text = |position, column| {
            cell(position)
                .as_str()
                .map_err(|source| BadCell { column, source })
        };
        let id = cell(self.id).as_i64().map_err(|source| BadCell {
            column: "id",
            source,
        })?;
        Ok(OutboxRow {
            event: EventId(id),
            aggregate: text(self.aggregate, "aggregatetype")?,
            subject: text(self.subject, "aggregateid")?,
            type_name: text(self.type_name, "type")?,
            created_at: text(self.created_at, "created_at")?,
            key: cell(self.key).bytes(),
            payload: cell(self.payload).bytes(),
            traceparent: self.traceparent.and_then(|position| cell(position).bytes()),
        })
    }
}

/// Whether a described table is the outbox.
pub fn is_outbox(relation: &Relation) -> bool {
    relation.schema == "tideline" && relation.name == "outbox"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::model::{COLUMNS, cell, relation, row};

    fn find(names: &[&str]) -> Result<Columns, MissingColumn> {
        Columns::find(&relation(7, "tideline", "outbox", names))
    }

    fn shown(columns: &Columns, tuple: &Tuple) -> String {
        format!("{:?}", columns.read(tuple).unwrap())
    }

    #[test]
    fn columns_are_found_by_name() {
        let plain = shown(&find(&COLUMNS).unwrap(), &row(42, "9007"));
        assert!(
            plain.contains("EventId(42)") && plain.contains("9007"),
            "{plain}"
        );
        let mut names = COLUMNS.to_vec();
        names.reverse();
        names.insert(2, "something_new");
        let mut cells = row(42, "9007").cells;
        cells.reverse();
        cells.insert(2, cell("ignored"));
        assert_eq!(shown(&find(&names).unwrap(), &Tuple { cells }), plain);
        for missing in COLUMNS {
            let names: Vec<_> = COLUMNS
                .into_iter()
                .filter(|name| *name != missing)
                .collect();
            match missing {
                "traceparent" => assert!(find(&names).is_ok(), "optional"),
                _ => assert_eq!(find(&names).unwrap_err().column, missing),
            }
        }
    }

    #[test]
    fn nulls_are_not_empty() {
        let mut tuple = row(42, "9007");
        for cell in &mut tuple.cells[3..=5] {
            // Partition key, type, payload.
            if cell
                .as_str()
                .is_ok_and(|text| !text.starts_with("tideline"))
            {
                *cell = Cell::Null;
            }
        }
        let columns = find(&COLUMNS).unwrap();
        let row = columns.read(&tuple).unwrap();
        assert_eq!((row.key, row.payload, row.traceparent), (None, None, None));
    }

    #[test]
    fn a_cell_of_another_type_is_a_schema_error() {
        let mut tuple = row(42, "9007");
        tuple.cells[0] = cell("abc");
        let error = find(&COLUMNS).unwrap().read(&tuple).unwrap_err();
        assert!(error.to_string().contains("id"), "{error}");
    }
}
