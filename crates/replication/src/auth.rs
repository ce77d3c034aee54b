//! Passwords: nothing (trust) or SCRAM-SHA-256, in which both sides prove that
//! they know the password and neither says it. Everything else is refused with
//! its reason: clear text and MD5 give the password away on this line.

use bytes::Bytes;
use pgoutput::Cursor;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::frame::Frame;
use crate::wire::{FrameReader, FrameWriter};
use crate::{AuthError, Password, ReplicationError, ServerMessage, Step};

/// The server is satisfied.
const OK: u32 = 0;
const CLEAR_TEXT: u32 = 3;
const MD5: u32 = 5;
/// Start, middle and end of the SASL exchange.
const SASL: u32 = 10;
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

/// Answers the server until it lets us in.
pub(crate) async fn authenticate(
    reader: &mut FrameReader<impl AsyncRead + Unpin>,
    writer: &mut FrameWriter<impl AsyncWrite + Unpin>,
    password: Option<&Password>,
) -> Result<(), ReplicationError> {
    let (code, cursor) = request(reader).await?;
    match code {
        OK => Ok(()),
        SASL => {
            let password = password.ok_or(auth(AuthError::NoPassword))?;
            scram(reader, writer, password, mechanisms(cursor)?).await
        }
        CLEAR_TEXT => Err(auth(AuthError::ClearText)),
        MD5 => Err(auth(AuthError::Md5)),
        code => Err(auth(AuthError::Method { code })),
    }
}

async fn scram(
    reader: &mut FrameReader<impl AsyncRead + Unpin>,
    writer: &mut FrameWriter<impl AsyncWrite + Unpin>,
    password: &Password,
    mechanisms: Vec<String>,
) -> Result<(), ReplicationError> {
    if !mechanisms
        .iter()
        .any(|mechanism| mechanism == SCRAM_SHA_256)
    {
        return Err(auth(AuthError::Method { code: SASL }));
    }
    let mut scram = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
    let first =
        message(|out| frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), out))?;
    writer
        .send(Step::Authenticate, |out| out.extend_from_slice(&first))
        .await?;

    let challenge = expect(reader, SASL_CONTINUE).await?;
    scram
        .update(&challenge)
        .map_err(|error| auth(AuthError::Scram(error)))?;
    let proof = message(|out| frontend::sasl_response(scram.message(), out))?;
    writer
        .send(Step::Authenticate, |out| out.extend_from_slice(&proof))
        .await?;

    // The server's proof: without it anyone could play the server.
    let verdict = expect(reader, SASL_FINAL).await?;
    scram
        .finish(&verdict)
        .map_err(|error| auth(AuthError::Scram(error)))?;
    expect(reader, OK).await?;
    Ok(())
}

/// The body of the one request that may come now.
async fn expect(
    reader: &mut FrameReader<impl AsyncRead + Unpin>,
    expected: u32,
) -> Result<Bytes, ReplicationError> {
    let (code, cursor) = request(reader).await?;
    match code {
        code if code == expected => Ok(cursor.rest()),
        OK => Err(auth(AuthError::Unproven)),
        code => Err(auth(AuthError::Method { code })),
    }
}

/// The next authentication request: its number and what follows.
async fn request(
    reader: &mut FrameReader<impl AsyncRead + Unpin>,
) -> Result<(u32, Cursor), ReplicationError> {
    const STEP: Step = Step::Authenticate;
    let decode = |source| ReplicationError::Decode { step: STEP, source };
    loop {
        let Frame { tag, body } = reader.expect(STEP).await?;
        match tag {
            b'R' => {
                let mut cursor = Cursor::new(body);
                let code = cursor.u32("authentication method").map_err(decode)?;
                return Ok((code, cursor));
            }
            b'E' => {
                let source = Box::new(ServerMessage::decode(body).map_err(decode)?);
                return Err(ReplicationError::Server { step: STEP, source });
            }
            b'N' => tracing::debug!(
                notice = %ServerMessage::decode(body).map_err(decode)?,
                "notice during login"
            ),
            tag => return Err(ReplicationError::Unexpected { step: STEP, tag }),
        }
    }
}

/// The offered mechanisms: strings up to an empty one.
fn mechanisms(mut cursor: Cursor) -> Result<Vec<String>, ReplicationError> {
    let mut offered = Vec::new();
    loop {
        let mechanism =
            cursor
                .c_string("sasl mechanism")
                .map_err(|source| ReplicationError::Decode {
                    step: Step::Authenticate,
                    source,
                })?;
        if mechanism.is_empty() {
            return Ok(offered);
        }
        offered.push(mechanism);
    }
}

/// Builds a message; the builders only fail for text that does not fit.
fn message(
    build: impl FnOnce(&mut bytes::BytesMut) -> std::io::Result<()>,
) -> Result<bytes::BytesMut, ReplicationError> {
    let mut out = bytes::BytesMut::new();
    build(&mut out).map_err(|error| auth(AuthError::Scram(error)))?;
    Ok(out)
}

fn auth(error: AuthError) -> ReplicationError {
    ReplicationError::Auth(error)
}
