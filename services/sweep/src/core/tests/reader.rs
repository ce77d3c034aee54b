//! Which ids a look reads: rotation, and settled gaps once an hour.

use events::{IdRange, IdRanges};

use super::*;
use crate::core::{
    reader::WHOLE_EVERY_US,
    voids::{Snapshot, Void},
};

fn range(low: i64, high: i64) -> IdRanges {
    IdRanges::from(IdRange { low, high })
}

fn full(ids: &[i64]) -> Look {
    Look {
        truncated: true,
        ..look(ids)
    }
}

/// A note of 40..50 that is settled, and one of 50..55 that is not.
fn noted() -> [Void; 2] {
    let void = |entry, xmax_seen, ids| Void {
        entry,
        ids,
        xmax_seen,
        seen_us: Micros(0),
    };
    [void(1, 10, range(40, 50)), void(2, 90, range(50, 55))]
}

fn snapshot() -> Snapshot {
    Snapshot {
        xmin: 20,
        now_us: Micros(3 * Micros::HOUR),
    }
}

/// D-10's other half: what cannot move never hides what can.
#[test]
fn a_full_look_is_followed_by_what_comes_behind_it() {
    let mut reader = Reader::default();
    let candidates = range(1, 100);
    let ranges = |reader: &mut Reader| reader.ranges(&candidates, &[], &snapshot(), Moment(1));
    let first = ranges(&mut reader);
    assert_eq!(first, candidates);
    reader.looked(&full(&[5, 30]));
    assert_eq!(Reader::read(&first, &full(&[5, 30])), range(1, 31));
    let second = ranges(&mut reader);
    assert_eq!(second, range(31, 100));
    assert_eq!(Reader::read(&second, &look(&[40])), second, "all of it");
    assert_eq!(Reader::read(&second, &full(&[])), IdRanges::new());
    reader.looked(&full(&[60]));
    assert_eq!(ranges(&mut reader), range(61, 100));
    reader.looked(&look(&[70]));
    assert_eq!(ranges(&mut reader), candidates, "round again");
}

/// Every restart and every hour reads settled gaps too; the gaps that are not settled always.
#[test]
fn settled_gaps_are_read_once_an_hour() {
    let mut reader = Reader::default();
    let candidates = range(1, 100);
    let calm = candidates.subtract(&range(40, 50));
    let at = |reader: &mut Reader, now| {
        let ranges = reader.ranges(&candidates, &noted(), &snapshot(), Moment(now));
        reader.looked(&look(&[]));
        ranges
    };
    assert_eq!(at(&mut reader, 7), candidates, "after a start");
    assert_eq!(at(&mut reader, 8), calm);
    assert_eq!(at(&mut reader, 7 + WHOLE_EVERY_US - 1), calm);
    assert_eq!(at(&mut reader, 7 + WHOLE_EVERY_US), candidates);
    assert_eq!(at(&mut reader, 8 + WHOLE_EVERY_US), calm);
}

/// A whole pass begins at the front and is whole to its end, over as many looks as it takes; the
/// next hour counts from its beginning.
#[test]
fn a_whole_pass_goes_over_full_looks() {
    let mut reader = Reader::default();
    let candidates = range(1, 100);
    let at = |reader: &mut Reader, now, look: &Look| {
        let ranges = reader.ranges(&candidates, &noted(), &snapshot(), Moment(now));
        reader.looked(look);
        ranges
    };
    assert_eq!(at(&mut reader, 0, &look(&[])), candidates);
    at(&mut reader, 1, &full(&[30]));
    // Due in the middle of a pass: from the front.
    let due = WHOLE_EVERY_US;
    assert_eq!(at(&mut reader, due, &full(&[35])), candidates);
    // Two hours later the same pass still goes on where it was.
    assert_eq!(at(&mut reader, 3 * due, &full(&[45])), range(36, 100));
    assert_eq!(at(&mut reader, 3 * due + 1, &look(&[])), range(46, 100));
    assert_eq!(at(&mut reader, 3 * due + 2, &look(&[])), candidates);
}
