//! What an event asks for.
//!
//! Owns the choice between ways of delivery; every audience is pushed directly, page by page.

use events::{Event, Micros, PostId, UserId};

/// How one event will be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// One row for each follower, written as the followers are read.
    Direct(Post),
    /// The rows of all followers are deleted with this write timestamp.
    Delete {
        /// The post.
        post: Post,
        /// Above the write timestamp of each of its rows (D-8).
        del_us: Micros,
    },
    /// The event is not for this lane.
    Nothing,
}

/// The post that an event is about, as the event tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Post {
    /// Its id.
    pub id: PostId,
    /// Its author.
    pub author: UserId,
    /// When it was made.
    pub post_us: Micros,
}

/// Decides how an event will be delivered.
pub fn plan(event: &Event) -> Plan {
    match event {
        Event::PostCreated(created) => Plan::Direct(Post {
            id: created.post_id,
            author: created.author_id,
            post_us: created.post_us,
        }),
        Event::PostDeleted(deleted) => Plan::Delete {
            post: Post {
                id: deleted.post_id,
                author: deleted.author_id,
                post_us: deleted.post_us,
            },
            del_us: deleted.del_us,
        },
        Event::FollowCreated(_) | Event::FollowDeleted(_) => Plan::Nothing,
    }
}

/// Audiences of like size, the label of the latency histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AudienceClass {
    /// Nobody follows.
    None,
    /// Up to 100 followers.
    Small,
    /// Up to 5 000.
    Medium,
    /// Up to 100 000.
    Large,
    /// Above.
    Huge,
}

impl AudienceClass {
    /// Every class, in ascending order.
    pub const ALL: [Self; 5] = [
        Self::None,
        Self::Small,
        Self::Medium,
        Self::Large,
        Self::Huge,
    ];

    /// The class of an audience.
    pub const fn of(audience: u64) -> Self {
        match audience {
            0 => Self::None,
            1..=100 => Self::Small,
            101..=5_000 => Self::Medium,
            5_001..=100_000 => Self::Large,
            _ => Self::Huge,
        }
    }

    /// The label value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
            Self::Huge => "huge",
        }
    }
}

#[cfg(test)]
mod tests {
    use events::{FollowCreated, PostDeleted};

    use super::*;

    #[test]
    fn each_event_has_its_plan() {
        let deleted = Event::PostDeleted(PostDeleted {
            post_id: PostId(1),
            author_id: UserId(2),
            post_us: Micros(3),
            del_us: Micros(4),
        });
        let post = Post {
            id: PostId(1),
            author: UserId(2),
            post_us: Micros(3),
        };
        assert_eq!(
            plan(&deleted),
            Plan::Delete {
                post,
                del_us: Micros(4)
            }
        );
        let follow = Event::FollowCreated(FollowCreated {
            followee_id: UserId(1),
            follower_id: UserId(2),
            edge_us: Micros(3),
        });
        assert_eq!(plan(&follow), Plan::Nothing);
    }

    #[test]
    fn classes_meet_without_a_gap() {
        let classes: Vec<_> = [0, 1, 100, 101, 5_000, 5_001, 100_000, 100_001]
            .map(AudienceClass::of)
            .map(AudienceClass::as_str)
            .to_vec();
        assert_eq!(
            classes,
            [
                "none", "small", "small", "medium", "medium", "large", "large", "huge"
            ]
        );
    }
}
