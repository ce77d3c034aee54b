//! Simple queries: a text goes out, rows of text come back.
//!
//! Meant for a handful of small answers (IDENTIFY_SYSTEM, SHOW, slot checks);
//! anything larger belongs to an ordinary connection.

use std::sync::Arc;

use bytes::BytesMut;
use pgoutput::{Cursor, DecodeError};
use postgres_protocol::message::frontend;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::frame::Frame;
use crate::wire::{FrameReader, FrameWriter};
use crate::{ReplicationError, ServerMessage, Step};

/// More rows than any query of ours has.
const MAX_ROWS: usize = 10_000;

/// One row of an answer, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    columns: Arc<[String]>,
    values: Vec<Option<String>>,
}

impl Row {
    /// The value of a column; nothing when it is null or there is no such
    /// column.
    pub fn get(&self, column: &str) -> Option<&str> {
        let position = self.columns.iter().position(|name| name == column)?;
        self.values.get(position)?.as_deref()
    }

    /// The names of the columns, in order.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The values, in order.
    pub fn values(&self) -> &[Option<String>] {
        &self.values
    }
}

/// Runs one text to its end, even when the server reports an error, so that the
/// connection stays usable. The rows of several statements follow each other.
pub(crate) async fn run(
    reader: &mut FrameReader<impl AsyncRead + Unpin>,
    writer: &mut FrameWriter<impl AsyncWrite + Unpin>,
    sql: &str,
) -> Result<Vec<Row>, ReplicationError> {
    const STEP: Step = Step::Query;
    let decode = |source| ReplicationError::Decode { step: STEP, source };
    send(writer, STEP, sql).await?;

    let mut columns: Arc<[String]> = Arc::default();
    let mut rows = Vec::new();
    let mut failed = None;
    loop {
        let Frame { tag, body } = reader.expect(STEP).await?;
        match tag {
            b'T' => columns = read_columns(Cursor::new(body)).map_err(decode)?,
            b'D' => {
                if rows.len() == MAX_ROWS {
                    return Err(ReplicationError::TooManyRows { limit: MAX_ROWS });
                }
                let values = read_values(Cursor::new(body)).map_err(decode)?;
                rows.push(Row {
                    columns: Arc::clone(&columns),
                    values,
                });
            }
            b'E' => {
                let source = Box::new(ServerMessage::decode(body).map_err(decode)?);
                failed = Some(ReplicationError::Server { step: STEP, source });
            }
            b'N' => tracing::debug!(
                notice = %ServerMessage::decode(body).map_err(decode)?,
                "notice during a query"
            ),
            // End of a statement, empty statement, changed parameter, NOTIFY.
            b'C' | b'I' | b'S' | b'A' => {}
            b'Z' => return failed.map_or(Ok(rows), Err),
            tag => return Err(ReplicationError::Unexpected { step: STEP, tag }),
        }
    }
}

/// Sends a query or replication command.
pub(crate) async fn send(
    writer: &mut FrameWriter<impl AsyncWrite + Unpin>,
    step: Step,
    sql: &str,
) -> Result<(), ReplicationError> {
    let mut message = BytesMut::new();
    frontend::query(sql, &mut message).map_err(|source| ReplicationError::Io { step, source })?;
    writer
        .send(step, |out| out.extend_from_slice(&message))
        .await
}

fn read_columns(mut cursor: Cursor) -> Result<Arc<[String]>, DecodeError> {
    let count = cursor.count16("result column count")?;
    let mut columns = Vec::new();
    for _ in 0..count {
        columns.push(cursor.c_string("result column name")?);
        // Table, attribute, type, size, modifier and format: all is text here.
        cursor.bytes("result column description", 18)?;
    }
    Ok(columns.into())
}

fn read_values(mut cursor: Cursor) -> Result<Vec<Option<String>>, DecodeError> {
    let count = cursor.count16("row value count")?;
    let mut values = Vec::new();
    for _ in 0..count {
        let offset = cursor.offset();
        let field = "row value";
        values.push(match cursor.i32(field)? {
            -1 => None,
            length => {
                let length = usize::try_from(length).map_err(|_| DecodeError::Invalid {
                    field,
                    offset,
                    value: length.into(),
                })?;
                let bytes = cursor.bytes(field, length)?;
                let text = std::str::from_utf8(&bytes);
                let text = text.map_err(|source| DecodeError::NotUtf8 {
                    field,
                    offset,
                    source,
                })?;
                Some(text.to_owned())
            }
        });
    }
    Ok(values)
}
