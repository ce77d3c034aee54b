//! Reads one message: this file looks at the tag, one file per family reads
//! the rest.
//!
//! Nothing here indexes, and no count or length from the input reserves more
//! memory than the bytes that are left could fill.

mod logical;
mod relation;
mod tuple;
mod txn;

use bytes::Bytes;

use crate::{Cursor, DecodeError, Message};

impl Message {
    /// Reads one message of the plugin (`data` of [`crate::XLogData`]).
    ///
    /// Bytes behind the last known field are ignored.
    ///
    /// # Errors
    /// When the bytes end early or a field has an impossible value. Unknown
    /// tags are no error.
    pub fn decode(data: Bytes) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(data);
        let tag = cursor.u8("message tag")?;
        Ok(match tag {
            b'B' => Self::Begin(txn::begin(&mut cursor)?),
            b'C' => Self::Commit(txn::commit(&mut cursor)?),
            b'O' => Self::Origin(txn::origin(&mut cursor)?),
            b'R' => Self::Relation(relation::relation(&mut cursor)?),
            b'Y' => Self::Type(relation::type_name(&mut cursor)?),
            b'I' => Self::Insert(tuple::insert(&mut cursor)?),
            b'U' => Self::Update(tuple::update(&mut cursor)?),
            b'D' => Self::Delete(tuple::delete(&mut cursor)?),
            b'T' => Self::Truncate(relation::truncate(&mut cursor)?),
            b'M' => Self::Logical(logical::logical(&mut cursor)?),
            tag => Self::Unknown {
                tag,
                body: cursor.rest(),
            },
        })
    }
}
