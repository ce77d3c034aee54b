//! The log: partitions of the posts topic, the other topics by what they took, and the group's
//! coordinator.
//!
//! Appends in the order in which producers' requests arrive; order between partitions means
//! nothing. The coordinator gives partitions to members, takes them away, and takes commits from
//! members whose session it holds.

use std::{collections::BTreeSet, rc::Rc};

use bytes::Bytes;
use events::{EventId, envelope, route::Headers};

use super::{
    World,
    member::{Member, Revoking},
    truth::Place,
};
use crate::invariants;

/// Partitions of the posts topic.
pub(crate) const PARTITIONS: usize = 3;
/// How long a revoked partition is waited for, microseconds.
const REVOKE_PATIENCE: u64 = 5_000_000;

/// A record in the posts topic.
#[derive(Debug)]
pub(crate) struct Rec {
    pub(crate) uid: u64,
    pub(crate) event: EventId,
    pub(crate) epoch: Option<i64>,
    pub(crate) type_name: String,
    pub(crate) key: Bytes,
    pub(crate) payload: Bytes,
    /// Made by a relay; else by the claim of this name.
    pub(crate) is_relayed: bool,
    pub(crate) claim: u64,
    /// The step at which it was appended.
    pub(crate) at: u64,
}

impl Rec {
    /// Of what is produced.
    pub(crate) fn of(key: Bytes, payload: Bytes, headers: &Headers, claim: Option<u64>) -> Self {
        let text = |name: &str| {
            let header = headers.iter().find(|(header, _)| *header == name);
            header
                .and_then(|(_, value)| std::str::from_utf8(value).ok())
                .unwrap_or_default()
        };
        Self {
            uid: text(envelope::TRACEPARENT).parse().unwrap_or_default(),
            event: EventId(text(envelope::ID).parse().unwrap_or_default()),
            epoch: envelope::source_epoch(text(envelope::SOURCE)),
            type_name: text(envelope::TYPE).to_owned(),
            key,
            payload,
            is_relayed: claim.is_none(),
            claim: claim.unwrap_or_default(),
            at: 0,
        }
    }
}

/// One partition of the posts topic.
#[derive(Debug, Default)]
pub(crate) struct Partition {
    /// Which topic of this name.
    pub(crate) topic: u32,
    /// The offset of the first record there is.
    pub(crate) low: i64,
    records: Vec<Rc<Rec>>,
    /// How many records were cut off in front.
    cut: i64,
    pub(crate) committed: Option<i64>,
    /// Everything below was found finished, or given up by an operator.
    pub(crate) judged: i64,
    /// The topic was made anew, and the group has not committed since.
    pub(crate) is_stale: bool,
    /// The step at which somebody last took records or offsets away.
    pub(crate) disturbed: u64,
}

impl Partition {
    /// The offset of the next record.
    pub(crate) fn end(&self) -> i64 {
        self.cut + i64::try_from(self.records.len()).unwrap_or(i64::MAX)
    }

    /// The record at an offset.
    pub(crate) fn get(&self, offset: i64) -> Option<&Rc<Rec>> {
        let index = usize::try_from(offset - self.cut).ok()?;
        self.records.get(index).filter(|_| offset >= self.low)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) is_up: bool,
    pub(crate) posts: Vec<Partition>,
    /// Members that the coordinator counts in.
    pub(crate) sessions: BTreeSet<u64>,
    /// Who has each partition, and who is to have it.
    owners: Vec<Option<u64>>,
    targets: Vec<Option<u64>>,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self {
            is_up: true,
            posts: (0..PARTITIONS).map(|_| Partition::default()).collect(),
            sessions: BTreeSet::new(),
            owners: vec![None; PARTITIONS],
            targets: vec![None; PARTITIONS],
        }
    }

    /// The partition that a key goes to.
    pub(crate) fn partition_of(key: &[u8]) -> usize {
        key.iter().map(|byte| usize::from(*byte)).sum::<usize>() % PARTITIONS
    }

    /// Deals the partitions out anew among the members there are.
    pub(crate) fn deal(&mut self, turn: usize) {
        let members: Vec<u64> = self.sessions.iter().copied().collect();
        for (partition, target) in self.targets.iter_mut().enumerate() {
            *target = match members.len() {
                0 => None,
                count => Some(members[(partition + turn) % count]),
            };
        }
    }

    /// A session ends: its partitions are free.
    pub(crate) fn expire(&mut self, member: u64) {
        self.sessions.remove(&member);
        for owner in self
            .owners
            .iter_mut()
            .filter(|owner| **owner == Some(member))
        {
            *owner = None;
        }
        self.deal(0);
    }

    /// The topic is deleted and made anew, with the group's offsets left or without them.
    pub(crate) fn recreate(&mut self, keeps_offsets: bool, step: u64) {
        for partition in &mut self.posts {
            *partition = Partition {
                topic: partition.topic + 1,
                committed: partition.committed.filter(|_| keeps_offsets),
                is_stale: true,
                disturbed: step,
                ..Partition::default()
            };
        }
    }

    /// Retention takes away what lies below an offset.
    pub(crate) fn trim(&mut self, partition: usize, below: i64, step: u64) {
        let part = &mut self.posts[partition];
        let below = below.clamp(part.low, part.end());
        if below > part.committed.unwrap_or(0) {
            part.disturbed = step;
        }
        part.low = below;
        part.judged = part.judged.max(below);
    }

    /// An operator sets the group's offset.
    pub(crate) fn reset(&mut self, partition: usize, offset: i64, step: u64) {
        let part = &mut self.posts[partition];
        part.committed = Some(offset);
        part.judged = offset;
        part.disturbed = step;
        part.is_stale = false;
    }
}

