//! Every deliberate bug is found within 500 seeds, and by an invariant that it breaks.

use sim::{Bug, Seeds, many};

const WITHIN: u64 = 500;

fn is_found(bug: Bug) {
    let seeds = Seeds {
        from: 1,
        count: WITHIN,
        threads: 2,
        bug: Some(bug),
    };
    let summary = many(seeds, 1);
    let first = summary.violations.first();
    let found = first.and_then(|outcome| Some((outcome, outcome.violation.as_ref()?)));
    let Some((outcome, violation)) = found else {
        panic!("{WITHIN} seeds do not find that {}", bug.words());
    };
    assert!(
        bug.breaks().contains(&violation.invariant),
        "seed {} finds that {} by {}: {}",
        outcome.seed,
        bug.words(),
        violation.invariant.as_str(),
        violation.text
    );
    // It was the bug: the same history without it is clean.
    assert_eq!(sim::one(outcome.seed, None).violation, None);
}

macro_rules! bugs {
    ($($(#[$doc:meta])* $name:ident: $bug:ident;)+) => {
        $($(#[$doc])* #[test] fn $name() { is_found(Bug::$bug); })+

        #[test]
        fn every_bug_has_its_test() {
            assert_eq!([$(Bug::$bug),+], Bug::ALL);
        }
    };
}

bugs! {
    /// D-3.
    d_3_confirm_on_receipt: ConfirmOnReceipt;
    /// D-3.
    d_3_confirm_keepalive: ConfirmKeepalive;
    /// D-5.
    d_5_retry_behind_others: RetryBehindOthers;
    /// D-13.
    d_13_never_pause: NeverPause;
    /// D-4.
    d_4_silent_when_idle: SilentWhenIdle;
    /// D-9.
    d_9_ledger_before_ack: LedgerBeforeAck;
    /// D-6.
    d_6_commit_before_write: CommitBeforeWrite;
    /// D-6.
    d_6_stale_generation: StaleGeneration;
    /// D-6, D-12.
    d_6_unknown_is_done: UnknownIsDone;
    /// D-6.
    d_6_first_page_only: FirstPageOnly;
    /// D-12.
    d_12_dead_letter_on_outage: DeadLetterOnOutage;
    /// D-7.
    d_7_constant_ttl: ConstantTtl;
    /// D-7.
    d_7_worker_clock: WorkerClock;
    /// D-8.
    d_8_delete_at_post_time: DeleteAtPostTime;
    /// D-6, D-8.
    d_8_ignore_repeated_delete: IgnoreRepeatedDelete;
    /// D-6.
    d_6_latest_on_reset: LatestOnReset;
    /// D-6.
    d_6_answer_of_before: AnswerOfBefore;
    /// D-9.
    d_9_id_above_last: IdAboveLast;
    /// D-10.
    d_10_ignore_in_flight: IgnoreInFlight;
    /// D-10.
    d_10_no_grace: NoGrace;
    /// D-10.
    d_10_claim_without_lock: ClaimWithoutLock;
    /// D-11.
    d_11_drop_undelivered: DropUndelivered;
    /// D-9.
    d_9_trust_voids: TrustVoids;
    /// D-1.
    d_1_split_transaction: SplitTransaction;
    /// D-2.
    d_2_forget_key: ForgetKey;
}
