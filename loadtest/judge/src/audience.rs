//! The audience rule: what one edge has to do with one post.
//!
//! Pure. Owns the rule of `delivery.md`: *must* = a follow acknowledged before the post was sent,
//! and no unfollow that may have come after it; *must not* = never followed, or an unfollow
//! acknowledged before the post was sent and no follow that may have come after it; else *may*.
//!
//! Only the order of sending and acknowledging is known, so "before" means: acknowledged before
//! the other one was sent. What overlaps is undecided.

use crate::journal::Seq;

/// What a change does to an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The edge begins.
    Follow,
    /// The edge ends.
    Unfollow,
}

/// One change of one edge, as the client saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeChange {
    /// What it does.
    pub change: Change,
    /// When it was sent.
    pub sent: Seq,
    /// When it was acknowledged; `None` while its outcome is unknown.
    pub acked: Option<Seq>,
}

/// What the promise says about one post in one timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It has to be there.
    Must,
    /// Both are right.
    May,
    /// It has no business there.
    MustNot,
}

/// Applies the rule to all changes of one edge, in the order they were sent, and the moment the
/// post was sent.
pub fn claim(changes: &[EdgeChange], post_sent: Seq) -> Claim {
    let before_post = |kind| {
        changes
            .iter()
            .rev()
            .find(move |c| c.change == kind && acked_before(c, post_sent))
    };
    let follows = changes.iter().filter(|c| c.change == Change::Follow);
    let unfollows = changes.iter().filter(|c| c.change == Change::Unfollow);
    if changes.iter().all(|c| c.change == Change::Unfollow) {
        return Claim::MustNot;
    }
    if let Some(follow) = before_post(Change::Follow)
        && unfollows
            .clone()
            .all(|unfollow| acked_before(unfollow, follow.sent))
    {
        return Claim::Must;
    }
    if let Some(unfollow) = before_post(Change::Unfollow)
        && follows
            .clone()
            .all(|follow| acked_before(follow, unfollow.sent))
    {
        return Claim::MustNot;
    }
    Claim::May
}

fn acked_before(change: &EdgeChange, moment: Seq) -> bool {
    change.acked.is_some_and(|acked| acked < moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(sent: Seq, acked: impl Into<Option<Seq>>) -> EdgeChange {
        EdgeChange {
            change: Change::Follow,
            sent,
            acked: acked.into(),
        }
    }

    fn unfollow(sent: Seq, acked: impl Into<Option<Seq>>) -> EdgeChange {
        EdgeChange {
            change: Change::Unfollow,
            sent,
            acked: acked.into(),
        }
    }

    #[test]
    fn the_rule() {
        let rows: [(&[EdgeChange], Claim); 13] = [
            (&[], Claim::MustNot),
            (&[unfollow(1, 2)], Claim::MustNot),
            (&[follow(1, 2)], Claim::Must),
            // The outcome is unknown, or known too late.
            (&[follow(1, None)], Claim::May),
            (&[follow(1, 11)], Claim::May),
            (&[follow(11, 12)], Claim::May),
            // An unfollow at any time after the follow takes the must away.
            (&[follow(1, 2), unfollow(20, 21)], Claim::May),
            (&[follow(1, 2), unfollow(20, None)], Claim::May),
            (&[follow(1, 2), unfollow(3, 4)], Claim::MustNot),
            (&[follow(1, 2), unfollow(3, 11)], Claim::May),
            (&[follow(1, 2), unfollow(3, 4), follow(5, 6)], Claim::Must),
            // A later follow may receive it by backfill.
            (&[follow(1, 2), unfollow(3, 4), follow(20, 21)], Claim::May),
            // The two overlapped: nobody knows which one came last.
            (&[follow(1, 5), unfollow(2, 4)], Claim::May),
        ];
        for (changes, expected) in rows {
            assert_eq!(claim(changes, 10), expected, "{changes:?}");
        }
    }
}
