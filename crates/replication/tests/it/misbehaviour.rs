//! Recorded frames replayed byte by byte, and servers that do not behave.

use std::path::Path;

use bytes::Bytes;
use pgoutput::{CopyData, Message};
use replication::{AuthError, Connection, FrameError, Reader, ReplicationError, Step, StreamEvent};

use crate::fake::{connect, copy_both, frame, serve, welcome};

/// A reader of a stream with this content.
async fn stream(content: Vec<u8>, step: usize) -> Reader {
    let config = serve(vec![welcome(), [copy_both(), content].concat()], step).await;
    let connection = Connection::connect(&config).await.unwrap();
    let (reader, writer) = connection.start("slot", "publication").await.unwrap();
    // The fake server does not care whether the client still writes.
    drop(writer);
    reader
}

fn recorded() -> Vec<Bytes> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pgoutput/tests/data/pg15");
    let mut payloads = Vec::new();
    for name in ["plain_insert", "many_types", "unchanged_toast", "keepalive"] {
        let mut file = Bytes::from(std::fs::read(folder.join(name).with_extension("bin")).unwrap());
        while let Some(length) = file.first_chunk::<4>() {
            let length = u32::from_be_bytes(*length) as usize;
            let _ = file.split_to(4);
            payloads.push(file.split_to(length));
        }
    }
    payloads
}

