//! The whole decision over random histories: writers that commit late, roll back and draw ids
//! long before; transactions that are prepared and outlive restarts; a relay that lags, dies, loses
//! its slot; a broker that is away; ledger inserts that fail; a server that restarts and a standby
//! that takes over; offsets that are skipped and topics made anew; days that are dropped; two
//! sweepers that crash at any step.
//!
//! While it happens D-10 is checked at everything that is sent again and D-11 at every day that is
//! dropped; afterwards, with the faults gone, every committed row must be delivered or have a
//! reason not to be.

mod sweeper;
mod world;
mod writers;

use proptest::prelude::*;

use self::{sweeper::Sweeper, world::World};
use super::{EventId, Micros, life};
use crate::core::*;

/// So short that a history of some hundred steps sees every wait end.
fn timing() -> Timing {
    Timing {
        interval: 30,
        grace: 5,
        relay_patience: 8,
        blocked_after: 10,
        poll: 1,
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Cache,
    Begin,
    Write(usize),
    Prepare(usize),
    End(usize, bool),
    StartRelay,
    StopRelay,
    DropSlot,
    LoseSlot,
    Read,
    Produce,
    /// Whether the ledger insert fails.
    Hear(bool),
    FanOut(usize, bool),
    Skip(usize),
    Recreate(usize, bool),
    Expire(usize),
    Broker(bool),
    RemovePost(usize),
    /// Postgres is ended and started again.
    Restart,
    /// A standby takes over: a new epoch.
    Promote,
    Flush,
    Wait(u64),
    NextDay,
    DropDays,
    /// Which sweeper, which stage, and whether the call fails.
    Sweep(usize, usize, bool),
    Request(usize),
    Crash(usize),
}

/// An op of a kind, made of an index and a flag; with its weight.
type Kind = (u32, fn(usize, bool) -> Op);

/// What happens without any fault: here the sweep has nothing to do but to wait.
const CALM: [Kind; 20] = [
    (1, |_, _| Op::Cache),
    (4, |_, _| Op::Begin),
    (2, |index, _| Op::Write(index)),
    (1, |index, _| Op::Prepare(index)),
    (3, |index, _| Op::End(index, true)),
    (1, |index, _| Op::End(index, false)),
    (2, |_, _| Op::StartRelay),
    (4, |_, _| Op::Read),
    (4, |_, _| Op::Produce),
    (4, |_, _| Op::Hear(false)),
    (6, |index, _| Op::FanOut(index, false)),
    (1, |index, _| Op::Expire(index)),
    (2, |_, _| Op::Flush),
    (5, |index, _| Op::Wait(1 + index as u64 / 2)),
    (1, |index, _| Op::Wait(5 + 7 * index as u64)),
    (1, |_, _| Op::Wait(4_000_000_000)),
    (1, |_, _| Op::NextDay),
    (1, |_, _| Op::DropDays),
    (24, |index, flag| {
        Op::Sweep(index % 2, usize::from(flag), false)
    }),
    (1, |index, _| Op::Request(index % 2)),
];

const FAULTS: [Kind; 13] = [
    (2, |_, _| Op::StopRelay),
    (1, |_, _| Op::DropSlot),
    (1, |_, _| Op::LoseSlot),
    (3, |_, _| Op::Hear(true)),
    (3, |index, _| Op::FanOut(index, true)),
    (1, |index, _| Op::Skip(index)),
    (1, |index, flag| Op::Recreate(index, flag)),
    (2, |_, flag| Op::Broker(flag)),
    (1, |index, _| Op::RemovePost(index)),
    (1, |_, _| Op::Restart),
    (1, |_, _| Op::Promote),
    (2, |index, flag| {
        Op::Sweep(index % 2, usize::from(flag), true)
    }),
    (2, |index, _| Op::Crash(index % 2)),
];

/// The kind that a number below the sum of the weights falls on.
fn pick(kinds: &[Kind], number: u32) -> fn(usize, bool) -> Op {
    let mut rest = number % kinds.iter().map(|(weight, _)| weight).sum::<u32>();
    for (weight, make) in kinds {
        if rest < *weight {
            return *make;
        }
        rest -= weight;
    }
    unreachable!("the rest is below the sum of the weights")
}

/// Some hundred ops, one in `per_fault` of them a fault, if any.
fn history(per_fault: Option<u32>) -> impl Strategy<Value = Vec<Op>> {
    let op = (any::<u32>(), 0_usize..8, any::<bool>()).prop_map(move |(number, index, flag)| {
        let (kinds, number) = match per_fault {
            Some(per) if number % per == 0 => (&FAULTS[..], number / per),
            Some(per) => (&CALM[..], number / per),
            None => (&CALM[..], number),
        };
        pick(kinds, number)(index, flag)
    });
    prop::collection::vec(op, 50..400)
}

#[derive(Debug)]
struct Play {
    world: World,
    sweepers: [Sweeper; 2],
}

impl Play {
    fn new() -> Self {
        Self {
            world: World::new(),
            sweepers: [Sweeper::new(), Sweeper::new()],
        }
    }

    fn apply(&mut self, op: Op) {
        let world = &mut self.world;
        world.step += 1;
        match op {
            Op::Cache => world.cache(),
            Op::Begin => world.begin(),
            Op::Write(index) => world.write(index),
            Op::Prepare(index) => world.prepare(index),
            Op::End(index, commits) => world.end(index, commits),
            Op::StartRelay => world.start_relay(),
            Op::StopRelay => world.stop_relay(),
            Op::DropSlot => world.drop_slot(),
            Op::LoseSlot => world.lose_slot(),
            Op::Read => world.relay_reads(),
            Op::Produce => world.relay_writes(),
            Op::Hear(loses) => world.relay_hears(loses),
            Op::FanOut(partition, loses) => world.fan_out(partition, loses),
            Op::Skip(partition) => world.skip(partition),
            Op::Recreate(partition, keeps) => world.recreate(partition, keeps),
            Op::Expire(partition) => world.expire(partition),
            Op::Broker(is_up) => world.broker_up = is_up,
            Op::RemovePost(index) => {
                let rows: Vec<i64> = world.rows.keys().copied().collect();
                if let Some(id) = index.checked_rem(rows.len()).map(|index| rows[index]) {
                    world.ghosts.insert(id);
                }
            }
            Op::Restart | Op::Promote => {
                match op {
                    Op::Promote => world.promote(),
                    _ => world.restart(),
                }
                self.sweepers
                    .iter_mut()
                    .for_each(|sweeper| sweeper.disconnect(world));
            }
            Op::Flush => world.flush(),
            Op::Wait(micros) => world.advance_to(world.now + micros, false),
            Op::NextDay => world.day.0 += 1,
            Op::DropDays => world.drop_days(),
            Op::Sweep(sweeper, stage, fails) => {
                self.sweepers[sweeper].step(stage, fails, world);
            }
            Op::Request(sweeper) => self.sweepers[sweeper].request(world),
            Op::Crash(sweeper) => self.sweepers[sweeper].crash(world),
        }
    }

    /// The faults are gone: open transactions end, fan-out runs, posts go on, and there is a relay
    /// or none.
    fn heal(&mut self, has_relay: bool, commits: bool) {
        self.apply(Op::Broker(true));
        while !self.world.open.is_empty() {
            self.apply(Op::End(0, commits));
        }
        if !has_relay {
            self.apply(Op::DropSlot);
        }
        for turn in 0..120_u64 {
            if has_relay {
                self.apply(Op::StartRelay);
            }
            // A few posts more, so that the group commits on every partition.
            if turn < 8 {
                self.apply(Op::Begin);
                self.apply(Op::End(0, true));
            }
            for _ in 0..10 {
                self.apply(Op::Read);
                self.apply(Op::Produce);
                self.apply(Op::Hear(false));
                self.apply(Op::FanOut(0, false));
                self.apply(Op::FanOut(1, false));
            }
            // Short waits for the steps of a round, long ones for back-offs and settled gaps.
            self.apply(Op::Wait(if turn % 10 == 9 { 25_000_000_000 } else { 31 }));
            for _ in 0..8 {
                for (sweeper, stage) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    self.apply(Op::Sweep(sweeper, stage, false));
                }
                self.apply(Op::Wait(3));
            }
            if turn > 10 && self.unfinished().is_empty() {
                return;
            }
        }
        panic!(
            "never delivered: {:?} of {:#?}",
            self.unfinished(),
            self.world
        );
    }

    /// Committed, not dropped, and neither in both stages nor discarded.
    fn unfinished(&self) -> Vec<i64> {
        let world = &self.world;
        let is_finished = |stage: usize, id: &i64| {
            world.has(stage).contains(EventId(*id)) || world.discarded[stage].contains(EventId(*id))
        };
        let in_both = |id: &i64| is_finished(0, id) && is_finished(1, id);
        let discarded_only = |id: &i64| world.discarded[0].contains(EventId(*id));
        world
            .rows
            .keys()
            .filter(|id| !in_both(id) && !discarded_only(id))
            .copied()
            .collect()
    }

    /// D-9: what the account says is what happened.
    fn check_account(&self) {
        let world = &self.world;
        for id in &world.committed {
            let is_delivered = world.delivered.contains(id);
            assert!(is_delivered || world.ghosts.contains(id), "{id} is lost");
            if world.has(1).contains(EventId(*id)) {
                assert!(is_delivered, "{id} is in the ledger and was not delivered");
            }
        }
        for stage in 0..2 {
            for range in world.discarded[stage].iter() {
                for id in range.low..range.high {
                    assert!(world.ghosts.contains(&id), "{id} was discarded");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// D-9, D-10, D-11 over histories full of faults.
    #[test]
    fn every_committed_row_is_delivered_whatever_happens(
        ops in history(Some(13)),
        has_relay in any::<bool>(),
        commits in any::<bool>(),
    ) {
        let mut play = Play::new();
        ops.into_iter().for_each(|op| play.apply(op));
        play.heal(has_relay, commits);
        play.check_account();
    }

    /// D-10 in its plainest form: without a fault nothing is sent twice, however late commits
    /// come, however the relay and the group lag, and however many sweepers look.
    #[test]
    fn without_a_fault_nothing_is_sent_again(
        ops in history(None),
        commits in any::<bool>(),
    ) {
        let mut play = Play::new();
        play.apply(Op::StartRelay);
        ops.into_iter().for_each(|op| play.apply(op));
        play.heal(true, commits);
        play.check_account();
        prop_assert!(play.world.redelivery.is_empty());
    }
}
