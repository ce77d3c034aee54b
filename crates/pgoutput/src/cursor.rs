//! A checked reader over one payload.
//!
//! Every read names its field, so that an error can say what was being read
//! and where. Slices share the payload's memory. The crate `replication` uses
//! the same reader for the fields of wire messages.

use bytes::Bytes;

use crate::copy_data::PG_EPOCH_MICROS;
use crate::{DecodeError, Lsn};

/// A position in a payload that only moves forward, and only over bytes that
/// are there.
#[derive(Debug, Clone)]
pub struct Cursor {
    payload: Bytes,
    offset: usize,
}

macro_rules! integer {
    ($($(#[$doc:meta])* $name:ident: $type:ty;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// When fewer bytes are left.
        pub fn $name(&mut self, field: &'static str) -> Result<$type, DecodeError> {
            self.array(field).map(<$type>::from_be_bytes)
        }
    )*};
}

impl Cursor {
    /// Starts at the first byte of the payload.
    pub fn new(payload: Bytes) -> Self {
        Self { payload, offset: 0 }
    }

    /// How many bytes have been read.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.payload.len() - self.offset
    }

    integer! {
        /// Reads an unsigned byte.
        u8: u8;
        /// Reads a signed 16-bit integer.
        i16: i16;
        /// Reads an unsigned 32-bit integer.
        u32: u32;
        /// Reads a signed 32-bit integer.
        i32: i32;
        /// Reads an unsigned 64-bit integer.
        u64: u64;
        /// Reads a signed 64-bit integer.
        i64: i64;
    }

    /// Reads a log position.
    ///
    /// # Errors
    /// When fewer bytes are left.
    pub fn lsn(&mut self, field: &'static str) -> Result<Lsn, DecodeError> {
        self.u64(field).map(Lsn::new)
    }

    /// Reads a time of the Postgres epoch (2000-01-01) and answers it in
    /// microseconds of the Unix epoch. Saturates at the end of `i64`.
    ///
    /// # Errors
    /// When fewer bytes are left.
    pub fn micros(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        self.i64(field).map(|at| at.saturating_add(PG_EPOCH_MICROS))
    }

    /// Reads a 16-bit count of things that follow.
    ///
    /// # Errors
    /// When fewer bytes are left or the count is negative.
    pub fn count16(&mut self, field: &'static str) -> Result<usize, DecodeError> {
        let offset = self.offset;
        let value = self.i16(field)?;
        usize::try_from(value).map_err(|_| invalid(field, offset, value.into()))
    }

    /// Reads a 32-bit length or count of things that follow.
    ///
    /// # Errors
    /// When fewer bytes are left or the number is negative.
    pub fn count32(&mut self, field: &'static str) -> Result<usize, DecodeError> {
        let offset = self.offset;
        let value = self.i32(field)?;
        usize::try_from(value).map_err(|_| invalid(field, offset, value.into()))
    }

    /// Takes the next `length` bytes, without a copy.
    ///
    /// # Errors
    /// When fewer bytes are left.
    pub fn bytes(&mut self, field: &'static str, length: usize) -> Result<Bytes, DecodeError> {
        self.check(field, length)?;
        let taken = self.payload.slice(self.offset..self.offset + length);
        self.offset += length;
        Ok(taken)
    }

    /// Takes a 32-bit length and as many bytes, without a copy.
    ///
    /// # Errors
    /// When fewer bytes are left or the length is negative.
    pub fn counted_bytes(&mut self, field: &'static str) -> Result<Bytes, DecodeError> {
        let length = self.count32(field)?;
        self.bytes(field, length)
    }

    /// Takes a zero-terminated UTF-8 string.
    ///
    /// # Errors
    /// When no zero byte follows or the text is not UTF-8.
    pub fn c_string(&mut self, field: &'static str) -> Result<String, DecodeError> {
        let offset = self.offset;
        let bytes = self.c_bytes(field)?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(source) => Err(DecodeError::NotUtf8 {
                field,
                offset,
                source,
            }),
        }
    }

    /// Takes zero-terminated bytes, without the zero and without a copy.
    ///
    /// # Errors
    /// When no zero byte follows.
    pub fn c_bytes(&mut self, field: &'static str) -> Result<Bytes, DecodeError> {
        let left = self.payload.get(self.offset..).unwrap_or_default();
        let Some(length) = left.iter().position(|byte| *byte == 0) else {
            return Err(DecodeError::Unterminated {
                field,
                offset: self.offset,
            });
        };
        let text = self.bytes(field, length)?;
        self.offset += 1;
        Ok(text)
    }

    /// Takes everything that is left, without a copy.
    pub fn rest(mut self) -> Bytes {
        self.payload.split_off(self.offset)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let left = self.payload.get(self.offset..).unwrap_or_default();
        match left.first_chunk::<N>() {
            Some(array) => {
                self.offset += N;
                Ok(*array)
            }
            None => Err(self.truncated(field, N)),
        }
    }

    fn check(&self, field: &'static str, needed: usize) -> Result<(), DecodeError> {
        if needed > self.remaining() {
            return Err(self.truncated(field, needed));
        }
        Ok(())
    }

    fn truncated(&self, field: &'static str, needed: usize) -> DecodeError {
        DecodeError::Truncated {
            field,
            offset: self.offset,
            needed,
            left: self.remaining(),
        }
    }
}

/// A value that the protocol does not allow for the field.
pub(crate) fn invalid(field: &'static str, offset: usize, value: i64) -> DecodeError {
    DecodeError::Invalid {
        field,
        offset,
        value,
    }
}
