//! Old days, and the drop rule.

use events::{EventType, IdRanges, Stage};
use proptest::prelude::*;

use super::*;
use crate::core::days::{Day, Finished, Row, SAMPLE, is_old, may_drop};

const HOUR: i64 = Micros::HOUR;

#[test]
fn a_day_is_of_utc() {
    assert_eq!(Day::of(Micros(0)), Day(0));
    assert_eq!(Day::of(Micros(24 * HOUR - 1)), Day(0));
    assert_eq!(Day::of(Micros(24 * HOUR)), Day(1));
    assert_eq!(Day::of(Micros(-1)), Day(-1));
    assert_eq!(Day::of(Micros(i64::MAX)), Day(106_751_991));
}

/// The last day of the retention stays, since a clock may step back.
#[test]
fn a_day_is_old_behind_the_retention() {
    let today = Day(20_513);
    assert!(!is_old(today, today, 0));
    assert!(!is_old(Day(20_511), today, 2));
    assert!(is_old(Day(20_510), today, 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// D-11: a day goes only if every row is finished in every critical stage that accounts for
    /// it, against the rule spelled out id by id.
    #[test]
    fn a_day_goes_only_when_every_row_is_finished(
        types in prop::collection::vec(0_usize..5, 0..20),
        published in prop::collection::btree_set(0_i64..20, 0..20),
        delivered in prop::collection::btree_set(0_i64..20, 0..20),
        full in any::<[bool; 2]>(),
    ) {
        let kinds = [
            Some(EventType::PostCreatedV1),
            Some(EventType::PostDeletedV1),
            Some(EventType::FollowCreatedV1),
            Some(EventType::FollowDeletedV1),
            None,
        ];
        let rows: Vec<Row> = types
            .iter()
            .zip(0_i64..)
            .map(|(kind, id)| Row { event: EventId(id), event_type: kinds[*kind] })
            .collect();
        // Often everything is finished, so that both answers are seen.
        let all = || (0..20).collect();
        let published = if full[0] { all() } else { published };
        let delivered = if full[1] { all() } else { delivered };
        let held = |stage: Stage, done: &std::collections::BTreeSet<i64>| -> Vec<EventId> {
            rows.iter()
                .filter(|row| match stage {
                    Stage::Published => true,
                    Stage::Delivered => types[row.event.0 as usize] < 2,
                })
                .filter(|row| !done.contains(&row.event.0))
                .map(|row| row.event)
                .collect()
        };
        let finished = [(Stage::Published, &published), (Stage::Delivered, &delivered)];
        let expected = finished
            .iter()
            .map(|(stage, done)| (*stage, held(*stage, done)))
            .find(|(_, held)| !held.is_empty());
        let given = finished.map(|(stage, done)| Finished {
            stage,
            ids: IdRanges::from_ids(done.iter().copied().map(EventId)),
        });
        match (may_drop(&rows, &given), expected) {
            (Ok(()), None) => {}
            (Err(unfinished), Some((stage, held))) => {
                prop_assert_eq!(unfinished.stage, stage);
                prop_assert_eq!(unfinished.count, held.len() as u64);
                let sample: Vec<EventId> = held.into_iter().take(SAMPLE).collect();
                prop_assert_eq!(unfinished.sample, sample);
            }
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }
}

/// D-11: what no stage says anything about holds its day, and parts of one stage add up.
#[test]
fn a_stage_that_says_nothing_has_finished_nothing() {
    let row = Row {
        event: EventId(5),
        event_type: Some(EventType::PostCreatedV1),
    };
    let part = |stage, id| Finished {
        stage,
        ids: IdRanges::from_ids([EventId(id)]),
    };
    let error = may_drop(&[row], &[part(Stage::Published, 5)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "1 rows are unfinished in delivered, among them [EventId(5)]"
    );
    let finished = [
        part(Stage::Published, 5),
        part(Stage::Delivered, 4),
        part(Stage::Delivered, 5),
    ];
    assert_eq!(may_drop(&[row], &finished), Ok(()));
    assert_eq!(may_drop(&[], &[]), Ok(()), "an empty day");
}
