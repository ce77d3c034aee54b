//! The follow graph: who there is and who follows whom. Pure, from a seed.
//!
//! One celebrity, hundreds of ordinary authors with bounded power-law audiences, and a quiet
//! author with a small audience whose posts keep the relay busy at the moment it is killed. With a
//! file of follows, the people in it and the demo's own two authors beside them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use events::UserId;
use fastrand::Rng;

use crate::input::{Input, OWN_PREFIX};

/// Followers of the quiet author.
const PACER_AUDIENCE: usize = 20;

/// Exponent of the power law of audiences (see proof.md: 2.05 to 2.3).
const EXPONENT: f64 = 2.1;

/// The smallest audience of an ordinary author.
const SMALLEST: f64 = 8.0;

/// How large a generated graph is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Accounts, all kinds together.
    pub(crate) users: usize,
    /// Followers of the celebrity.
    pub(crate) celebrity: usize,
    /// Ordinary authors.
    pub(crate) authors: usize,
}

/// Who follows whom. Ids are 1, 2, 3 … in the order of `handles`.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    pub(crate) handles: Vec<String>,
    /// Followee → followers, in ascending order.
    pub(crate) followers: BTreeMap<UserId, Vec<UserId>>,
    pub(crate) celebrity: UserId,
    pub(crate) pacer: UserId,
    /// Authors of scheduled posts.
    pub(crate) authors: Vec<UserId>,
    /// Accounts by handle, for posts of a file.
    pub(crate) by_handle: HashMap<String, UserId>,
}

impl Graph {
    /// How many edges there are.
    pub(crate) fn edges(&self) -> usize {
        self.followers.values().map(Vec::len).sum()
    }

    /// Followers of one account, in ascending order.
    pub(crate) fn audience(&self, author: UserId) -> &[UserId] {
        self.followers.get(&author).map_or(&[], Vec::as_slice)
    }

    /// Every account.
    pub(crate) fn users(&self) -> impl Iterator<Item = UserId> + use<> {
        (1..=self.handles.len()).map(id_of)
    }

    fn add(&mut self, handle: String) -> UserId {
        self.handles.push(handle.clone());
        let id = id_of(self.handles.len());
        self.by_handle.insert(handle, id);
        id
    }
}

/// Builds the graph. The same input, size and seed make the same graph.
pub(crate) fn build(size: Size, input: &Input, rng: &mut Rng) -> Graph {
    let mut graph = Graph {
        handles: Vec::new(),
        followers: BTreeMap::new(),
        celebrity: UserId(0),
        pacer: UserId(0),
        authors: Vec::new(),
        by_handle: HashMap::new(),
    };
    graph.celebrity = graph.add(format!("{OWN_PREFIX}celebrity"));
    graph.pacer = graph.add(format!("{OWN_PREFIX}pacer"));
    let writers: BTreeSet<&str> = input
        .posts
        .iter()
        .flatten()
        .map(|post| post.author.as_str())
        .collect();
    match &input.follows {
        None => generate(&mut graph, size, &writers, rng),
        Some(_) => take_over(&mut graph, size, input, &writers),
    }
    graph
}

fn generate(graph: &mut Graph, size: Size, writers: &BTreeSet<&str>, rng: &mut Rng) {
    for writer in writers {
        let id = graph.add((*writer).to_owned());
        graph.authors.push(id);
    }
    for number in writers.len()..size.authors {
        let id = graph.add(format!("{OWN_PREFIX}author_{number:04}"));
        graph.authors.push(id);
    }
    let mut number = 0;
    while graph.handles.len() < size.users || number < size.celebrity.max(PACER_AUDIENCE) {
        number += 1;
        graph.add(format!("{OWN_PREFIX}reader_{number:05}"));
    }
    let everybody: Vec<UserId> = graph.users().collect();
    let celebrity = sample(&everybody, graph.celebrity, size.celebrity, rng);
    graph.followers.insert(graph.celebrity, celebrity);
    let pacer = sample(&everybody, graph.pacer, PACER_AUDIENCE, rng);
    graph.followers.insert(graph.pacer, pacer);
    let largest = (size.users / 30).max(20);
    for author in graph.authors.clone() {
        let audience = sample(&everybody, author, audience_size(rng.f64(), largest), rng);
        graph.followers.insert(author, audience);
    }
}

/// The file's people as they are, and beside them the demo's own authors with readers of their own.
fn take_over(graph: &mut Graph, size: Size, input: &Input, writers: &BTreeSet<&str>) {
    let edges = input.follows.iter().flatten();
    let mut people: BTreeSet<&str> = writers.clone();
    people.extend(
        edges
            .clone()
            .flat_map(|edge| [edge.follower.as_str(), edge.followee.as_str()]),
    );
    for handle in people {
        graph.add(handle.to_owned());
    }
    for edge in edges {
        let id = |handle: &str| graph.by_handle.get(handle).copied();
        if let (Some(follower), Some(followee)) = (id(&edge.follower), id(&edge.followee)) {
            graph.followers.entry(followee).or_default().push(follower);
        }
    }
    for followers in graph.followers.values_mut() {
        followers.sort_unstable();
    }
    graph.authors = graph.followers.keys().copied().collect();
    let readers: Vec<UserId> = (1..=size.celebrity)
        .map(|number| graph.add(format!("{OWN_PREFIX}reader_{number:05}")))
        .collect();
    graph.followers.insert(
        graph.pacer,
        readers.iter().copied().take(PACER_AUDIENCE).collect(),
    );
    graph.followers.insert(graph.celebrity, readers);
}

