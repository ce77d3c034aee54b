//! One order out of several sources that were read to different depths.
//!
//! Each source is loaded newest first up to some number of rows. Below the oldest loaded row of a
//! source that has more, nothing is known about it; so the merge ends at the newest of these
//! depths, the *boundary*. Going further would step over rows that are merely not loaded yet.

use events::{PostId, UserId};

/// A row that stands in some source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which post.
    pub post: PostId,
    /// Who wrote it.
    pub author: UserId,
}

/// What was loaded from one source below a common position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The newest rows, newest first.
    pub entries: Vec<Entry>,
    /// Whether the source has no more rows than these.
    pub exhausted: bool,
}

/// The rows that are known from all sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Newest first, each post once.
    pub entries: Vec<Entry>,
    /// Whether nothing lies below them in any source.
    pub exhausted: bool,
}

/// Merges windows down to the boundary.
#[must_use]
pub fn merge(windows: &[Window]) -> Merged {
    let open = || windows.iter().filter(|window| !window.exhausted);
    // An open source that showed no row may have one anywhere.
    if open().any(|window| window.entries.is_empty()) {
        return Merged {
            entries: Vec::new(),
            exhausted: false,
        };
    }
    let boundary = open()
        .filter_map(|window| window.entries.last())
        .map(|entry| entry.post)
        .max();
    let mut entries: Vec<Entry> = windows
        .iter()
        .flat_map(|window| &window.entries)
        .filter(|entry| boundary.is_none_or(|boundary| entry.post >= boundary))
        .copied()
        .collect();
    entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.post));
    entries.dedup_by_key(|entry| entry.post);
    Merged {
        entries,
        exhausted: boundary.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(posts: &[i64], exhausted: bool) -> Window {
        let entries = posts
            .iter()
            .map(|&post| Entry {
                post: PostId(post),
                author: UserId(1),
            })
            .collect();
        Window { entries, exhausted }
    }

    fn merged(windows: &[Window]) -> (Vec<i64>, bool) {
        let merged = merge(windows);
        (
            merged.entries.iter().map(|entry| entry.post.0).collect(),
            merged.exhausted,
        )
    }

    #[test]
    fn sources_of_one_depth_interleave_and_repeat_nothing() {
        let both = [window(&[9, 7, 5], true), window(&[8, 7, 1], true)];
        assert_eq!(merged(&both), (vec![9, 8, 7, 5, 1], true));
    }

    #[test]
    fn the_shallower_open_source_sets_the_boundary() {
        let both = [window(&[9, 8, 7], false), window(&[6, 5, 4], false)];
        assert_eq!(merged(&both), (vec![9, 8, 7], false));
    }

    #[test]
    fn an_exhausted_source_sets_no_boundary() {
        let both = [window(&[9], true), window(&[8, 3], false)];
        assert_eq!(merged(&both), (vec![9, 8, 3], false));
        assert_eq!(
            merged(&[window(&[], true), window(&[2], true)]),
            (vec![2], true)
        );
    }

    #[test]
    fn an_open_source_without_rows_holds_everything_back() {
        assert_eq!(
            merged(&[window(&[], false), window(&[2], true)]),
            (vec![], false)
        );
    }
}
