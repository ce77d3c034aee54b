//! Deliberate bugs, one at a time: what a wrong core would do, put at the seam between the right
//! core and the world. A simulation that does not find them proves nothing.

use crate::invariants::Invariant;

/// A bug. See [`Bug::words`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bug {
    /// Relay: see [`Bug::words`], as for all.
    ConfirmOnReceipt,
    /// Relay.
    ConfirmKeepalive,
    /// Relay.
    RetryBehindOthers,
    /// Relay.
    NeverPause,
    /// Relay.
    SilentWhenIdle,
    /// Relay.
    LedgerBeforeAck,
    /// Fan-out.
    CommitBeforeWrite,
    /// Fan-out.
    StaleGeneration,
    /// Fan-out.
    UnknownIsDone,
    /// Fan-out.
    FirstPageOnly,
    /// Fan-out.
    DeadLetterOnOutage,
    /// Fan-out.
    ConstantTtl,
    /// Fan-out.
    WorkerClock,
    /// Fan-out.
    DeleteAtPostTime,
    /// Fan-out.
    IgnoreRepeatedDelete,
    /// Fan-out.
    LatestOnReset,
    /// Fan-out.
    AnswerOfBefore,
    /// Sweep.
    IdAboveLast,
    /// Sweep.
    IgnoreInFlight,
    /// Sweep.
    NoGrace,
    /// Sweep.
    ClaimWithoutLock,
    /// Sweep.
    DropUndelivered,
    /// Sweep.
    TrustVoids,
    /// Writer.
    SplitTransaction,
    /// Writer.
    ForgetKey,
}

impl Bug {
    /// Every bug.
    pub const ALL: [Self; 25] = [
        Self::ConfirmOnReceipt,
        Self::ConfirmKeepalive,
        Self::RetryBehindOthers,
        Self::NeverPause,
        Self::SilentWhenIdle,
        Self::LedgerBeforeAck,
        Self::CommitBeforeWrite,
        Self::StaleGeneration,
        Self::UnknownIsDone,
        Self::FirstPageOnly,
        Self::DeadLetterOnOutage,
        Self::ConstantTtl,
        Self::WorkerClock,
        Self::DeleteAtPostTime,
        Self::IgnoreRepeatedDelete,
        Self::LatestOnReset,
        Self::AnswerOfBefore,
        Self::IdAboveLast,
        Self::IgnoreInFlight,
        Self::NoGrace,
        Self::ClaimWithoutLock,
        Self::DropUndelivered,
        Self::TrustVoids,
        Self::SplitTransaction,
        Self::ForgetKey,
    ];

    /// The name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfirmOnReceipt => "confirm-on-receipt",
            Self::ConfirmKeepalive => "confirm-keepalive",
            Self::RetryBehindOthers => "retry-behind-others",
            Self::NeverPause => "never-pause",
            Self::SilentWhenIdle => "silent-when-idle",
            Self::LedgerBeforeAck => "ledger-before-ack",
            Self::CommitBeforeWrite => "commit-before-write",
            Self::StaleGeneration => "stale-generation",
            Self::UnknownIsDone => "unknown-is-done",
            Self::FirstPageOnly => "first-page-only",
            Self::DeadLetterOnOutage => "dead-letter-on-outage",
            Self::ConstantTtl => "constant-ttl",
            Self::WorkerClock => "worker-clock",
            Self::DeleteAtPostTime => "delete-at-post-time",
            Self::IgnoreRepeatedDelete => "ignore-repeated-delete",
            Self::LatestOnReset => "latest-on-reset",
            Self::AnswerOfBefore => "answer-of-before",
            Self::IdAboveLast => "id-above-last",
            Self::IgnoreInFlight => "ignore-in-flight",
            Self::NoGrace => "no-grace",
            Self::ClaimWithoutLock => "claim-without-lock",
            Self::DropUndelivered => "drop-undelivered",
            Self::TrustVoids => "trust-voids",
            Self::SplitTransaction => "split-transaction",
            Self::ForgetKey => "forget-key",
        }
    }

    /// What is wrong.
    pub const fn words(self) -> &'static str {
        match self {
            Self::ConfirmOnReceipt => "a position is confirmed once it is received",
            Self::ConfirmKeepalive => "a keepalive is confirmed while rows are outstanding",
            Self::RetryBehindOthers => "a record that failed is sent again behind later ones",
            Self::NeverPause => "reading goes on whatever is in flight",
            Self::SilentWhenIdle => "keepalives never move the confirmed position",
            Self::LedgerBeforeAck => "an event is entered as published when it is sent",
            Self::CommitBeforeWrite => "a record counts as finished when its work begins",
            Self::StaleGeneration => "a completion of an earlier assignment counts for this one",
            Self::UnknownIsDone => "a write without an answer counts as written",
            Self::FirstPageOnly => "only the first page of followers is read",
            Self::DeadLetterOnOutage => {
                "a write that fails again and again goes to the dead letters"
            }
            Self::ConstantTtl => "a row lives for the whole retention from its write on",
            Self::WorkerClock => "rows carry the worker's time as write timestamp",
            Self::DeleteAtPostTime => "deletes carry the post's time as write timestamp",
            Self::IgnoreRepeatedDelete => "a delete that is read again is skipped",
            Self::LatestOnReset => {
                "a partition without its offset goes on at the end, and nobody is told"
            }
            Self::AnswerOfBefore => {
                "the answer to a revocation commits offsets of a log that is gone"
            }
            Self::IdAboveLast => "a look selects ids above the last one it saw",
            Self::IgnoreInFlight => "a look is claimed without waiting for any position",
            Self::NoGrace => "a claim does not wait for the ledger, nor subtract it again",
            Self::ClaimWithoutLock => "a block is claimed without its lock",
            Self::DropUndelivered => "a day goes when it is old",
            Self::TrustVoids => "a gap that was noted once is never read again",
            Self::SplitTransaction => "a post and its event are committed apart",
            Self::ForgetKey => "a request that is repeated makes another post",
        }
    }

    /// The invariants that may find it first.
    pub const fn breaks(self) -> &'static [Invariant] {
        match self {
            Self::ConfirmOnReceipt | Self::ConfirmKeepalive => &[Invariant::D3],
            Self::RetryBehindOthers => &[Invariant::D5],
            Self::NeverPause => &[Invariant::D13],
            Self::SilentWhenIdle => &[Invariant::D4],
            Self::LedgerBeforeAck => &[Invariant::D9],
            Self::CommitBeforeWrite
            | Self::StaleGeneration
            | Self::FirstPageOnly
            | Self::IgnoreRepeatedDelete => &[Invariant::D6, Invariant::D9],
            Self::UnknownIsDone => &[Invariant::D6, Invariant::D9, Invariant::D12],
            Self::DeadLetterOnOutage => &[Invariant::D12],
            Self::ConstantTtl => &[Invariant::D7],
            Self::WorkerClock => &[Invariant::D7, Invariant::D8],
            Self::DeleteAtPostTime => &[Invariant::D8],
            Self::AnswerOfBefore => &[Invariant::D6],
            Self::LatestOnReset => &[Invariant::D6, Invariant::D9, Invariant::Fault],
            Self::IdAboveLast | Self::TrustVoids => &[Invariant::D9],
            Self::IgnoreInFlight | Self::NoGrace | Self::ClaimWithoutLock => &[Invariant::D10],
            Self::DropUndelivered => &[Invariant::D11],
            Self::SplitTransaction => &[Invariant::D1],
            Self::ForgetKey => &[Invariant::D2],
        }
    }

    /// The bug of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bug| bug.as_str() == name)
    }
}
