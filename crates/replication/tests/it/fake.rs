//! A server that sends exactly the bytes it is told to, in pieces as small as
//! one byte.

use std::time::Duration;

use bytes::BufMut;
use replication::{Connection, ReplicationConfig, ReplicationError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// One wire frame.
pub(crate) fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut wire = vec![tag];
    wire.put_u32(u32::try_from(body.len() + 4).unwrap());
    wire.put_slice(body);
    wire
}

/// What a server says up to ReadyForQuery to a client it trusts.
pub(crate) fn welcome() -> Vec<u8> {
    [
        frame(b'R', &[0, 0, 0, 0]),
        frame(b'S', b"server_version\x0015.0\0"),
        frame(b'K', &[0; 8]),
        frame(b'Z', b"I"),
    ]
    .concat()
}

/// CopyBothResponse.
pub(crate) fn copy_both() -> Vec<u8> {
    frame(b'W', &[0, 0, 0])
}

/// Starts a server for one client. It reads a message of the client before each
/// part, writes the part `step` bytes at a time and closes after the last.
pub(crate) async fn serve(parts: Vec<Vec<u8>>, step: usize) -> ReplicationConfig {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        let mut heard = [0; 4096];
        for part in parts {
            let _ = socket.read(&mut heard).await;
            for piece in part.chunks(step) {
                // The client may have left in anger.
                let _ = socket.write_all(piece).await;
                tokio::task::yield_now().await;
            }
        }
        // Only half: the client must read everything before it sees the end.
        let _ = socket.shutdown().await;
        let _ = socket.read(&mut heard).await;
    });
    let url = format!("postgresql://relay:secret@127.0.0.1:{port}/postgres");
    let mut config = ReplicationConfig::from_url(&url).unwrap();
    config.connect_timeout = Duration::from_secs(5);
    config.query_timeout = Duration::from_secs(5);
    config
}

/// Connects to a server that sends these bytes as its whole answer.
pub(crate) async fn connect(answer: Vec<u8>) -> Result<Connection, ReplicationError> {
    Connection::connect(&serve(vec![answer], usize::MAX).await).await
}
