//! What each table looks like: the only state of the crate.
//!
//! Rows name their table by number, and the server describes a table once per
//! session before its first row and again whenever its caches were reset. A
//! repeated description is therefore normal (each VACUUM causes one) and only
//! a different one is a schema change. With a partitioned root in the
//! publication the server describes root *and* leaf, so rows must be looked up
//! by their own number, never by "the last description".
//!
//! Belongs to one connection: a new session starts empty. It grows with the
//! number of tables that the session has seen, not with rows.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Oid, Relation};

/// Tables of one session by number.
#[derive(Debug, Clone, Default)]
pub struct Relations {
    by_oid: HashMap<Oid, Arc<Relation>>,
}

/// What a description told us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelationChange {
    /// The first description of this table in the session.
    New,
    /// The same as before.
    Same,
    /// Different from before: columns, names or replica identity changed.
    Changed {
        /// What it was until now.
        before: Arc<Relation>,
    },
}

impl Relations {
    /// No tables: the start of a session.
    pub fn new() -> Self {
        Self::default()
    }

    /// Remembers a description and says whether it is news.
    pub fn insert(&mut self, relation: Relation) -> RelationChange {
        let known = self.by_oid.get(&relation.oid);
        if known.is_some_and(|known| **known == relation) {
            return RelationChange::Same;
        }
        match self.by_oid.insert(relation.oid, Arc::new(relation)) {
            Some(before) => RelationChange::Changed { before },
            None => RelationChange::New,
        }
    }

    /// The latest description of a table.
    pub fn get(&self, oid: Oid) -> Option<&Arc<Relation>> {
        self.by_oid.get(&oid)
    }

    /// How many tables are known.
    pub fn len(&self) -> usize {
        self.by_oid.len()
    }

    /// Whether no table is known.
    pub fn is_empty(&self) -> bool {
        self.by_oid.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, ReplicaIdentity};

    fn outbox(columns: &[&str]) -> Relation {
        let column = |name: &&str| Column {
            key: false,
            name: (*name).to_owned(),
            type_oid: 20,
            type_modifier: -1,
        };
        Relation {
            oid: 7,
            schema: "tideline".to_owned(),
            name: "outbox".to_owned(),
            identity: ReplicaIdentity::Default,
            columns: columns.iter().map(column).collect(),
        }
    }

    #[test]
    fn only_a_different_description_is_a_change() {
        let mut relations = Relations::new();
        assert_eq!(relations.insert(outbox(&["id"])), RelationChange::New);
        assert_eq!(relations.insert(outbox(&["id"])), RelationChange::Same);
        let changed = relations.insert(outbox(&["id", "key"]));
        let RelationChange::Changed { before } = changed else {
            panic!("{changed:?}")
        };
        assert_eq!(*before, outbox(&["id"]));
        assert_eq!(relations.get(7).unwrap().position("key"), Some(1));
        assert_eq!(relations.get(8), None);
        assert_eq!(relations.len(), 1);
    }
}
