//! Bytes of logical replication to messages.
//!
//! ```text
//! CopyData payload ──CopyData::decode──> XLogData ──Message::decode──> Message
//!                                     └> Keepalive                       │
//!                                                    Relation ──> Relations (oid -> columns)
//!                                                    Insert   ──> Tuple of Cell ──> i64, &str, …
//! ```
//!
//! **Owns** the payloads inside CopyData frames (XLogData, keepalive, standby
//! status), the messages of the `pgoutput` plugin at protocol version 1 and the
//! values in their tuples. **Does not own** sockets, frames, clocks or any
//! decision: what a message means for delivery is for the relay to say.
//!
//! **Promise**: no input panics, no length field makes it allocate more than
//! the input justifies, and cell values are slices of the input without a
//! copy. What a later server may add is tolerated: unknown tags become
//! [`Message::Unknown`], bytes after the last known field are ignored.
//! Everything that cannot be read is a [`DecodeError`] naming field and offset.
//!
//! All times are microseconds of the Unix epoch, whatever the wire says.
//!
//! # Example
//!
//! ```
//! use bytes::Bytes;
//! use pgoutput::{CopyData, Lsn, Message};
//!
//! let mut payload = vec![b'w'];
//! payload.extend([0; 24]); // start, end, time
//! payload.extend(b"B\0\0\0\0\x01\x6b\x37\x48"); // Begin, final position
//! payload.extend(0_i64.to_be_bytes()); // commit time: 2000-01-01
//! payload.extend(742_u32.to_be_bytes()); // transaction id
//!
//! let CopyData::XLog(data) = CopyData::decode(Bytes::from(payload))? else {
//!     panic!("not XLogData");
//! };
//! let Message::Begin(begin) = Message::decode(data.data)? else {
//!     panic!("not Begin");
//! };
//! assert_eq!(begin.final_lsn, "0/16B3748".parse::<Lsn>()?);
//! assert_eq!(begin.xid, 742);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod copy_data;
mod cursor;
mod decode;
#[cfg(feature = "encode")]
mod encode;
mod error;
mod lsn;
mod message;
mod relations;
mod value;

pub use copy_data::{CopyData, Keepalive, PG_EPOCH_MICROS, StandbyStatus, XLogData};
pub use cursor::Cursor;
#[cfg(feature = "encode")]
pub use encode::EncodeError;
pub use error::{DecodeError, ValueError};
pub use lsn::{Lsn, ParseLsnError};
pub use message::{
    Begin, Cell, Column, Commit, Delete, Insert, LogicalMessage, Message, Oid, OldTuple, Origin,
    Relation, ReplicaIdentity, Truncate, Tuple, Type, Update,
};
pub use relations::{RelationChange, Relations};