/// C26: reads of one byte must not change what arrives.
#[tokio::test]
async fn recorded_streams_arrive_whole_in_pieces_of_any_size() {
    let expected = recorded();
    let content: Vec<u8> = expected
        .iter()
        .flat_map(|payload| frame(b'd', payload))
        .collect();
    let content = [content, frame(b'C', b"COPY 0\0")].concat();
    for step in [1, 3, 1000, usize::MAX] {
        let mut reader = stream(content.clone(), step).await;
        let mut seen = Vec::new();
        while let Some(event) = reader.next().await.unwrap() {
            match event {
                StreamEvent::CopyData(payload) => seen.push(payload),
                other => assert_eq!(other, StreamEvent::Ended),
            }
        }
        assert_eq!(seen, expected, "{step}");
        for payload in seen {
            if let CopyData::XLog(data) = CopyData::decode(payload).unwrap() {
                Message::decode(data.data).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn every_kind_of_message_in_the_stream_is_treated() {
    let content = [
        frame(b'd', b"kabc"),
        frame(b'N', b"VWARNING\0C01000\0Mcareful\0\0"),
        frame(b'S', b"TimeZone\0UTC\0"),
        frame(b'A', b"\0\0\0\x07channel\0\0"),
        frame(b'~', b"from the future"),
        frame(b'c', b""),
        frame(b'C', b"COPY 0\0"),
        frame(b'Z', b"I"),
        frame(b'd', b"after the end"),
    ];
    let mut reader = stream(content.concat(), 2).await;
    let data = StreamEvent::CopyData(Bytes::from_static(b"kabc"));
    assert_eq!(reader.next().await.unwrap(), Some(data));
    let Some(StreamEvent::Notice(notice)) = reader.next().await.unwrap() else {
        panic!()
    };
    assert_eq!(notice.to_string(), "WARNING 01000: careful");
    assert_eq!(
        reader.next().await.unwrap(),
        Some(StreamEvent::Unknown { tag: b'~' })
    );
    assert_eq!(reader.next().await.unwrap(), Some(StreamEvent::Ended));
    assert_eq!(reader.next().await.unwrap(), None);
    assert_eq!(reader.next().await.unwrap(), None);
}

#[tokio::test]
async fn an_end_without_goodbye_is_an_error() {
    let mut reader = stream(frame(b'd', b"k"), usize::MAX).await;
    assert!(reader.next().await.unwrap().is_some());
    let error = reader.next().await.unwrap_err();
    assert!(
        matches!(error, ReplicationError::Closed { step: Step::Stream }),
        "{error}"
    );

    let mut reader = stream(b"d\0\0\0\x09ha".to_vec(), usize::MAX).await;
    let error = reader.next().await.unwrap_err();
    assert!(
        matches!(error, ReplicationError::Closed { step: Step::Stream }),
        "{error}"
    );
}

#[tokio::test]
async fn a_frame_over_the_limit_is_refused_before_it_arrives() {
    let mut reader = stream(b"d\x7f\xff\xff\xff".to_vec(), usize::MAX).await;
    let error = reader.next().await.unwrap_err();
    assert!(
        matches!(
            error,
            ReplicationError::Frame(FrameError::TooLarge { tag: b'd', .. })
        ),
        "{error}"
    );
}

#[tokio::test]
async fn an_error_that_cannot_be_read_is_still_an_error() {
    let mut reader = stream(frame(b'E', b"VFATAL\0C57P01"), usize::MAX).await;
    let error = reader.next().await.unwrap_err();
    assert!(
        matches!(
            error,
            ReplicationError::Decode {
                step: Step::Stream,
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn logins_that_are_not_ours_are_refused() {
    let gss = frame(b'R', &7_u32.to_be_bytes());
    let error = connect(gss).await.unwrap_err();
    assert!(
        matches!(error, ReplicationError::Auth(AuthError::Method { code: 7 })),
        "{error}"
    );

    let plus_only = frame(b'R', b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0\0");
    let error = connect(plus_only).await.unwrap_err();
    assert!(
        matches!(
            error,
            ReplicationError::Auth(AuthError::Method { code: 10 })
        ),
        "{error}"
    );

    let error = connect(frame(b'T', b"")).await.unwrap_err();
    assert!(
        matches!(error, ReplicationError::Unexpected { tag: b'T', .. }),
        "{error}"
    );
    let error = connect(frame(b'R', b"\0")).await.unwrap_err();
    assert!(matches!(error, ReplicationError::Decode { .. }), "{error}");
    let error = connect(Vec::new()).await.unwrap_err();
    assert!(
        matches!(
            error,
            ReplicationError::Closed {
                step: Step::Authenticate
            }
        ),
        "{error}"
    );
}

/// A server that does not know the password cannot finish the exchange, and
/// must not get away with skipping it.
#[tokio::test]
async fn a_server_must_prove_itself_in_scram() {
    let offer = frame(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    let config = serve(vec![offer.clone(), welcome()], usize::MAX).await;
    let error = Connection::connect(&config).await.unwrap_err();
    assert!(
        matches!(error, ReplicationError::Auth(AuthError::Unproven)),
        "{error}"
    );

    let challenge = frame(b'R', b"\0\0\0\x0br=not-our-nonce,s=c2FsdA==,i=4096");
    let config = serve(vec![offer, challenge], usize::MAX).await;
    let error = Connection::connect(&config).await.unwrap_err();
    assert!(
        matches!(error, ReplicationError::Auth(AuthError::Scram(_))),
        "{error}"
    );
}

#[tokio::test]
async fn answers_that_cannot_be_read_use_the_connection_up() {
    for answer in [
        frame(b'T', b"\0\x02only one\0"),
        frame(b'D', b"\0\x01\0\0\0\x09short"),
        frame(b'D', b"\0\x01\xff\xff\xff\xfe"),
        frame(b'D', b"\0\x01\0\0\0\x01\xff"),
        frame(b'H', b"\0\0\0"),
    ] {
        let config = serve(vec![welcome(), answer], usize::MAX).await;
        let mut connection = Connection::connect(&config).await.unwrap();
        let error = connection.query("SELECT 1").await.unwrap_err();
        assert!(
            matches!(
                error,
                ReplicationError::Decode { .. } | ReplicationError::Unexpected { .. }
            ),
            "{error}"
        );
        let next = connection.query("SELECT 1").await;
        assert!(matches!(next, Err(ReplicationError::Unfinished)));
    }
}

#[tokio::test]
async fn an_identity_without_its_columns_is_refused() {
    let answer = [frame(b'C', b"IDENTIFY_SYSTEM\0"), frame(b'Z', b"I")].concat();
    let config = serve(vec![welcome(), answer], usize::MAX).await;
    let mut connection = Connection::connect(&config).await.unwrap();
    let error = connection.identify_system().await.unwrap_err();
    assert!(
        matches!(error, ReplicationError::Answer { column: "systemid" }),
        "{error}"
    );
}
