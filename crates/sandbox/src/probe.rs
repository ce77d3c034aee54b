//! Asks each server one question in its own protocol: are you ready?
//!
//! An open port says too little: Postgres opens it while it recovers, Kafka
//! before it knows a controller. Each question is one short frame, so no
//! client library is needed. Every wait ends after [`LIMIT`].

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// A server that has not answered after this is asked again.
const LIMIT: Duration = Duration::from_millis(1500);

/// An answer larger than this is not one of the answers expected here.
const LARGEST: usize = 1 << 20;

/// Postgres accepts a session in `database`: a start-up packet is answered
/// with messages up to `Z` (ready for query), not with `E`, which it sends
/// while it recovers and when there is no such database.
pub(crate) fn postgres(port: u16, database: &str) -> bool {
    let ask = || -> io::Result<bool> {
        let mut stream = connect(local(port), LIMIT)?;
        let body = format!("\0\x03\0\0user\0postgres\0database\0{database}\0\0");
        let length = u32::try_from(body.len() + 4).map_err(io::Error::other)?;
        let mut packet = length.to_be_bytes().to_vec();
        packet.extend(body.bytes());
        stream.write_all(&packet)?;
        loop {
            let mut head = [0; 5];
            stream.read_exact(&mut head)?;
            let [kind, length @ ..] = head;
            match kind {
                b'Z' => break,
                b'E' => return Ok(false),
                _ => skip(&mut stream, u32::from_be_bytes(length).saturating_sub(4))?,
            }
        }
        // Terminate, or the server logs an unexpected end of the connection.
        stream.write_all(b"X\0\0\0\x04")?;
        Ok(true)
    };
    ask().unwrap_or(false)
}

/// Kafka knows a broker and a controller: Metadata request, version 4.
pub(crate) fn kafka(port: u16) -> bool {
    let ask = || -> io::Result<bool> {
        let mut stream = connect(local(port), LIMIT)?;
        // Header: key 3, version 4, correlation 1, no client id; body: no topics, do not create.
        stream.write_all(b"\0\0\0\x0f\0\x03\0\x04\0\0\0\x01\xff\xff\0\0\0\0\0")?;
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = usize::try_from(u32::from_be_bytes(length)).map_err(io::Error::other)?;
        if length > LARGEST {
            return Ok(false);
        }
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer)?;
        Ok(has_broker_and_controller(&answer).unwrap_or(false))
    };
    ask().unwrap_or(false)
}

/// The CQL server takes clients: OPTIONS is answered with SUPPORTED.
pub(crate) fn cql(address: Ipv4Addr, port: u16) -> bool {
    const SUPPORTED: u8 = 6;
    let ask = || -> io::Result<bool> {
        let mut stream = connect(SocketAddr::from((address, port)), LIMIT)?;
        stream.write_all(b"\x04\0\0\x01\x05\0\0\0\0")?;
        let mut header = [0; 9];
        stream.read_exact(&mut header)?;
        Ok(header[4] == SUPPORTED)
    };
    ask().unwrap_or(false)
}

/// A plain HTTP GET: status code and body.
///
/// # Errors
/// When nobody listens, the answer does not come in time, or it is no HTTP.
pub(crate) fn http_get(address: &str, path: &str, limit: Duration) -> io::Result<(u16, String)> {
    let socket: SocketAddr = address.parse().map_err(io::Error::other)?;
    let mut stream = connect(socket, limit)?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.take(64 << 20).read_to_end(&mut answer)?;
    parse_http(&answer).ok_or_else(|| io::Error::other("not an HTTP answer"))
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn skip(stream: &mut TcpStream, length: u32) -> io::Result<()> {
    io::copy(&mut stream.take(u64::from(length)), &mut io::sink()).map(drop)
}

fn connect(address: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    Ok(stream)
}

/// Reads a Metadata answer, version 4: correlation, throttle time, brokers
/// (id, host, port, rack), cluster id, controller id. `None`: cut short.
fn has_broker_and_controller(answer: &[u8]) -> Option<bool> {
    let mut rest = answer.get(8..)?;
    let brokers = take_i32(&mut rest)?;
    for _ in 0..brokers {
        take_i32(&mut rest)?;
        take_string(&mut rest)?;
        take_i32(&mut rest)?;
        take_string(&mut rest)?;
    }
    take_string(&mut rest)?;
    let controller = take_i32(&mut rest)?;
    Some(brokers > 0 && controller >= 0)
}

fn take_i32(rest: &mut &[u8]) -> Option<i32> {
    let (head, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    Some(i32::from_be_bytes(*head))
}

/// Skips a string; a negative length stands for null.
fn take_string(rest: &mut &[u8]) -> Option<()> {
    let (head, tail) = rest.split_first_chunk::<2>()?;
    let length = usize::try_from(i16::from_be_bytes(*head)).unwrap_or(0);
    *rest = tail.get(length..)?;
    Some(())
}

fn parse_http(answer: &[u8]) -> Option<(u16, String)> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    let chunked = head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked");
    let body = if chunked {
        unchunk(body)
    } else {
        body.to_owned()
    };
    Some((status, body))
}

/// Joins the chunks of a chunked body, up to where it is whole.
fn unchunk(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((length, tail)) = rest.split_once("\r\n") {
        let Ok(length) = usize::from_str_radix(length.trim(), 16) else {
            break;
        };
        let Some(chunk) = tail.get(..length) else {
            break;
        };
        if length == 0 {
            break;
        }
        body.push_str(chunk);
        rest = tail.get(length + 2..).unwrap_or_default();
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(brokers: i32, controller: i32) -> Vec<u8> {
        let mut answer = vec![0; 8];
        answer.extend(brokers.to_be_bytes());
        for id in 0..brokers {
            answer.extend(id.to_be_bytes());
            answer.extend(b"\0\x01h");
            answer.extend(17401i32.to_be_bytes());
            answer.extend(b"\xff\xff");
        }
        answer.extend(b"\0\x02id");
        answer.extend(controller.to_be_bytes());
        answer.extend(b"\0\0\0\0");
        answer
    }

    #[test]
    fn kafka_needs_a_broker_and_a_controller() {
        assert_eq!(has_broker_and_controller(&metadata(1, 0)), Some(true));
        assert_eq!(has_broker_and_controller(&metadata(0, 0)), Some(false));
        assert_eq!(has_broker_and_controller(&metadata(1, -1)), Some(false));
        assert_eq!(has_broker_and_controller(&metadata(1, 0)[..20]), None);
    }

    #[test]
    fn http_with_and_without_chunks() {
        assert_eq!(
            parse_http(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nhello"),
            Some((200, "hello".into()))
        );
        let chunked =
            b"HTTP/1.1 503 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        assert_eq!(parse_http(chunked), Some((503, "abcde".into())));
        assert_eq!(parse_http(b"nothing"), None);
    }

    #[test]
    fn nobody_there_is_not_ready() {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        assert!(!postgres(port, "postgres") && !kafka(port) && !cql(Ipv4Addr::LOCALHOST, port));
    }
}