/// Appends a record to the posts topic.
pub(crate) fn append(world: &mut World, mut rec: Rec) {
    rec.at = world.step;
    let partition = Log::partition_of(&rec.key);
    let (uid, event, is_relayed) = (rec.uid, rec.event, rec.is_relayed);
    let part = &mut world.log.posts[partition];
    let offset = part.end();
    part.records.push(Rc::new(rec));
    world.tell("kafka", || {
        let path = if is_relayed { "relay" } else { "sweep" };
        format!("event {event} (row {uid}) from the {path} is at {partition}@{offset}")
    });
}

/// A member commits an offset: that of the next record to read. Refused without a session. The
/// broker takes the name of the topic, and `topic` is which one of that name is meant.
pub(crate) fn commit(world: &mut World, member: u64, partition: i32, topic: u32, offset: i64) {
    let Some(index) = usize::try_from(partition)
        .ok()
        .filter(|index| *index < PARTITIONS)
    else {
        return;
    };
    if !world.log.is_up || !world.log.sessions.contains(&member) {
        world.tell("kafka", || {
            format!("commit {partition}@{offset} of member {member} refused")
        });
        return;
    }
    world.tell("kafka", || {
        format!("member {member} commits {partition}@{offset}")
    });
    if world.log.posts[index].topic == topic {
        invariants::at_commit(world, index, offset);
        world.log.posts[index].is_stale = false;
    } else {
        // About records that are gone with their topic.
        world.log.posts[index].disturbed = world.step;
    }
    world.log.posts[index].committed = Some(offset);
}

/// One turn of the coordinator: takes a partition away, gives one out, or gives up waiting.
/// Whether there was anything to do.
pub(crate) fn coordinate(world: &mut World, members: &mut [&mut Member]) -> bool {
    if !world.log.is_up {
        return false;
    }
    let first = world.below(PARTITIONS);
    for step in 0..PARTITIONS {
        let partition = (first + step) % PARTITIONS;
        let (owner, target) = (world.log.owners[partition], world.log.targets[partition]);
        if owner == target {
            continue;
        }
        let id = i32::try_from(partition).unwrap_or_default();
        let holder = owner.and_then(|name| members.iter_mut().find(|each| each.name == name));
        match holder {
            Some(holder) => {
                if !holder.is_frozen && holder.revoking.is_none() {
                    holder.revoke(vec![id], world.now);
                    world.tell("kafka", || format!("takes partition {id} from its member"));
                    return true;
                }
            }
            None => {
                world.log.owners[partition] = None;
                let taker =
                    target.and_then(|name| members.iter_mut().find(|each| each.name == name));
                if let Some(taker) = taker.filter(|taker| taker.is_polling()) {
                    world.log.owners[partition] = target;
                    assign(world, taker, id);
                    return true;
                }
            }
        }
    }
    members
        .iter_mut()
        .any(|member| end_revocation(world, member))
}

fn assign(world: &mut World, member: &mut Member, partition: i32) {
    let part = &mut world.log.posts[usize::try_from(partition).unwrap_or_default()];
    let (committed, low, topic) = (part.committed, part.low, part.topic);
    if part.is_stale {
        part.judged = part.judged.max(committed.unwrap_or(low));
    }
    // The broker may not tell just now; then only the notice of a jump is lost.
    let expected = if world.fails(50) { None } else { committed };
    member.assign(partition, topic, expected, committed.unwrap_or(low));
    let name = member.name;
    world.tell("kafka", || {
        format!("gives partition {partition} to member {name} from {committed:?}")
    });
}

/// Ends a revocation that was answered, or that was waited for long enough.
fn end_revocation(world: &mut World, member: &mut Member) -> bool {
    let Some(revoking) = &member.revoking else {
        return false;
    };
    let is_late = world.now.saturating_sub(revoking.since) >= REVOKE_PATIENCE;
    if revoking.answer.is_none() && !is_late {
        return false;
    }
    let Some(Revoking {
        partitions, answer, ..
    }) = member.revoking.take()
    else {
        return false;
    };
    for (partition, offset) in answer.into_iter().flatten() {
        let topic = member.topic_of(partition).unwrap_or_default();
        commit(world, member.name, partition, topic, offset);
    }
    for partition in partitions {
        member.forget(partition);
        let index = usize::try_from(partition).unwrap_or_default();
        if world.log.owners[index] == Some(member.name) {
            world.log.owners[index] = None;
        }
    }
    true
}

/// The places of a partition's records from an offset on, below another.
pub(crate) fn places(
    world: &World,
    partition: usize,
    from: i64,
    below: i64,
) -> Vec<(Place, Rc<Rec>)> {
    let part = &world.log.posts[partition];
    let id = i32::try_from(partition).unwrap_or_default();
    (from.max(part.low)..below)
        .filter_map(|offset| Some(((id, part.topic, offset), Rc::clone(part.get(offset)?))))
        .collect()
}
