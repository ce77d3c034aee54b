//! The journal: every operation of a run, in one order.
//!
//! Owns the order (a counter that each sending and each acknowledgement advances) and what the
//! client was told. Does not own time: the promise is about order.
//!
//! Bulk-loaded follows are acknowledged before everything, at 0.

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;

use events::{Micros, PostId, UserId};

use crate::audience::{self, Change, Claim, EdgeChange};
use crate::postgres::StoredPost;

/// A place in the order of all operations.
pub type Seq = u64;

/// After everything.
pub(crate) const END: Seq = Seq::MAX;

/// Names one post of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostRef(usize);

/// Names one change of one edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeRef {
    follower: UserId,
    followee: UserId,
    index: usize,
}

/// One post as the client knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// Who wrote it.
    pub author: UserId,
    /// The key the client chose.
    pub client_post_id: String,
    /// When it was first sent.
    pub sent: Seq,
    /// When it was first acknowledged.
    pub acked: Option<Seq>,
    /// Its id: from the acknowledgement, or found in Postgres.
    pub id: Option<PostId>,
    /// Other ids that the same key was answered with: each is a second post.
    pub other_ids: Vec<PostId>,
    /// When its deletion was first sent.
    pub delete_sent: Option<Seq>,
    /// When its deletion was acknowledged.
    pub delete_acked: Option<Seq>,
}

/// All operations of a run.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    last: Seq,
    users: BTreeSet<UserId>,
    user_ranges: Vec<RangeInclusive<UserId>>,
    /// The stores hold what others did, in posts up to this one and in accounts not known here.
    beside_others: Option<PostId>,
    /// Follows that Postgres has from before this moment belong to the bulk load.
    base_in_postgres: Option<Micros>,
    /// Followee → followers in ascending order.
    bulk: HashMap<UserId, Vec<UserId>>,
    /// Followee → follower → changes after the bulk load, in the order they were sent.
    changes: HashMap<UserId, HashMap<UserId, Vec<EdgeChange>>>,
    posts: Vec<Post>,
    by_id: HashMap<PostId, usize>,
}

impl Journal {
    /// An empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes accounts that exist. A row of any other account is foreign.
    pub fn know_users(&mut self, users: impl IntoIterator<Item = UserId>) {
        self.users.extend(users);
    }

    /// Notes accounts that exist, all of a range.
    pub fn know_range(&mut self, users: RangeInclusive<UserId>) {
        self.user_ranges.push(users);
    }

    /// Notes that the stores hold what others did: posts up to this one, and everything of
    /// accounts that are not known here. Without it whatever is not of this journal is foreign.
    pub fn beside_others(&mut self, posts_up_to: PostId) {
        self.beside_others = Some(posts_up_to);
    }

    /// Notes that the follows of the bulk load are those that Postgres has from before `moment`,
    /// when the judge looks.
    pub fn base_in_postgres(&mut self, moment: Micros) {
        self.base_in_postgres = Some(moment);
    }

    /// Where the bulk load ends in Postgres, when it has to be read from there.
    pub(crate) const fn base_before(&self) -> Option<Micros> {
        self.base_in_postgres
    }

    /// Adds the follows of one author that Postgres has from before the first operation. About an
    /// edge that was changed since and that Postgres no longer shows as it was, nobody knows
    /// whether it was there, unless the journal says so.
    pub(crate) fn add_base(&mut self, followee: UserId, followers: Vec<UserId>) {
        self.bulk_follows(followee, followers);
        let bulk = self.bulk.get(&followee).map_or(&[][..], Vec::as_slice);
        for (follower, changes) in self.changes.entry(followee).or_default() {
            if bulk.binary_search(follower).is_err() {
                let unsure = EdgeChange {
                    change: Change::Follow,
                    sent: 0,
                    acked: None,
                };
                changes.insert(0, unsure);
            }
        }
    }

    /// Notes follows that were loaded before the first operation.
    pub fn bulk_follows(&mut self, followee: UserId, followers: impl IntoIterator<Item = UserId>) {
        let edges = self.bulk.entry(followee).or_default();
        edges.extend(followers);
        edges.sort_unstable();
        edges.dedup();
    }

    /// Notes that a post is about to be sent for the first time.
    pub fn post_sent(&mut self, author: UserId, client_post_id: impl Into<String>) -> PostRef {
        let sent = self.advance();
        self.posts.push(Post {
            author,
            client_post_id: client_post_id.into(),
            sent,
            acked: None,
            id: None,
            other_ids: Vec::new(),
            delete_sent: None,
            delete_acked: None,
        });
        PostRef(self.posts.len() - 1)
    }

    /// Notes the answer to a post. An answer to a repeat of it comes here too.
    pub fn post_acked(&mut self, post: PostRef, id: PostId) {
        let seq = self.advance();
        let Some(entry) = self.posts.get_mut(post.0) else {
            return;
        };
        match entry.id {
            None => {
                (entry.id, entry.acked) = (Some(id), Some(seq));
                self.by_id.insert(id, post.0);
            }
            Some(known) if known != id => entry.other_ids.push(id),
            Some(_) => {}
        }
    }

    /// Notes that a deletion is about to be sent.
    pub fn delete_sent(&mut self, post: PostRef) {
        let seq = self.advance();
        if let Some(entry) = self.posts.get_mut(post.0) {
            entry.delete_sent.get_or_insert(seq);
        }
    }

    /// Notes that a deletion was acknowledged.
    pub fn delete_acked(&mut self, post: PostRef) {
        let seq = self.advance();
        if let Some(entry) = self.posts.get_mut(post.0) {
            entry.delete_acked.get_or_insert(seq);
        }
    }

