//! When a gap is settled, and how the notes follow the reading.

use events::IdRanges;
use proptest::prelude::*;

use super::*;
use crate::core::voids::{MERGE_AT, Revision, Snapshot, Void, merge, revise, settled};

fn ids(list: &[i64]) -> IdRanges {
    IdRanges::from_ids(list.iter().copied().map(EventId))
}

fn void(entry: i64, list: &[i64]) -> Void {
    Void {
        entry,
        ids: ids(list),
        xmax_seen: 50,
        seen_us: Micros(100),
    }
}

fn snapshot(xmin: u64, now_us: i64) -> Snapshot {
    Snapshot {
        xmin,
        now_us: Micros(now_us),
    }
}

/// Both must hold: no transaction of that time is open, and the hour for those without an xid.
#[test]
fn a_gap_settles_when_its_transactions_ended_and_an_hour_passed() {
    let void = void(1, &[7]);
    let hour = 100 + Micros::HOUR;
    for (xmin, now, expected) in [
        (49, 10 * hour, false),
        (50, hour - 1, false),
        (50, hour, true),
        (51, hour, true),
    ] {
        assert_eq!(void.is_settled(&snapshot(xmin, now)), expected);
        let got = settled(std::slice::from_ref(&void), &snapshot(xmin, now));
        assert_eq!(got.contains(EventId(7)), expected);
    }
}

#[test]
fn notes_follow_what_was_read() {
    let noted = [
        void(1, &[3, 4]),
        void(2, &[7, 8]),
        void(3, &[20]),
        void(4, &[11]),
    ];
    // 8 has a row now, 20 is below no candidate any more, 11 was not read, 9 and 10 are new gaps.
    let candidates = ids(&[3, 4, 7, 8, 9, 10, 11, 12]);
    let read = ids(&[3, 4, 7, 8, 9, 10]);
    let revision = revise(&noted, &candidates, &read, &ids(&[8]));
    assert_eq!(revision.forget, [2, 3]);
    assert_eq!(revision.note, [ids(&[7]), ids(&[9, 10])]);
    let calm = revise(&noted[..1], &ids(&[3, 4]), &ids(&[3, 4]), &ids(&[]));
    assert_eq!(calm, Revision::default());
}

/// Ids that were rolled back settle although new gaps come and go at every reading.
#[test]
fn a_rolled_back_id_settles_beside_a_busy_end() {
    let mut noted: Vec<Void> = Vec::new();
    let mut entry = 0;
    let mut made_of_7 = 0;
    for reading in 0..20 {
        // 7 is rolled back; the last two ids are in flight and have a row by the next reading.
        let high = 10 + 2 * reading;
        let candidates = ids(&[7, high, high + 1]);
        let revision = revise(&noted, &candidates, &candidates, &IdRanges::new());
        noted.retain(|void| !revision.forget.contains(&void.entry));
        for gap in revision.note {
            made_of_7 += usize::from(gap.contains(EventId(7)));
            entry += 1;
            noted.push(Void {
                ids: gap,
                ..void(entry, &[])
            });
        }
    }
    assert_eq!(made_of_7, 2, "noted once, and once more on its own");
    assert_eq!(noted.len(), 2);
}

/// Notes are joined by size, so an id is not made young again with every join.
#[test]
fn many_settled_notes_become_one() {
    let after = snapshot(90, 100 + Micros::HOUR);
    let small = |entry: i64| void(entry, &[entry * 2]);
    let many = MERGE_AT as i64;
    let mut noted: Vec<Void> = (1..many).map(small).collect();
    assert_eq!(merge(&noted, &after), Revision::default());
    noted.push(small(many));
    assert_eq!(
        merge(&noted, &snapshot(49, i64::MAX)),
        Revision::default(),
        "none is settled"
    );
    let revision = merge(&noted, &after);
    assert_eq!(revision.forget, (1..=many).collect::<Vec<_>>());
    let joined = IdRanges::from_ids((1..=many).map(|id| EventId(id * 2)));
    assert_eq!(revision.note, std::slice::from_ref(&joined));

    // The joined one is of another size and stays when the next small ones are joined.
    let mut next: Vec<Void> = (1_000..1_000 + many).map(small).collect();
    next.push(Void {
        ids: joined,
        ..void(1, &[])
    });
    assert!(!merge(&next, &after).forget.contains(&1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// After a revision the notes hold every gap that was read, nothing that has a row and
    /// nothing that is not in question.
    #[test]
    fn after_a_revision_the_notes_are_the_gaps(
        held in prop::collection::vec(prop::collection::btree_set(0_i64..30, 1..6), 0..5),
        candidates in prop::collection::btree_set(0_i64..30, 0..30),
        read in prop::collection::btree_set(0_i64..30, 0..30),
        rows in prop::collection::btree_set(0_i64..30, 0..30),
    ) {
        let set = |list: &std::collections::BTreeSet<i64>| {
            IdRanges::from_ids(list.iter().copied().map(EventId))
        };
        let noted: Vec<Void> = held
            .iter()
            .zip(0_i64..)
            .map(|(list, entry)| Void { ids: set(list), ..void(entry, &[]) })
            .collect();
        let (candidates, rows) = (set(&candidates), set(&rows));
        let read = set(&read).intersect(&candidates);
        let found = rows.intersect(&read);
        let before = noted.iter().fold(IdRanges::new(), |all, void| all.union(&void.ids));
        let revision = revise(&noted, &candidates, &read, &found);
        prop_assert!(revision.note.iter().all(|ids| !ids.is_empty()));
        let after = noted
            .iter()
            .filter(|void| !revision.forget.contains(&void.entry))
            .map(|void| &void.ids)
            .chain(&revision.note)
            .fold(IdRanges::new(), |all, ids| all.union(ids));
        let expected = read.union(&before).intersect(&candidates).subtract(&found);
        prop_assert_eq!(after, expected);
    }
}