/// So many different accounts, never the author, in ascending order.
fn sample(everybody: &[UserId], author: UserId, count: usize, rng: &mut Rng) -> Vec<UserId> {
    let count = count.min(everybody.len().saturating_sub(1));
    let mut chosen: Vec<UserId> = if count * 2 > everybody.len() {
        let mut all: Vec<UserId> = everybody
            .iter()
            .copied()
            .filter(|&user| user != author)
            .collect();
        rng.shuffle(&mut all);
        all.truncate(count);
        all
    } else {
        let mut chosen = BTreeSet::new();
        while chosen.len() < count {
            chosen.extend(
                rng.choice(everybody)
                    .copied()
                    .filter(|&user| user != author),
            );
        }
        chosen.into_iter().collect()
    };
    chosen.sort_unstable();
    chosen
}

/// A bounded Pareto distribution at `uniform` (0 to 1).
fn audience_size(uniform: f64, largest: usize) -> usize {
    let tail = EXPONENT - 1.0;
    let bound = (SMALLEST / largest as f64).powf(tail);
    let size = SMALLEST / (1.0 - uniform * (1.0 - bound)).powf(1.0 / tail);
    (size as usize).min(largest)
}

fn id_of(position: usize) -> UserId {
    UserId(i64::try_from(position).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{OwnFollow, OwnPost};

    const SMALL: Size = Size {
        users: 3_000,
        celebrity: 2_500,
        authors: 60,
    };

    fn check(graph: &Graph) {
        let known: BTreeSet<UserId> = graph.users().collect();
        for (author, followers) in &graph.followers {
            assert!(followers.is_sorted_by(|a, b| a < b), "each follower once");
            assert!(!followers.contains(author));
            assert!(followers.iter().all(|follower| known.contains(follower)));
        }
        let handles: BTreeSet<_> = graph.handles.iter().collect();
        assert_eq!(handles.len(), graph.handles.len());
    }

    #[test]
    fn a_generated_graph_has_the_size_that_was_asked_for() {
        let graph = build(SMALL, &Input::default(), &mut Rng::with_seed(7));
        check(&graph);
        assert_eq!(graph.handles.len(), 3_000);
        assert_eq!(graph.audience(graph.celebrity).len(), 2_500);
        assert_eq!(graph.audience(graph.pacer).len(), PACER_AUDIENCE);
        assert_eq!(graph.authors.len(), 60);
        let sizes: Vec<_> = graph
            .authors
            .iter()
            .map(|&author| graph.audience(author).len())
            .collect();
        assert!(
            sizes.iter().all(|size| (8..=100).contains(size)),
            "{sizes:?}"
        );
        let again = build(SMALL, &Input::default(), &mut Rng::with_seed(7));
        assert_eq!(graph.followers, again.followers);
    }

    #[test]
    fn audiences_follow_a_bounded_power_law() {
        assert_eq!(audience_size(0.0, 2_000), 8);
        assert!(audience_size(1.0, 2_000) >= 1_999);
        let median = audience_size(0.5, 2_000);
        assert!((14..=16).contains(&median), "{median}");
    }

    #[test]
    fn peoples_own_graph_is_taken_as_it_is() {
        let edge = |follower: &str, followee: &str| OwnFollow {
            followee: followee.into(),
            follower: follower.into(),
        };
        let post = OwnPost {
            author: "dave".into(),
            text: "x".into(),
            time: None,
        };
        let input = Input {
            posts: Some(vec![post]),
            follows: Some(BTreeSet::from([edge("bob", "ann"), edge("carl", "ann")])),
        };
        let graph = build(SMALL, &input, &mut Rng::with_seed(1));
        check(&graph);
        let id = |handle: &str| graph.by_handle[handle];
        assert_eq!(graph.audience(id("ann")), [id("bob"), id("carl")]);
        assert!(graph.audience(id("dave")).is_empty());
        assert_eq!(graph.audience(graph.celebrity).len(), 2_500);
        assert_eq!(graph.authors, [id("ann")]);
    }

    #[test]
    fn peoples_own_authors_get_generated_readers() {
        let post = |author: &str| OwnPost {
            author: author.into(),
            text: "x".into(),
            time: None,
        };
        let input = Input {
            posts: Some(vec![post("ann"), post("bob"), post("ann")]),
            follows: None,
        };
        let graph = build(SMALL, &input, &mut Rng::with_seed(1));
        check(&graph);
        assert!(graph.audience(graph.by_handle["ann"]).len() >= 8);
        assert_eq!(graph.authors.len(), 60);
    }
}
