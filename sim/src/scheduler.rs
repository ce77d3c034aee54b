//! Who goes next: one thing at a time, drawn by the seed from all that may happen.
//!
//! A run has two parts. In the first everything may go wrong. Then the faults are off, everything
//! is started again, and what was begun has to come to rest: there the account is looked at.

use crate::{
    actors::{fanout::FanoutProcess, relay::RelayProcess, sweep::SweepProcess, writer::Writer},
    fault,
    invariants::{self, Live},
    world::{MS, SECOND, World, log, postgres, store},
};

/// Rounds of the part that has to come to rest.
const ROUNDS: u32 = 2_000;
/// Things that one process may do in a round.
const PER_ROUND: u32 = 60;

/// A run: the world and those who act in it.
#[derive(Debug)]
pub(crate) struct Play {
    pub(crate) world: World,
    pub(crate) relays: [RelayProcess; 2],
    pub(crate) fanouts: [FanoutProcess; 2],
    pub(crate) sweeps: [SweepProcess; 2],
    writer: Writer,
}

impl Play {
    pub(crate) fn new(mut world: World) -> Self {
        let relays = ["relay-a", "relay-b"].map(|name| RelayProcess::start(name, &mut world));
        let fanouts = ["fanout-a", "fanout-b"].map(|name| FanoutProcess::start(name, &mut world));
        let sweeps = ["sweep-a", "sweep-b"].map(|name| SweepProcess::start(name, &mut world));
        let mut writer = Writer::default();
        writer.settle(&mut world);
        Self {
            world,
            relays,
            fanouts,
            sweeps,
            writer,
        }
    }

    /// The whole run, or up to the first violation.
    pub(crate) fn run(&mut self) {
        for _ in 0..self.world.profile.steps {
            self.step();
            if self.world.violation().is_some() {
                return;
            }
        }
        self.come_to_rest();
    }

    fn step(&mut self) {
        self.world.step += 1;
        if self.world.rng.u32(..10_000) < self.world.profile.fault_rate {
            let faults = self.world.profile.faults.clone();
            let at = self.world.below(faults.len());
            if let Some(fault) = faults.get(at) {
                return fault.strike(self);
            }
        }
        let (writers, haste) = (self.world.profile.writers, self.world.profile.haste);
        let which = self.world.below(2);
        match self.world.rng.u32(..100 + writers + haste) {
            0..24 => drop(self.relays[which].step(&mut self.world)),
            24..52 => drop(self.fanouts[which].step(&mut self.world)),
            52..68 => drop(self.sweep(which)),
            68..80 => drop(self.broker(which)),
            80..88 => drop(store::serve(&mut self.world)),
            88..94 => drop(self.coordinate()),
            94..97 => drop(fault::mend(self, false)),
            97..100 => self.housekeep(),
            at if at < 100 + writers => drop(self.writer.step(&mut self.world)),
            _ => {
                let pause = fault::pause(&mut self.world);
                self.wait(pause);
            }
        }
    }

    fn sweep(&mut self, which: usize) -> bool {
        let relays = &self.relays;
        let lives = |world: &World, uid: u64| -> Option<Live> {
            relays.iter().find_map(|relay| relay.live(world, uid))
        };
        self.sweeps[which].step(&mut self.world, &lives)
    }

    fn broker(&mut self, which: usize) -> bool {
        if self.world.odds(600) {
            self.relays[which].produce_on(&mut self.world)
        } else {
            self.sweeps[which].produce_on(&mut self.world)
        }
    }

    fn coordinate(&mut self) -> bool {
        let [first, second] = &mut self.fanouts;
        if first.join(&mut self.world) || second.join(&mut self.world) {
            return true;
        }
        log::coordinate(
            &mut self.world,
            &mut [&mut first.member, &mut second.member],
        )
    }

