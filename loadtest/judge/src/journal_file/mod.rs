//! The journal as a file: JSON lines, in the order of the operations.
//!
//! Owns the form of the lines, who writes them and who reads them. Does not own what they mean:
//! reading is nothing but telling a [`Journal`](crate::Journal) the same again.
//!
//! ```text
//! {"journal":{"version":1}}
//! {"graph":{"shape":{…},"add":0}}                      who follows whom before the first operation
//! {"post":{"op":1,"author":"5","key":"k-1"}}           about to be sent
//! {"post_acked":{"op":1,"id":"742…"}}                  the answer is here
//! {"follow":{"op":2,"follower":"7","followee":"5"}}
//! {"edge_acked":{"op":2}}
//! {"end":{}}                                           the generator ended in order
//! ```
//!
//! Promise: a line is with the operating system before its operation is sent, so the end of the
//! writing process, however sudden, loses nothing. [`JournalWriter::sync`] is for the end of the
//! machine. A last line that is torn says nothing and is told; any other bad line is an error,
//! with its number. An operation that has no acknowledgement is of unknown outcome.

mod reader;
mod writer;

use events::{Micros, PostId, UserId};
use graph::Shape;
use serde::{Deserialize, Serialize};

pub use reader::{JournalFile, ReadError, read};
pub use writer::{JournalWriter, Op};

/// The form that this code writes and reads.
const VERSION: u32 = 1;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Journal {
        version: u32,
    },
    Users {
        first: UserId,
        last: UserId,
    },
    Graph {
        shape: Shape,
        add: u64,
    },
    Follows {
        followee: UserId,
        followers: Vec<UserId>,
    },
    FollowsInPostgres {
        before: Micros,
    },
    BesideOthers {
        posts_up_to: PostId,
    },
    Post {
        op: Op,
        author: UserId,
        key: String,
    },
    PostAcked {
        op: Op,
        id: PostId,
    },
    Delete {
        op: Op,
    },
    DeleteAcked {
        op: Op,
    },
    Follow {
        op: Op,
        follower: UserId,
        followee: UserId,
    },
    Unfollow {
        op: Op,
        follower: UserId,
        followee: UserId,
    },
    EdgeAcked {
        op: Op,
    },
    End {},
}

#[cfg(test)]
mod tests;
