//! The messages of the plugin `pgoutput` at protocol version 1 (manual, chapter
//! "Logical Replication Message Formats").
//!
//! Plain data; `decode/` reads it, `encode.rs` writes it. One message travels
//! in one CopyData payload.

use bytes::Bytes;

use crate::Lsn;

/// The number by which the server knows a table or type.
pub type Oid = u32;

/// One message of the plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A transaction starts; its rows follow up to its [`Commit`].
    Begin(Begin),
    /// The transaction's last message.
    Commit(Commit),
    /// The transaction was replayed here from another server.
    Origin(Origin),
    /// The columns of a table, before its first row in the session and again
    /// after each ALTER, VACUUM or ANALYZE.
    Relation(Relation),
    /// The name of a type that is not built in.
    Type(Type),
    /// A new row.
    Insert(Insert),
    /// A changed row.
    Update(Update),
    /// A removed row.
    Delete(Delete),
    /// Emptied tables.
    Truncate(Truncate),
    /// Bytes from `pg_logical_emit_message`.
    Logical(LogicalMessage),
    /// A tag this decoder does not know: the streamed and two-phase
    /// transactions of protocol version 2 and 3, which are never asked for, or
    /// something a later server added. Count it and go on.
    Unknown {
        /// The first byte of the message.
        tag: u8,
        /// The bytes behind it.
        body: Bytes,
    },
}

/// Start of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begin {
    /// Position of the transaction's commit record.
    pub final_lsn: Lsn,
    /// When it committed, Unix microseconds.
    pub commit_time: i64,
    /// Its transaction id.
    pub xid: u32,
}

/// End of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// Position of the commit record; equals `final_lsn` of the Begin.
    pub commit_lsn: Lsn,
    /// First position behind the transaction: what may be confirmed once all
    /// its rows are safe.
    pub end_lsn: Lsn,
    /// When it committed, Unix microseconds.
    pub commit_time: i64,
}

/// Where a replayed transaction came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Position of the commit on the origin server.
    pub commit_lsn: Lsn,
    /// Name of the origin.
    pub name: String,
}

/// The shape of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// The number that rows refer to.
    pub oid: Oid,
    /// Schema; empty means `pg_catalog`.
    pub schema: String,
    /// Table name.
    pub name: String,
    /// What updates and deletes say about the old row.
    pub identity: ReplicaIdentity,
    /// The published columns in the order of the tuples; may be fewer than the
    /// table has.
    pub columns: Vec<Column>,
}

impl Relation {
    /// The place of a column in this table's tuples.
    pub fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|each| each.name == column)
    }
}

/// One column of a [`Relation`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Whether it is part of the replica identity's key.
    pub key: bool,
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_oid: Oid,
    /// Its type modifier (`atttypmod`), -1 for none.
    pub type_modifier: i32,
}

/// What updates and deletes of a table carry of the old row (`relreplident`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaIdentity {
    /// The primary key.
    Default,
    /// Nothing.
    Nothing,
    /// The whole row.
    Full,
    /// The columns of a unique index.
    Index,
    /// A letter this decoder does not know.
    Other(u8),
}

/// The name of a type that is not built in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// The number that columns refer to.
    pub oid: Oid,
    /// Schema; empty means `pg_catalog`.
    pub schema: String,
    /// Type name.
    pub name: String,
}

/// A new row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insert {
    /// Its table.
    pub relation: Oid,
    /// Its values.
    pub new: Tuple,
}

/// A changed row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// Its table.
    pub relation: Oid,
    /// The row before, if its key changed or the replica identity is full.
    pub old: Option<OldTuple>,
    /// The row after; large values that did not change may be missing
    /// ([`Cell::Unchanged`]).
    pub new: Tuple,
}

/// A removed row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    /// Its table.
    pub relation: Oid,
    /// What identifies it.
    pub old: OldTuple,
}

/// A row before its change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OldTuple {
    /// Only the columns of the key have values.
    Key(Tuple),
    /// All columns have values.
    Full(Tuple),
}

/// Emptied tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncate {
    /// `TRUNCATE … CASCADE`.
    pub cascade: bool,
    /// `TRUNCATE … RESTART IDENTITY`.
    pub restart_identity: bool,
    /// The tables.
    pub relations: Vec<Oid>,
}

/// Bytes from `pg_logical_emit_message`; sent only when START_REPLICATION asks
/// for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogicalMessage {
    /// Whether it stands inside a Begin and Commit; if not, it arrives between
    /// transactions and at once.
    pub transactional: bool,
    /// Its position.
    pub lsn: Lsn,
    /// Who it is for.
    pub prefix: String,
    /// What it says.
    pub content: Bytes,
}

/// The values of a row, in the order of its [`Relation`]'s columns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tuple {
    /// One cell per column.
    pub cells: Vec<Cell>,
}

impl Tuple {
    /// The cell at a place that [`Relation::position`] gave.
    pub fn get(&self, position: usize) -> Option<&Cell> {
        self.cells.get(position)
    }
}

/// One value. The bytes are a slice of the message. `value.rs` reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// SQL null.
    Null,
    /// A large value that an update did not touch and the server did not send.
    Unchanged,
    /// The text form of the type.
    Text(Bytes),
    /// The binary form of the type; only sent when asked for.
    Binary(Bytes),
}
