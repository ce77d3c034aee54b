//! The plan of the traffic: what is sent, and when. Pure, from a seed.
//!
//! People's own posts are never deleted and their own follows never changed: deletions and
//! unfollows then happen among the demo's own accounts.

use std::collections::BTreeSet;
use std::time::Duration;

use events::UserId;
use fastrand::Rng;
use judge::Change;

use crate::graph::Graph;
use crate::input::{Input, OwnPost};

/// Posts of the celebrity in generated traffic, apart from those that time the kill.
const CELEBRITY_POSTS: usize = 3;

/// Every so many posts, the client sends one again with the same key, as if it had not heard the
/// answer.
const REPEAT_EVERY: usize = 40;

/// Posts of the demo's own that are added to people's posts, so that something can be deleted.
const ADDED: usize = 20;

/// How much is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Volume {
    pub(crate) posts: usize,
    pub(crate) span: Duration,
    pub(crate) deletes: usize,
    /// So many unfollows and as many follows.
    pub(crate) edges: usize,
}

/// One thing to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Post(PlannedPost),
    Edge {
        change: Change,
        follower: UserId,
        followee: UserId,
    },
}

/// One post to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedPost {
    pub(crate) author: UserId,
    pub(crate) text: String,
    /// How long after its acknowledgement it is deleted.
    pub(crate) delete_after: Option<Duration>,
    /// Whether it is sent again with the same key.
    pub(crate) repeat: bool,
}

/// What is sent, in the order of the times.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) ops: Vec<(Duration, Op)>,
    pub(crate) span: Duration,
}

impl Plan {
    /// How many posts it has.
    pub(crate) fn posts(&self) -> usize {
        self.ops
            .iter()
            .filter(|(_, op)| matches!(op, Op::Post(_)))
            .count()
    }
}

/// Makes the plan. The same input and seed make the same plan.
pub(crate) fn make(graph: &Graph, input: &Input, volume: Volume, rng: &mut Rng) -> Plan {
    let mut posts = match &input.posts {
        Some(own) => own_posts(graph, own, volume.span),
        None => generated_posts(graph, volume, rng),
    };
    let first_own = if input.posts.is_some() {
        posts.len()
    } else {
        0
    };
    if input.posts.is_some() {
        posts.extend((0..ADDED).map(|number| {
            (
                share(volume.span, number, ADDED),
                text_post(graph.pacer, number),
            )
        }));
    }
    let deletable = posts.get_mut(first_own..).unwrap_or_default();
    let mut places: Vec<usize> = (0..deletable.len()).collect();
    rng.shuffle(&mut places);
    for place in places.into_iter().take(volume.deletes) {
        if let Some((_, post)) = deletable.get_mut(place) {
            post.delete_after = Some(Duration::from_millis(rng.u64(0..3_000)));
        }
    }
    for (_, post) in posts
        .iter_mut()
        .skip(REPEAT_EVERY / 2)
        .step_by(REPEAT_EVERY)
    {
        post.repeat = true;
    }
    let mut ops: Vec<(Duration, Op)> = posts
        .into_iter()
        .map(|(at, post)| (at, Op::Post(post)))
        .collect();
    ops.extend(edges(graph, input, volume, rng));
    ops.sort_by_key(|(at, _)| *at);
    Plan {
        ops,
        span: volume.span,
    }
}

fn generated_posts(graph: &Graph, volume: Volume, rng: &mut Rng) -> Vec<(Duration, PlannedPost)> {
    let celebrity_every = volume.posts / (CELEBRITY_POSTS + 1);
    (0..volume.posts)
        .map(|number| {
            let celebrity = number > 0 && number % celebrity_every.max(1) == 0;
            let author = if celebrity {
                Some(graph.celebrity)
            } else {
                rng.choice(graph.authors.iter().copied())
            };
            (
                share(volume.span, number, volume.posts),
                text_post(author.unwrap_or(graph.pacer), number),
            )
        })
        .collect()
}

fn text_post(author: UserId, number: usize) -> PlannedPost {
    PlannedPost {
        author,
        text: format!("post number {number} of this run"),
        delete_after: None,
        repeat: false,
    }
}

/// Their times only space them: the longest distance that they make is `span`. A post without a
/// time comes with the one before it, and without any times they come evenly.
fn own_posts(graph: &Graph, own: &[OwnPost], span: Duration) -> Vec<(Duration, PlannedPost)> {
    let times: Vec<f64> = own.iter().filter_map(|post| post.time).collect();
    let first = times.iter().copied().fold(f64::INFINITY, f64::min);
    let last = times.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let distance = last - first;
    let scale = if distance > span.as_secs_f64() {
        span.as_secs_f64() / distance
    } else {
        1.0
    };
    let mut before = Duration::ZERO;
    let place = |(number, post): (usize, &OwnPost)| {
        let at = match post.time {
            Some(time) => Duration::try_from_secs_f64((time - first) * scale).unwrap_or_default(),
            None if times.is_empty() => share(span, number, own.len()),
            None => before,
        };
        before = at;
        let author = graph
            .by_handle
            .get(&post.author)
            .copied()
            .unwrap_or(graph.pacer);
        (
            at,
            PlannedPost {
                author,
                text: post.text.clone(),
                delete_after: None,
                repeat: false,
            },
        )
    };
    own.iter().enumerate().map(place).collect()
}

