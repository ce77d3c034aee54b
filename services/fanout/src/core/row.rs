//! Event and follower make a row: the rules of time.
//!
//! Owns the write timestamp, the expiry and the late-edge rule. All times are Postgres's.
//! Promise: the same event and edge make the same row, whenever and wherever it is made (D-7).

use events::{Micros, UserId};

use super::plan::Post;

/// An edge newer than the post by more than this gets the post by backfill, not by fan-out. The
/// hour covers a clock of Postgres that stepped back.
pub const LATE_EDGE_US: i64 = Micros::HOUR;

/// One row for one timeline; the store's own type is made from it at the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Whose timeline.
    pub owner: UserId,
    /// The write timestamp of its cells.
    pub write_us: Micros,
    /// When it leaves the timeline.
    pub expires_us: Micros,
}

/// A follower and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Who follows.
    pub follower: UserId,
    /// When the edge was made.
    pub edge_us: Micros,
}

/// The row that `edge` gets of `post`; none if the edge is too new.
pub fn row(post: &Post, edge: Edge, retention_us: i64) -> Option<Row> {
    if edge.edge_us > post.post_us.plus(LATE_EDGE_US) {
        return None;
    }
    Some(Row {
        owner: edge.follower,
        write_us: post.post_us.max(edge.edge_us),
        expires_us: post.post_us.plus(retention_us),
    })
}

/// Whether a post is so old that a delete of it may have been forgotten by the store: writing it
/// now could bring it back (D-8).
pub fn is_past_horizon(post: &Post, pg_now: Micros, horizon_us: i64) -> bool {
    pg_now >= post.post_us.plus(horizon_us)
}

#[cfg(test)]
mod tests {
    use events::PostId;

    use super::*;

    const POST: Post = Post {
        id: PostId(1),
        author: UserId(2),
        post_us: Micros(10_000_000_000),
    };

    #[test]
    fn d_7_table_of_row_times() {
        let table = [
            // An edge made before the post takes the post's time.
            (1, Some(10_000_000_000)),
            (10_000_000_000, Some(10_000_000_000)),
            // One made within the hour takes its own.
            (10_000_000_001, Some(10_000_000_001)),
            (
                10_000_000_000 + LATE_EDGE_US,
                Some(10_000_000_000 + LATE_EDGE_US),
            ),
            // A later one is for backfill.
            (10_000_000_001 + LATE_EDGE_US, None),
        ];
        for (edge_us, write_us) in table {
            let made = row(
                &POST,
                Edge {
                    follower: UserId(9),
                    edge_us: Micros(edge_us),
                },
                500,
            );
            assert_eq!(
                made.map(|row| row.write_us.0),
                write_us,
                "edge at {edge_us}"
            );
            if let Some(made) = made {
                assert_eq!(
                    (made.owner, made.expires_us),
                    (UserId(9), Micros(10_000_000_500))
                );
            }
        }
    }

    #[test]
    fn d_8_horizon_is_by_the_age_of_the_post() {
        assert!(!is_past_horizon(&POST, Micros(10_000_000_099), 100));
        assert!(is_past_horizon(&POST, Micros(10_000_000_100), 100));
    }
}
