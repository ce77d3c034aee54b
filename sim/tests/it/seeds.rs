//! Without a bug nothing is found: fresh seeds, and those that once found something.

use sim::{Seeds, many, one};

/// Seeds that found something once, and what. Most of it was the world's own fault; they stay,
/// because each of them gets into a corner. A change to the world or the scheduler makes other
/// histories of them: what a seed found is kept here in words, and as a bug where it can be one.
const FOUND: [(u64, &str); 12] = [
    (
        2,
        "offsets of a topic that is gone, committed to the new one",
    ),
    (3, "a relay that is stopped while its slot is being made"),
    (
        14,
        "D-5, with a producer that goes on behind a failed record",
    ),
    (26, "D-5, with a slot that is dropped under its reader"),
    (57, "D-5, with a slot that is dropped under its reader"),
    (64, "two posts of one id, drawn while the clock stood back"),
    (
        243,
        "a delete that reaches the store before its commit is visible",
    ),
    (
        295,
        "a delete that a takeover has undone, and the store has not",
    ),
    (
        2_096,
        "claims that a restart of Postgres cuts, with their locks",
    ),
    (
        2_125,
        "a relay that holds a row from before its slot was made anew",
    ),
    (
        2_128,
        "D-6, with a revocation that is answered by offsets of a log that is gone",
    ),
    (
        679,
        "a hop whose stale offset is reached again to the number",
    ),
];

/// D-1 to D-13 and the promise hold over histories that got into corners before.
#[test]
fn seeds_that_found_something_are_clean() {
    for (seed, what) in FOUND {
        let outcome = one(seed, None);
        assert_eq!(outcome.violation, None, "seed {seed}: {what}");
    }
}

/// D-1 to D-13 and the promise hold over any history; these are few, `./x sim` runs thousands.
#[test]
fn some_seeds_are_clean() {
    let summary = many(
        Seeds {
            from: 10_000,
            count: 40,
            threads: 2,
            bug: None,
        },
        1,
    );
    assert_eq!(summary.violations, []);
    assert_eq!(summary.seeds, 40);
    assert!(
        summary.sent_again > 0,
        "the sweep has nothing to do: the faults do not strike"
    );
}

/// A seed is a history: the same one each time, in words or without.
#[test]
fn a_seed_is_one_history() {
    for seed in 1..6 {
        let (told, lines) = sim::tell(seed, None);
        let (again, lines_again) = sim::tell(seed, None);
        assert_eq!((&told, &lines), (&again, &lines_again));
        assert_eq!(one(seed, None), told);
        assert!(lines.len() > 50, "hardly anything happened: {lines:?}");
    }
}