/// Unfollows of edges that are there and follows that are not, each pair at most once.
fn edges(graph: &Graph, input: &Input, volume: Volume, rng: &mut Rng) -> Vec<(Duration, Op)> {
    let authors: Vec<UserId> = match &input.follows {
        None => graph
            .authors
            .iter()
            .copied()
            .chain([graph.celebrity])
            .collect(),
        Some(_) => vec![graph.celebrity],
    };
    let users = graph.handles.len();
    let mut taken: BTreeSet<(UserId, UserId)> = BTreeSet::new();
    let mut ops = Vec::new();
    for number in 0..volume.edges * 2 {
        let Some(author) = rng.choice(authors.iter().copied()) else {
            break;
        };
        let audience = graph.audience(author);
        let unfollow = number % 2 == 0;
        let reader = if unfollow {
            rng.choice(audience.iter().copied())
        } else if input.follows.is_none() {
            let id = UserId(i64::try_from(rng.usize(1..=users)).unwrap_or(1));
            Some(id).filter(|id| *id != author && audience.binary_search(id).is_err())
        } else {
            None
        };
        if let Some(follower) = reader.filter(|&reader| taken.insert((reader, author))) {
            let change = if unfollow {
                Change::Unfollow
            } else {
                Change::Follow
            };
            ops.push((
                share(volume.span, number, volume.edges * 2),
                Op::Edge {
                    change,
                    follower,
                    followee: author,
                },
            ));
        }
    }
    ops
}

/// The `number`th of `count` even shares of a span.
fn share(span: Duration, number: usize, count: usize) -> Duration {
    span.mul_f64(number as f64 / count.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{self, Size};

    const VOLUME: Volume = Volume {
        posts: 300,
        span: Duration::from_secs(5),
        deletes: 12,
        edges: 12,
    };

    fn plan(input: &Input) -> (Graph, Plan) {
        let mut rng = Rng::with_seed(3);
        let graph = graph::build(
            Size {
                users: 300,
                celebrity: 200,
                authors: 60,
            },
            input,
            &mut rng,
        );
        let plan = make(&graph, input, VOLUME, &mut rng);
        (graph, plan)
    }

    fn posts(plan: &Plan) -> Vec<(Duration, PlannedPost)> {
        let post = |(at, op): &(Duration, Op)| match op {
            Op::Post(post) => Some((*at, post.clone())),
            Op::Edge { .. } => None,
        };
        plan.ops.iter().filter_map(post).collect()
    }

    #[test]
    fn generated_traffic() {
        let (graph, plan) = plan(&Input::default());
        let posts = posts(&plan);
        assert_eq!((posts.len(), plan.posts()), (300, 300));
        assert!(plan.ops.is_sorted_by_key(|(at, _)| *at));
        assert_eq!(
            posts
                .iter()
                .filter(|(_, post)| post.delete_after.is_some())
                .count(),
            12
        );
        assert!(posts.iter().any(|(_, post)| post.repeat));
        assert_eq!(
            posts
                .iter()
                .filter(|(_, post)| post.author == graph.celebrity)
                .count(),
            CELEBRITY_POSTS
        );
        let mut pairs = BTreeSet::new();
        for (_, op) in &plan.ops {
            if let Op::Edge {
                change,
                follower,
                followee,
            } = op
            {
                let follows = graph.audience(*followee).binary_search(follower).is_ok();
                assert_eq!(follows, *change == Change::Unfollow);
                assert!(follower != followee && pairs.insert((*follower, *followee)));
            }
        }
        assert!(pairs.len() > 12, "both kinds: {}", pairs.len());
    }

    #[test]
    fn peoples_posts_are_spaced_by_their_times_and_never_deleted() {
        let post = |time| OwnPost {
            author: "ann".into(),
            text: "mine".into(),
            time,
        };
        let own = vec![
            post(Some(1_000.0)),
            post(Some(1_100.0)),
            post(None),
            post(Some(1_050.0)),
        ];
        let (_, plan) = plan(&Input {
            posts: Some(own),
            follows: None,
        });
        let mine: Vec<_> = posts(&plan)
            .into_iter()
            .filter(|(_, post)| post.text == "mine")
            .collect();
        let times: Vec<f64> = mine.iter().map(|(at, _)| at.as_secs_f64()).collect();
        assert_eq!(times, [0.0, 2.5, 5.0, 5.0]);
        assert!(mine.iter().all(|(_, post)| post.delete_after.is_none()));
        assert!(
            posts(&plan)
                .iter()
                .any(|(_, post)| post.delete_after.is_some())
        );
    }

    #[test]
    fn peoples_follows_are_never_changed() {
        let edge = crate::input::OwnFollow {
            followee: "ann".into(),
            follower: "bob".into(),
        };
        let (graph, plan) = plan(&Input {
            posts: None,
            follows: Some(BTreeSet::from([edge])),
        });
        let changed = plan.ops.iter().filter_map(|(_, op)| match op {
            Op::Edge { followee, .. } => Some(*followee),
            Op::Post(_) => None,
        });
        assert!(
            changed
                .into_iter()
                .all(|followee| followee == graph.celebrity)
        );
        assert!(
            posts(&plan)
                .iter()
                .any(|(_, post)| post.author == graph.by_handle["ann"])
        );
    }
}
