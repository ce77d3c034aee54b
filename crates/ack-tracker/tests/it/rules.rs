//! One test per rule.

use std::num::NonZeroUsize;

use ack_tracker::{PushError, TicketError, Tracker};

fn tracker(capacity: usize) -> Tracker<u64> {
    Tracker::new(NonZeroUsize::new(capacity).expect("tests use capacities above zero"))
}

#[test]
fn d_3_a_transaction_is_not_done_while_it_is_received() {
    let mut lsns = tracker(8);
    let txn = lsns.open(100, 0).unwrap();
    lsns.add_parts(txn, 1).unwrap();
    // The broker may acknowledge the first record before the commit message is read.
    assert_eq!(lsns.complete(txn), Ok(None));
    assert_eq!(lsns.done(), None);
    lsns.add_parts(txn, 2).unwrap();
    assert_eq!(lsns.seal_at(txn, 140), Ok(None));
    assert_eq!(lsns.complete(txn), Ok(None));
    assert_eq!(lsns.complete(txn), Ok(Some(140)));
    assert!(lsns.is_idle());
}

#[test]
fn d_3_an_empty_transaction_is_done_at_its_seal_unless_an_earlier_one_is_open() {
    let mut lsns = tracker(8);
    let first = lsns.push(10, 0).unwrap();
    let empty = lsns.open(20, 0).unwrap();
    assert_eq!(lsns.seal(empty), Ok(None));
    assert_eq!(lsns.complete(first), Ok(Some(20)));
}

#[test]
fn d_3_nothing_enters_behind_a_transaction_that_may_still_rise() {
    let mut lsns = tracker(8);
    let txn = lsns.open(10, 0).unwrap();
    assert_eq!(
        lsns.push(11, 0),
        Err(PushError::NotSealed {
            position: 11,
            last: 10
        })
    );
    assert_eq!(lsns.seal_at(txn, 9), Err(TicketError::PositionWentBack));
    assert_eq!(lsns.seal_at(txn, 30), Ok(Some(30)));
    assert_eq!(
        lsns.push(30, 0),
        Err(PushError::NotAscending {
            position: 30,
            last: 30
        })
    );
    assert!(lsns.push(31, 0).is_ok());
}

#[test]
fn d_6_an_offset_waits_for_every_earlier_one() {
    let mut offsets = tracker(8);
    let tickets: Vec<_> = (0..4).map(|o| offsets.push(o, o * 10).unwrap()).collect();
    assert_eq!(offsets.complete(tickets[3]), Ok(None));
    assert_eq!(offsets.complete(tickets[1]), Ok(None));
    assert_eq!(offsets.complete(tickets[0]), Ok(Some(1)));
    assert_eq!(
        offsets.oldest_open().map(|o| (o.position, o.since_us)),
        Some((2, 20))
    );
    assert_eq!(offsets.open_count(), 1);
    assert_eq!(offsets.complete(tickets[2]), Ok(Some(3)));
    assert_eq!(offsets.oldest_open(), None);
}

#[test]
fn d_6_a_late_completion_of_an_earlier_assignment_finishes_nothing() {
    let capacity = NonZeroUsize::new(4).unwrap();
    let mut before = Tracker::with_generation(capacity, 1);
    let late = before.push(7_u64, 0).unwrap();
    let mut after = Tracker::with_generation(capacity, 2);
    after.push(7_u64, 0).unwrap();
    assert_eq!(
        after.complete(late),
        Err(TicketError::Stale {
            ticket: 1,
            tracker: 2
        })
    );
    assert_eq!(after.done(), None);
}

#[test]
fn a_full_tracker_hands_the_position_back_until_the_head_is_done() {
    let mut offsets = tracker(2);
    let first = offsets.push(1, 0).unwrap();
    let second = offsets.push(2, 0).unwrap();
    offsets.complete(second).unwrap();
    // The finished one behind the gap still takes room: that is what bounds memory.
    assert_eq!(offsets.push(3, 0).map_err(PushError::into_position), Err(3));
    offsets.complete(first).unwrap();
    assert!(offsets.push(3, 0).is_ok());
}

#[test]
fn a_second_completion_is_an_error_before_and_after_the_entry_is_cut_off() {
    let mut offsets = tracker(4);
    let first = offsets.push(1, 0).unwrap();
    let second = offsets.push(2, 0).unwrap();
    offsets.complete(second).unwrap();
    assert_eq!(offsets.complete(second), Err(TicketError::AlreadyComplete));
    offsets.complete(first).unwrap();
    assert_eq!(offsets.complete(first), Err(TicketError::AlreadyComplete));
    assert_eq!(offsets.complete(second), Err(TicketError::AlreadyComplete));
}

#[test]
fn a_ticket_that_was_not_given_out_is_unknown() {
    let mut many = tracker(4);
    many.push(1, 0).unwrap();
    let foreign = many.push(2, 0).unwrap();
    assert_eq!(tracker(4).complete(foreign), Err(TicketError::Unknown));
}

#[test]
fn a_sealed_entry_takes_no_parts_and_no_second_seal() {
    let mut lsns = tracker(4);
    let txn = lsns.open(1, 0).unwrap();
    assert_eq!(lsns.complete(txn), Err(TicketError::AlreadyComplete));
    lsns.add_parts(txn, 1).unwrap();
    assert_eq!(
        lsns.add_parts(txn, u64::MAX),
        Err(TicketError::TooManyParts)
    );
    lsns.seal(txn).unwrap();
    assert_eq!(lsns.add_parts(txn, 1), Err(TicketError::Sealed));
    assert_eq!(lsns.seal(txn), Err(TicketError::Sealed));
    assert_eq!(lsns.outstanding_parts(), 1);
}

#[test]
fn age_does_not_underflow_when_the_clock_went_back() {
    let mut offsets = tracker(4);
    offsets.push(1, 1_000).unwrap();
    assert_eq!(offsets.oldest_open().map(|o| o.age_us(400)), Some(0));
}
