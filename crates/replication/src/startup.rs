//! From nothing to a session that is ready for queries: socket, start-up
//! message, password, parameters.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use bytes::BytesMut;
use pgoutput::Cursor;
use postgres_protocol::message::frontend;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpStream, lookup_host};

use crate::frame::Frame;
use crate::wire::{FrameReader, FrameWriter};
use crate::{ReplicationConfig, ReplicationError, ServerMessage, Step, auth};

/// How values are written must not depend on the server's or the role's
/// settings: `pgoutput` reads exactly these forms.
const PINNED: &str = "-c DateStyle=ISO -c IntervalStyle=postgres -c TimeZone=UTC \
                      -c bytea_output=hex -c extra_float_digits=3";

/// A session that is ready.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) reader: FrameReader<OwnedReadHalf>,
    pub(crate) writer: FrameWriter<OwnedWriteHalf>,
    /// What the server reported about itself (`server_version`, …).
    pub(crate) parameters: HashMap<String, String>,
}

/// Opens the socket and logs in, without a time limit of its own.
pub(crate) async fn open(config: &ReplicationConfig) -> Result<Session, ReplicationError> {
    let stream = dial(config)
        .await
        .map_err(|source| ReplicationError::Connect {
            address: format!("{}:{}", config.host, config.port),
            source,
        })?;
    let (read, write) = stream.into_split();
    let mut reader = FrameReader::new(read, config.max_frame_bytes);
    let mut writer = FrameWriter::new(write);

    let hello = startup_message(config)?;
    writer
        .send(Step::Authenticate, |out| out.extend_from_slice(&hello))
        .await?;
    auth::authenticate(&mut reader, &mut writer, config.password.as_ref()).await?;
    let parameters = until_ready(&mut reader).await?;
    Ok(Session {
        reader,
        writer,
        parameters,
    })
}

/// Tries the host's addresses in order.
async fn dial(config: &ReplicationConfig) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "host name has no address");
    for address in lookup_host((config.host.as_str(), config.port)).await? {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                tune(&stream)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Status messages are small and must not wait for company; a peer that
/// vanished without a word must be noticed although we mostly listen.
fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(30))
        .with_interval(Duration::from_secs(10))
        .with_retries(3);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

fn startup_message(config: &ReplicationConfig) -> Result<BytesMut, ReplicationError> {
    let mut options = PINNED.to_owned();
    if let Some(timeout) = config.wal_sender_timeout {
        options.push_str(&format!(" -c wal_sender_timeout={}ms", timeout.as_millis()));
    }
    if let Some(more) = &config.options {
        options.push(' ');
        options.push_str(more);
    }
    let parameters = [
        ("user", config.user.as_str()),
        ("database", config.database.as_str()),
        ("replication", "database"),
        ("client_encoding", "UTF8"),
        ("application_name", config.application_name.as_str()),
        ("options", options.as_str()),
    ];
    let mut out = BytesMut::new();
    frontend::startup_message(parameters, &mut out).map_err(|source| ReplicationError::Io {
        step: Step::Authenticate,
        source,
    })?;
    Ok(out)
}

async fn until_ready(
    reader: &mut FrameReader<OwnedReadHalf>,
) -> Result<HashMap<String, String>, ReplicationError> {
    const STEP: Step = Step::Authenticate;
    let decode = |source| ReplicationError::Decode { step: STEP, source };
    let mut parameters = HashMap::new();
    loop {
        let Frame { tag, body } = reader.expect(STEP).await?;
        match tag {
            b'Z' => return Ok(parameters),
            b'S' => {
                let mut cursor = Cursor::new(body);
                let name = cursor.c_string("parameter name").map_err(decode)?;
                parameters.insert(name, cursor.c_string("parameter value").map_err(decode)?);
            }
            // The key for cancelling queries; nothing here runs long enough.
            b'K' => {}
            b'N' => tracing::debug!(
                notice = %ServerMessage::decode(body).map_err(decode)?,
                "notice during login"
            ),
            b'E' => {
                let source = Box::new(ServerMessage::decode(body).map_err(decode)?);
                return Err(ReplicationError::Server { step: STEP, source });
            }
            tag => return Err(ReplicationError::Unexpected { step: STEP, tag }),
        }
    }
}