    /// What servers do by themselves: a session that is over, a connection that is found dead.
    fn housekeep(&mut self) {
        let world = &mut self.world;
        match world.below(3) {
            0 => {
                let fanouts = &self.fanouts;
                let is_dead = |name: u64| {
                    !fanouts
                        .iter()
                        .any(|fanout| fanout.is_alive && fanout.member.name == name)
                };
                let dead: Vec<u64> = world
                    .log
                    .sessions
                    .iter()
                    .copied()
                    .filter(|name| is_dead(*name))
                    .collect();
                dead.into_iter().for_each(|name| world.log.expire(name));
            }
            1 => world.let_go_of_the_dead(),
            _ => self
                .fanouts
                .iter_mut()
                .for_each(|fanout| fanout.thaw(world)),
        }
    }

    /// Starts what is dead. Whether anything was.
    pub(crate) fn revive(&mut self, all: bool) -> bool {
        let world = &mut self.world;
        let mut revived = false;
        for relay in self.relays.iter_mut().filter(|relay| !relay.is_alive) {
            if all || world.odds(400) {
                *relay = RelayProcess::start(relay.name(), world);
                revived = true;
            }
        }
        for fanout in self.fanouts.iter_mut().filter(|fanout| !fanout.is_alive) {
            if all || world.odds(400) {
                *fanout = FanoutProcess::start(fanout.name(), world);
                revived = true;
            }
        }
        for sweep in self.sweeps.iter_mut().filter(|sweep| !sweep.is_alive) {
            if all || world.odds(400) {
                *sweep = SweepProcess::start(sweep.name, world);
                revived = true;
            }
        }
        revived
    }

    /// Time passes. What has a limit is ended before it.
    fn wait(&mut self, micros: u64) {
        let world = &mut self.world;
        let until = world.now + micros;
        store::end_late(world, until);
        self.relays
            .iter_mut()
            .for_each(|relay| relay.ledger.hurry(world, until));
        self.fanouts
            .iter_mut()
            .for_each(|fanout| fanout.ledger.hurry(world, until));
        if micros > 20 * SECOND {
            // Nobody is kept waiting for a commit that is flushed for so long.
            while let Some(at) = world.pg.open.iter().position(|txn| txn.is_flushed) {
                postgres::show(world, at);
            }
        }
        world.now = until;
        world.store.collect(until);
    }

    fn come_to_rest(&mut self) {
        self.world.tell("-", || "the faults are over".to_owned());
        self.world.has_faults = false;
        while !self.world.pg.open.is_empty() {
            let commits = self.world.odds(500);
            postgres::end(&mut self.world, 0, commits);
        }
        fault::mend(self, true);
        for _ in 0..6 {
            self.housekeep();
        }
        for round in 0..ROUNDS {
            // More than once: a group that has read a new topic up to the very offset that it had in
            // the old one is known to have committed only by its next commit.
            if [60, 200, 450, 900].contains(&round) {
                self.writer.last_posts(&mut self.world);
            }
            self.round(round);
            if self.world.violation().is_some() {
                return;
            }
            if round > 100 && self.is_idle() && invariants::unsettled(&self.world).is_none() {
                return invariants::at_rest(&mut self.world);
            }
        }
        if let Some((invariant, text)) = invariants::unsettled(&self.world) {
            self.world
                .violate(invariant, format!("never came to rest: {text}"));
        } else {
            self.world
                .violate(invariants::Invariant::Fault, "something never ended");
        }
    }

    /// Everybody does what there is to do, then time passes.
    fn round(&mut self, round: u32) {
        fault::mend(self, true);
        self.housekeep();
        for _ in 0..PER_ROUND {
            self.world.step += 1;
            let mut any = false;
            for which in 0..2 {
                any |= self.relays[which].step(&mut self.world);
                any |= self.relays[which].produce_on(&mut self.world);
                any |= self.fanouts[which].step(&mut self.world);
                any |= self.sweep(which);
                any |= self.sweeps[which].produce_on(&mut self.world);
            }
            any |= store::serve(&mut self.world);
            any |= self.coordinate();
            if !any || self.world.violation().is_some() {
                break;
            }
        }
        self.wait(match round {
            0..40 => 250 * MS,
            40..400 => SECOND,
            400..800 => 10 * SECOND,
            _ => 600 * SECOND,
        });
    }

    fn is_idle(&self) -> bool {
        self.world.store.is_idle()
            && self.relays.iter().all(RelayProcess::is_idle)
            && self.fanouts.iter().all(FanoutProcess::is_idle)
    }
}
