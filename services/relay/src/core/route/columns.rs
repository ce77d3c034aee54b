//! Where the outbox's columns stand in the tuples of one table description.

use pgoutput::Relation;

/// Places of the columns that the relay reads. Every other column is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    pub(in crate::core::route) id: usize,
    pub(in crate::core::route) aggregate: usize,
    pub(in crate::core::route) subject: usize,
    pub(in crate::core::route) key: usize,
    pub(in crate::core::route) type_name: usize,
    pub(in crate::core::route) payload: usize,
    pub(in crate::core::route) created_at: usize,
    pub(in crate::core::route) traceparent: Option<usize>,
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
}
