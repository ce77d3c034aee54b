//! Cancelling at any point loses, tears and repeats nothing (C26).

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use bytes::BufMut;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

const LIMIT: usize = 1 << 16;

fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    wire.put_u8(tag);
    wire.put_u32(u32::try_from(body.len() + 4).unwrap());
    wire.put_slice(body);
    wire
}

fn body(number: usize) -> Vec<u8> {
    vec![u8::try_from(number % 251).unwrap(); number * 7 % 90]
}

/// Polls a future a few times and drops it if it is not done by then.
async fn cancel_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        if let Poll::Ready(done) = future.as_mut().poll(context) {
            return Poll::Ready(Some(done));
        }
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn reads_cancelled_at_random_lose_no_frame(
        steps in prop::collection::vec(1_usize..6, 1..30),
        polls in prop::collection::vec(0_usize..3, 1..30),
    ) {
        run(async {
            // One byte fits the pipe in the smallest case: 1-byte reads.
            let (near, mut far) = duplex(1 + steps.len() % 9);
            let expected: Vec<_> = (0..40).map(body).collect();
            let wire: Vec<u8> = expected.iter().flat_map(|body| frame(b'd', body)).collect();
            let peer = tokio::spawn(async move {
                let mut rest = wire.as_slice();
                for step in steps.iter().cycle() {
                    if rest.is_empty() {
                        break;
                    }
                    let (now, later) = rest.split_at(rest.len().min(*step));
                    far.write_all(now).await.unwrap();
                    tokio::task::yield_now().await;
                    rest = later;
                }
            });
            let mut reader = FrameReader::new(near, LIMIT);
            let mut seen = Vec::new();
            let mut polls = polls.iter().cycle();
            loop {
                let next = cancel_after(*polls.next().unwrap(), reader.next(Step::Stream)).await;
                match next {
                    Some(Ok(Some(frame))) => seen.push(frame.body.to_vec()),
                    Some(Ok(None)) => break,
                    Some(Err(error)) => panic!("{error}"),
                    None => tokio::task::yield_now().await,
                }
            }
            peer.await.unwrap();
            assert_eq!(seen, expected);
        });
    }

    #[test]
    fn writes_cancelled_at_random_tear_no_frame(
        polls in prop::collection::vec(0_usize..3, 1..30),
        pipe in 1_usize..20,
    ) {
        run(async {
            let (near, mut far) = duplex(pipe);
            let peer = tokio::spawn(async move {
                let mut wire = Vec::new();
                far.read_to_end(&mut wire).await.unwrap();
                wire
            });
            let mut writer = FrameWriter::new(near);
            let mut polls = polls.iter().cycle();
            for number in 0..40 {
                let message = frame(b'd', &body(number));
                let send = writer.send(Step::Stream, |out| out.extend_from_slice(&message));
                let _ = cancel_after(*polls.next().unwrap(), send).await;
            }
            writer.send(Step::Stream, |out| out.extend_from_slice(&frame(b'c', b""))).await.unwrap();
            drop(writer);

            let mut frames = FrameBuffer::new(LIMIT);
            frames.room().extend_from_slice(&peer.await.unwrap());
            let mut last = None;
            while let Some(frame) = frames.next_frame().unwrap() {
                if frame.tag == b'd' {
                    assert!((0..40).any(|number| body(number) == frame.body));
                }
                last = Some(frame.tag);
            }
            assert!(frames.is_empty());
            assert_eq!(last, Some(b'c'));
        });
    }
}

#[test]
fn a_peer_that_closes_inside_a_frame_is_an_error() {
    run(async {
        let (near, mut far) = duplex(64);
        far.write_all(b"d\0\0\0\x09half").await.unwrap();
        drop(far);
        let mut reader = FrameReader::new(near, LIMIT);
        let error = reader.next(Step::Stream).await.unwrap_err();
        assert!(
            matches!(error, ReplicationError::Closed { step: Step::Stream }),
            "{error}"
        );
    });
}
