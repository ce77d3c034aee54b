//! Fills one timeline page from merged rows, some of which may not be shown.
//!
//! The position of a page is the last *raw* row it consumed, shown or not. So a page that the
//! filter emptied still has a place to go on from, and a walk neither repeats nor skips a row.
//!
//! Bounded: at most [`MAX_ROUNDS`] loads of at most [`MAX_ROWS`] rows. A page that is still not
//! full then is handed over as it is, with a position.

use events::PostId;

use crate::core::merge::{Entry, Merged};

/// Loads for one page.
pub const MAX_ROUNDS: u32 = 5;
/// Rows of one load from one source.
pub const MAX_ROWS: usize = 200;

/// The next load: from every source, rows below `before`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Exclusive; none at the head of the timeline.
    pub before: Option<PostId>,
    /// At most this many from each source.
    pub rows: usize,
}

/// A page that is being filled.
#[derive(Debug)]
pub struct Fill {
    limit: usize,
    rounds: u32,
    position: Option<PostId>,
    shown: Vec<PostId>,
    ended: bool,
}

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Newest first.
    pub posts: Vec<PostId>,
    /// Where the next page goes on; none only at the real end.
    pub next: Option<PostId>,
}

impl Fill {
    /// A page of up to `limit` posts below `position`.
    #[must_use]
    pub const fn new(position: Option<PostId>, limit: usize) -> Self {
        Self {
            limit,
            rounds: 0,
            position,
            shown: Vec::new(),
            ended: false,
        }
    }

    /// What to load next; none when the page is done.
    #[must_use]
    pub fn next_load(&self) -> Option<Load> {
        let missing = self.limit.saturating_sub(self.shown.len());
        if missing == 0 || self.ended || self.rounds >= MAX_ROUNDS {
            return None;
        }
        // A few rows more than are missing, so that the odd deleted post costs no second round;
        // twice as many at each further round, for a head that is hidden as a whole.
        let rows = (missing + missing / 4 + 4) << self.rounds;
        Some(Load {
            before: self.position,
            rows: rows.min(MAX_ROWS),
        })
    }

    /// Consumes the rows of one load, in order, until the page is full.
    pub fn consume(&mut self, merged: &Merged, visible: impl Fn(&Entry) -> bool) {
        self.rounds += 1;
        for (index, entry) in merged.entries.iter().enumerate() {
            self.position = Some(entry.post);
            if visible(entry) {
                self.shown.push(entry.post);
            }
            if self.shown.len() == self.limit {
                self.ended = merged.exhausted && index + 1 == merged.entries.len();
                return;
            }
        }
        self.ended = merged.exhausted;
    }

    /// The posts on the page so far.
    #[must_use]
    pub fn shown(&self) -> &[PostId] {
        &self.shown
    }

    /// The page as it is now.
    #[must_use]
    pub fn finish(self) -> Filled {
        Filled {
            posts: self.shown,
            next: self.position.filter(|_| !self.ended),
        }
    }
}

#[cfg(test)]
mod tests {
    use events::UserId;

    use super::*;

    fn merged(posts: &[i64], exhausted: bool) -> Merged {
        let entries = posts
            .iter()
            .map(|&post| Entry {
                post: PostId(post),
                author: UserId(1),
            })
            .collect();
        Merged { entries, exhausted }
    }

    fn filled(posts: &[i64], next: Option<i64>) -> Filled {
        Filled {
            posts: posts.iter().map(|&post| PostId(post)).collect(),
            next: next.map(PostId),
        }
    }

    #[test]
    fn a_full_page_stops_at_its_last_row() {
        let mut fill = Fill::new(None, 2);
        fill.consume(&merged(&[9, 8, 7], true), |_| true);
        assert_eq!(fill.next_load(), None);
        assert_eq!(fill.finish(), filled(&[9, 8], Some(8)));
    }

    #[test]
    fn the_cursor_is_absent_at_the_real_end_only() {
        let mut exact = Fill::new(None, 2);
        exact.consume(&merged(&[9, 8], true), |_| true);
        assert_eq!(exact.finish(), filled(&[9, 8], None));
        let mut open = Fill::new(None, 2);
        open.consume(&merged(&[9, 8], false), |_| true);
        assert_eq!(open.finish(), filled(&[9, 8], Some(8)));
        let mut empty = Fill::new(Some(PostId(5)), 2);
        empty.consume(&merged(&[], true), |_| true);
        assert_eq!(empty.finish(), filled(&[], None));
    }

    /// Scenario 45: hidden rows at the head do not make an empty home.
    #[test]
    fn hidden_rows_are_stepped_over() {
        let mut fill = Fill::new(None, 2);
        fill.consume(&merged(&[9, 8, 7], false), |_| false);
        let load = fill.next_load().expect("the page is not full");
        assert_eq!(load.before, Some(PostId(7)));
        fill.consume(&merged(&[6, 5, 4], false), |_| true);
        assert_eq!(fill.finish(), filled(&[6, 5], Some(5)));
    }

    #[test]
    fn rounds_are_bounded_and_leave_a_position() {
        let mut fill = Fill::new(None, 100);
        let mut id = 1_000_000;
        let mut rounds = 0;
        while let Some(load) = fill.next_load() {
            assert!(load.rows <= MAX_ROWS);
            id -= 1;
            rounds += 1;
            fill.consume(&merged(&[id], false), |_| false);
        }
        assert_eq!(rounds, MAX_ROUNDS);
        assert_eq!(fill.finish(), filled(&[], Some(id)));
    }
}
