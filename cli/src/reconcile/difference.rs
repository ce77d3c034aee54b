//! The kinds of difference, and how many of each were found where.

use std::collections::BTreeMap;

use events::{EventId, PostId, UserId};
use serde::Serialize;

/// Examples kept of each kind.
const EXAMPLES: usize = 5;

/// A kind of difference between the stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A post without the outbox row of its creation.
    PostWithoutEvent,
    /// A deleted post without the outbox row of its deletion.
    DeleteWithoutEvent,
    /// An outbox row whose post is not there: a ghost.
    EventWithoutPost,
    /// An outbox row that is not published and not given up.
    NotPublished,
    /// A published outbox row that is not delivered and not given up.
    NotDelivered,
    /// The ledger says delivered, and a follower that must have the post has it not.
    RowsMissing,
    /// The ledger says deleted, and a follower still has the post.
    RowsOfDeleted,
    /// A row that no post and no follow explains.
    RowsUnexplained,
    /// An id in the ledger that no outbox row has.
    LedgerWithoutRow,
    /// An open dead letter.
    DeadLetterOpen,
}

impl Kind {
    /// The word for it, in JSON too.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::PostWithoutEvent => "post_without_event",
            Self::DeleteWithoutEvent => "delete_without_event",
            Self::EventWithoutPost => "event_without_post",
            Self::NotPublished => "not_published",
            Self::NotDelivered => "not_delivered",
            Self::RowsMissing => "rows_missing",
            Self::RowsOfDeleted => "rows_of_deleted",
            Self::RowsUnexplained => "rows_unexplained",
            Self::LedgerWithoutRow => "ledger_without_row",
            Self::DeadLetterOpen => "dead_letter_open",
        }
    }

    /// What it means.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::PostWithoutEvent => "posts that were never announced: the outbox has no row",
            Self::DeleteWithoutEvent => {
                "deletions that were never announced: the outbox has no row"
            }
            Self::EventWithoutPost => "outbox rows whose post is not there",
            Self::NotPublished => "outbox rows that are neither published nor given up",
            Self::NotDelivered => "published outbox rows that are neither delivered nor given up",
            Self::RowsMissing => {
                "timeline rows that the ledger calls delivered and that are not there"
            }
            Self::RowsOfDeleted => {
                "timeline rows of deleted posts whose deletion the ledger calls delivered"
            }
            Self::RowsUnexplained => "timeline rows that no post and no follow explains",
            Self::LedgerWithoutRow => "ids in the ledger that no outbox row has",
            Self::DeadLetterOpen => "open dead letters",
        }
    }
}

/// One place where something differs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Place {
    /// The outbox id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) event: Option<EventId>,
    /// The last outbox id, where it is a run of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_event: Option<EventId>,
    /// The post.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) post: Option<PostId>,
    /// The timeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<UserId>,
    /// What else is to be said of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// What was found of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// How many.
    pub(crate) count: u64,
    /// The first few.
    pub(crate) examples: Vec<Place>,
    /// Lowest and highest outbox id among all of them.
    pub(crate) span: Option<(EventId, EventId)>,
    /// How many were repaired.
    pub(crate) repaired: u64,
}

/// Everything that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    by_kind: BTreeMap<Kind, Tally>,
}

impl Differences {
    /// Adds one difference.
    pub(crate) fn add(&mut self, kind: Kind, place: Place) {
        self.add_many(kind, 1, place);
    }

    /// Adds `count` differences, of which `place` is told.
    pub(crate) fn add_many(&mut self, kind: Kind, count: u64, place: Place) {
        let tally = self.by_kind.entry(kind).or_default();
        tally.count += count;
        if let Some(low) = place.event {
            let high = place.last_event.unwrap_or(low);
            tally.span = Some(match tally.span {
                None => (low, high),
                Some((lowest, highest)) => (lowest.min(low), highest.max(high)),
            });
        }
        if tally.examples.len() < EXAMPLES {
            tally.examples.push(place);
        }
    }

    /// Notes how many of a kind were repaired.
    pub(crate) fn repaired(&mut self, kind: Kind, count: u64) {
        self.by_kind.entry(kind).or_default().repaired += count;
    }

    /// The kinds that were found, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Kind, &Tally)> {
        self.by_kind
            .iter()
            .filter(|(_, tally)| tally.count > 0)
            .map(|(kind, tally)| (*kind, tally))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_counts_all_and_keeps_few() {
        let mut found = Differences::default();
        for id in [9, 3, 5, 7, 4, 8, 6] {
            let place = Place {
                event: Some(EventId(id)),
                ..Place::default()
            };
            found.add(Kind::NotDelivered, place);
        }
        let run = Place {
            event: Some(EventId(20)),
            last_event: Some(EventId(29)),
            ..Place::default()
        };
        found.add_many(Kind::LedgerWithoutRow, 10, run);
        found.repaired(Kind::LedgerWithoutRow, 10);
        found.repaired(Kind::RowsMissing, 0);
        let all: Vec<_> = found.iter().collect();
        assert_eq!(all.len(), 2);
        let (kind, tally) = all[0];
        assert_eq!((kind, tally.count), (Kind::NotDelivered, 7));
        assert_eq!(tally.examples.len(), EXAMPLES);
        assert_eq!(tally.span, Some((EventId(3), EventId(9))));
        let (_, tally) = all[1];
        assert_eq!(tally.span, Some((EventId(20), EventId(29))));
        assert_eq!((tally.count, tally.repaired), (10, 10));
    }
}
