//! The algebra of id sets against a naive set, and its text against Postgres's.

use std::collections::BTreeSet;

use events::{BLOCK, EventId, IdRange, IdRanges, block_of};
use proptest::prelude::*;

/// Small ids, so that ranges overlap, adjoin and repeat.
fn range() -> impl Strategy<Value = IdRange> {
    (-40_i64..40, -2_i64..12).prop_map(|(low, ids)| IdRange {
        low,
        high: low + ids,
    })
}

fn ranges() -> impl Strategy<Value = Vec<IdRange>> {
    prop::collection::vec(range(), 0..12)
}

fn naive(ranges: &[IdRange]) -> BTreeSet<i64> {
    ranges
        .iter()
        .flat_map(|range| range.low..range.high)
        .collect()
}

fn held(set: &IdRanges) -> BTreeSet<i64> {
    set.iter().flat_map(|range| range.low..range.high).collect()
}

/// In order, disjoint, not adjoining, none empty.
fn is_canonical(set: &IdRanges) -> bool {
    let ranges: Vec<_> = set.iter().collect();
    ranges.iter().all(|range| range.low < range.high)
        && ranges.windows(2).all(|pair| pair[0].high < pair[1].low)
}

fn check(set: &IdRanges, expected: &BTreeSet<i64>) {
    assert_eq!(held(set), *expected);
    assert!(is_canonical(set), "{set}");
    assert_eq!(set.ids(), expected.len() as u64);
    assert_eq!(set.is_empty(), expected.is_empty());
    assert_eq!(set.lowest().map(|id| id.0), expected.first().copied());
    assert_eq!(set.highest().map(|id| id.0), expected.last().copied());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn building_in_any_way_gives_the_same_set(list in ranges()) {
        let expected = naive(&list);
        let at_once = IdRanges::from_ranges(list.iter().copied());
        check(&at_once, &expected);
        let mut one_by_one = IdRanges::new();
        for range in &list {
            one_by_one.insert(*range);
        }
        prop_assert_eq!(&one_by_one, &at_once);
        let mut by_id = IdRanges::new();
        for range in list.iter().rev() {
            (range.low..range.high).rev().for_each(|id| by_id.insert_id(EventId(id)));
        }
        prop_assert_eq!(&by_id, &at_once);
        let ids = list.iter().flat_map(|range| range.low..range.high).map(EventId);
        prop_assert_eq!(&IdRanges::from_ids(ids), &at_once);
        for id in -60..60 {
            prop_assert_eq!(at_once.contains(EventId(id)), expected.contains(&id));
        }
    }

    #[test]
    fn two_sets_behave_as_sets(left in ranges(), right in ranges(), frame in range()) {
        let (a, b) = (naive(&left), naive(&right));
        let (x, y) = (IdRanges::from_ranges(left), IdRanges::from_ranges(right));
        check(&x.union(&y), &(&a | &b));
        check(&x.subtract(&y), &(&a - &b));
        check(&x.intersect(&y), &(&a & &b));
        check(&x.within(frame), &(&a & &naive(&[frame])));
    }

    #[test]
    fn the_first_ids_are_the_lowest(list in ranges(), max in 0_u64..60) {
        let lowest: BTreeSet<i64> = naive(&list).into_iter().take(max as usize).collect();
        check(&IdRanges::from_ranges(list).first(max), &lowest);
    }

    #[test]
    fn the_text_leads_back_to_the_set(list in ranges()) {
        let set = IdRanges::from_ranges(list);
        prop_assert_eq!(set.to_string().parse(), Ok(set));
    }

    /// Blocks put together are the set, each holds ids of its own block only, in order.
    #[test]
    fn blocks_cut_the_set(list in prop::collection::vec((0_i64..5 * BLOCK, 1_i64..3 * BLOCK), 0..6)) {
        let set = IdRanges::from_ranges(
            list.into_iter().map(|(low, ids)| IdRange { low, high: low + ids }),
        );
        let mut together = IdRanges::new();
        let mut last = None;
        for (block, ids) in set.blocks() {
            prop_assert!(Some(block) > last);
            last = Some(block);
            prop_assert!(!ids.is_empty() && is_canonical(&ids));
            prop_assert_eq!(ids.lowest().map(block_of), Some(block));
            prop_assert_eq!(ids.highest().map(block_of), Some(block));
            together = together.union(&ids);
        }
        prop_assert_eq!(together, set);
    }

    #[test]
    fn no_text_panics(text in "[\\[\\](){},0-9 -]{0,24}") {
        if let Ok(set) = text.parse::<IdRanges>() {
            prop_assert!(is_canonical(&set));
        }
    }
}

#[test]
fn the_text_is_that_of_a_multirange() {
    let set = IdRanges::from_ids([3, 4, 9].map(EventId));
    assert_eq!(set.to_string(), "{[3,5),[9,10)}");
    assert_eq!(IdRanges::new().to_string(), "{}");
    for (text, expected) in [
        ("{}", "{}"),
        ("{[3,4]}", "{[3,5)}"),
        ("{(2,5)}", "{[3,5)}"),
        (" { [3, 5) , [5,6] } ", "{[3,7)}"),
        ("{[-7,-3)}", "{[-7,-3)}"),
        ("{[9,10),[3,5)}", "{[3,5),[9,10)}"),
        ("{(,5)}", "{[-9223372036854775808,5)}"),
        ("{[3,)}", "{[3,9223372036854775807)}"),
        ("{(,)}", "{[-9223372036854775808,9223372036854775807)}"),
    ] {
        assert_eq!(text.parse::<IdRanges>().unwrap().to_string(), expected);
    }
    for text in [
        "",
        "{",
        "[3,5)",
        "{3,5}",
        "{[3,5),}",
        "{[3,5)[7,8)}",
        "{[3;5)}",
        "{[a,5)}",
        "{[3,5,7)}",
        "{[3,9223372036854775808)}",
    ] {
        let error = text.parse::<IdRanges>().unwrap_err();
        assert_eq!(error.text, text);
    }
}

#[test]
fn the_ends_of_64_bits_do_not_panic() {
    let all = IdRanges::from(IdRange::ALL);
    assert_eq!(all.ids(), u64::MAX);
    assert_eq!(all.first(3).ids(), 3);
    assert!(!all.contains(EventId(i64::MAX)), "as in Postgres");
    assert_eq!(IdRanges::from_ids([EventId(i64::MAX)]), IdRanges::new());
    assert_eq!(
        all.subtract(&IdRanges::from_ids([EventId(i64::MIN)])).ids(),
        u64::MAX - 1
    );
    let top = IdRanges::from(IdRange {
        low: i64::MAX - 3,
        high: i64::MAX,
    });
    assert_eq!(top.blocks().count(), 1);
    assert_eq!(all.blocks().take(3).count(), 3);
}