    /// Notes that a follow or an unfollow is about to be sent. Changes of one edge have to be sent
    /// one after the other.
    pub fn edge_sent(&mut self, change: Change, follower: UserId, followee: UserId) -> EdgeRef {
        let sent = self.advance();
        let changes = self
            .changes
            .entry(followee)
            .or_default()
            .entry(follower)
            .or_default();
        changes.push(EdgeChange {
            change,
            sent,
            acked: None,
        });
        EdgeRef {
            follower,
            followee,
            index: changes.len() - 1,
        }
    }

    /// Notes that a follow or an unfollow was acknowledged.
    pub fn edge_acked(&mut self, edge: EdgeRef) {
        let seq = self.advance();
        let change = self
            .changes
            .get_mut(&edge.followee)
            .and_then(|followers| followers.get_mut(&edge.follower))
            .and_then(|changes| changes.get_mut(edge.index));
        if let Some(change) = change {
            change.acked.get_or_insert(seq);
        }
    }

    /// Gives ids to posts whose outcome is unknown and that Postgres has: a commit is a promise.
    pub fn settle(&mut self, stored: &[StoredPost]) {
        let open: HashMap<(UserId, String), usize> = (self.posts.iter().enumerate())
            .filter(|(_, post)| post.id.is_none())
            .map(|(index, post)| ((post.author, post.client_post_id.clone()), index))
            .collect();
        if open.is_empty() {
            return;
        }
        for found in stored {
            if let Some(&index) = open.get(&(found.author, found.client_post_id.clone()))
                && let Some(entry) = self.posts.get_mut(index)
                && entry.id.is_none()
            {
                entry.id = Some(found.id);
                self.by_id.insert(found.id, index);
            }
        }
    }

    /// Every post, in the order they were sent.
    pub fn posts(&self) -> &[Post] {
        &self.posts
    }

    /// The post with this id.
    pub fn post(&self, id: PostId) -> Option<&Post> {
        self.by_id.get(&id).and_then(|&index| self.posts.get(index))
    }

    /// The post that a reference names.
    pub fn entry(&self, post: PostRef) -> Option<&Post> {
        self.posts.get(post.0)
    }

    /// How many posts were acknowledged.
    pub fn accepted(&self) -> usize {
        self.posts
            .iter()
            .filter(|post| post.acked.is_some())
            .count()
    }

    /// Whether the account exists.
    pub fn knows(&self, user: UserId) -> bool {
        self.users.contains(&user) || self.user_ranges.iter().any(|range| range.contains(&user))
    }

    /// Whether a post that this journal does not have, in this timeline, is somebody else's
    /// business.
    pub(crate) fn is_others(&self, owner: UserId, post: PostId) -> bool {
        self.beside_others
            .is_some_and(|up_to| post <= up_to || !self.knows(owner))
    }

    /// All posts of this journal are above this one.
    pub(crate) fn first_above(&self) -> PostId {
        self.beside_others.unwrap_or(PostId(i64::MIN))
    }

    /// Everybody who posted.
    pub fn authors(&self) -> BTreeSet<UserId> {
        self.posts.iter().map(|post| post.author).collect()
    }

    /// What the promise says about a post of `author` that was sent at `post_sent`, in the
    /// timeline of `owner`.
    pub fn claim(&self, author: UserId, owner: UserId, post_sent: Seq) -> Claim {
        let bulk = self
            .bulk
            .get(&author)
            .is_some_and(|edges| edges.binary_search(&owner).is_ok());
        let changes = self
            .changes
            .get(&author)
            .and_then(|followers| followers.get(&owner));
        match (bulk, changes) {
            (false, None) => Claim::MustNot,
            (true, None) => Claim::Must,
            (false, Some(changes)) => audience::claim(changes, post_sent),
            (true, Some(changes)) => {
                let mut all = vec![EdgeChange {
                    change: Change::Follow,
                    sent: 0,
                    acked: Some(0),
                }];
                all.extend_from_slice(changes);
                audience::claim(&all, post_sent)
            }
        }
    }

    /// Whether `reader` follows `author` at the end, as far as that is known.
    pub fn follows_at_end(&self, reader: UserId, author: UserId) -> Claim {
        self.claim(author, reader, END)
    }

    /// The accounts that must have the post in their timeline, unless it is deleted.
    pub fn must_have<'a>(&'a self, post: &'a Post) -> impl Iterator<Item = UserId> + 'a {
        self.edges(post.author)
            .filter(|&owner| self.claim(post.author, owner, post.sent) == Claim::Must)
    }

    /// The accounts that followed or unfollowed somebody: worth a look through the API.
    pub fn changed_readers(&self) -> BTreeSet<UserId> {
        self.changes
            .values()
            .flat_map(|followers| followers.keys().copied())
            .collect()
    }

    /// How many accounts followed the author at any time: no post of theirs has more rows.
    pub fn largest_audience(&self, author: UserId) -> usize {
        self.edges(author).count()
    }

    /// Everybody who ever followed the author, once each.
    fn edges(&self, author: UserId) -> impl Iterator<Item = UserId> + '_ {
        let bulk = self.bulk.get(&author).map_or(&[][..], Vec::as_slice);
        let added = self
            .changes
            .get(&author)
            .into_iter()
            .flat_map(|followers| followers.keys().copied());
        bulk.iter()
            .copied()
            .chain(added.filter(move |follower| bulk.binary_search(follower).is_err()))
    }

    fn advance(&mut self) -> Seq {
        self.last += 1;
        self.last
    }
}

#[cfg(test)]
mod tests;
