//! Frames do not depend on how their bytes arrive (C26: reads that lost bytes
//! mis-framed the stream for good).

use bytes::BufMut;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const LIMIT: usize = 1000;

fn wire(frames: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut wire = Vec::new();
    for (tag, body) in frames {
        wire.put_u8(*tag);
        wire.put_u32(u32::try_from(body.len() + LENGTH_FIELD).unwrap());
        wire.put_slice(body);
    }
    wire
}

fn drain(buffer: &mut FrameBuffer) -> Result<Vec<(u8, Vec<u8>)>, FrameError> {
    let mut frames = Vec::new();
    while let Some(frame) = buffer.next_frame()? {
        frames.push((frame.tag, frame.body.to_vec()));
    }
    Ok(frames)
}

proptest! {
    #[test]
    fn frames_are_the_same_however_the_bytes_are_cut(
        frames in vec((any::<u8>(), vec(any::<u8>(), 0..300)), 0..10),
        cuts in vec(1_usize..200, 1..20),
    ) {
        let wire = wire(&frames);
        let mut buffer = FrameBuffer::new(LIMIT);
        let mut seen = Vec::new();
        let mut rest = wire.as_slice();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (now, later) = rest.split_at(rest.len().min(*cut));
            buffer.room().extend_from_slice(now);
            seen.extend(drain(&mut buffer).unwrap());
            rest = later;
        }
        prop_assert_eq!(seen, frames);
        prop_assert!(buffer.is_empty());
    }

    #[test]
    fn random_bytes_end_in_frames_or_an_error(wire in vec(any::<u8>(), 0..2000)) {
        let mut buffer = FrameBuffer::new(LIMIT);
        for byte in &wire {
            buffer.room().put_u8(*byte);
            if drain(&mut buffer).is_err() {
                break;
            }
            // Only an unfinished frame stays, and that is within the limit.
            prop_assert!(buffer.bytes.len() < HEADER + LIMIT);
        }
    }
}

#[test]
fn one_byte_at_a_time_gives_the_same_frames() {
    let frames = vec![
        (b'd', b"hello".to_vec()),
        (b'k', Vec::new()),
        (b'd', vec![7; 999]),
    ];
    let mut buffer = FrameBuffer::new(LIMIT);
    let mut seen = Vec::new();
    for byte in wire(&frames) {
        buffer.room().put_u8(byte);
        seen.extend(drain(&mut buffer).unwrap());
    }
    assert_eq!(seen, frames);
}

#[test]
fn the_limit_counts_before_the_bytes_arrive() {
    let mut buffer = FrameBuffer::new(LIMIT);
    buffer.room().put_slice(&wire(&[(b'd', vec![0; LIMIT])]));
    assert_eq!(buffer.next_frame().unwrap().unwrap().body.len(), LIMIT);

    buffer.room().put_slice(b"d\x7f\xff\xff\xff");
    let error = buffer.next_frame().unwrap_err();
    let length = 0x7FFF_FFFF - LENGTH_FIELD;
    assert_eq!(
        error,
        FrameError::TooLarge {
            tag: b'd',
            length,
            limit: LIMIT
        }
    );
}

#[test]
fn lengths_that_do_not_count_themselves_are_refused() {
    for length in [3_i32, 0, -1, i32::MIN] {
        let mut buffer = FrameBuffer::new(LIMIT);
        buffer.room().put_u8(b'd');
        buffer.room().put_i32(length);
        assert_eq!(
            buffer.next_frame(),
            Err(FrameError::BadLength { tag: b'd', length })
        );
    }
}

#[test]
fn an_announced_frame_reserves_no_more_than_a_step() {
    let mut buffer = FrameBuffer::new(1 << 30);
    buffer.room().put_slice(b"d\x3f\xff\xff\xff");
    assert_eq!(buffer.next_frame(), Ok(None));
    assert!(buffer.room().capacity() <= 2 * RESERVE_AT_MOST);
}
