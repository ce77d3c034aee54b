//! Carrying out the actions of the core: records, letters, statuses, positions.

use events::Class;
use pgoutput::Lsn;
use relay::core::{Action, Input, Status, StopReason};

use super::{Noted, RelayProcess};
use crate::{
    bugs::Bug,
    invariants,
    world::{
        World,
        postgres::{Position, index},
    },
};

impl RelayProcess {
    pub(super) fn carry_out(&mut self, action: Action, world: &mut World) {
        match action {
            Action::Connect => self.begin_attempt(),
            Action::ProbeSink => self.is_probing = true,
            Action::Produce(tag, record) => {
                let uid = self.name_of(&record.headers);
                let (name, event) = (self.name, record.summary.event);
                world.tell(name, || format!("sends event {event} (tag {tag})"));
                if world.has_bug(Bug::LedgerBeforeAck) {
                    let epoch = self.told_epoch;
                    self.ledger.note(world, event, uid, epoch);
                }
                self.flying.insert(tag, (uid, None));
                self.producer.send(tag, record, None);
            }
            Action::DeadLetter(tag, letter) => {
                let uid = self.row_of(world, letter.event);
                let (name, event) = (self.name, letter.event);
                world.tell(name, || {
                    format!(
                        "event {event} goes to the dead letters: {:?}",
                        letter.reason
                    )
                });
                self.flying.insert(tag, (uid, Some(letter.clone())));
                self.producer.send_letter(tag, letter, uid, None);
            }
            Action::Confirm(status) => self.confirm(status, world),
            Action::SavePosition(confirmed) => self.saving = self.saving.or(Some(confirmed)),
            Action::PauseRead => self.is_reading = false,
            Action::ResumeRead => self.is_reading = true,
            Action::Published { event, epoch, .. } => {
                let uid = self.acked.take().unwrap_or_default();
                world.truth.acked.insert(uid);
                self.ledger.note(world, event, uid, epoch);
            }
            Action::SleepUntil(moment) => self.wakes = Some(moment),
            Action::Disconnect => {
                if let Some(connection) = self.connection.take() {
                    world.pg.let_go(connection.name);
                }
            }
            Action::RebuildSink => {
                self.producer.abandon(world);
                self.flying.clear();
                self.letters.clear();
            }
            Action::Enter(state, text) => {
                world.tell(self.name, || format!("{}: {text}", state.as_str()));
            }
            Action::Stop(reason) => self.end(&reason, world),
            Action::Ignored(_) => {}
        }
    }

    fn confirm(&mut self, status: Status, world: &mut World) {
        let mut confirmed = status.confirmed.as_u64();
        if world.has_bug(Bug::ConfirmOnReceipt) {
            confirmed = status.received.as_u64();
        }
        if world.has_bug(Bug::ConfirmKeepalive) {
            confirmed = confirmed.max(self.keepalive);
        }
        let Some(connection) = &mut self.connection else {
            return;
        };
        connection.is_asked |= status.reply_requested;
        let name = connection.name;
        let holds = world.pg.slot.is_some_and(|slot| slot.holder == Some(name));
        let is_cut = connection.cuts != world.pg.cuts;
        // A status may get lost with its connection.
        if !holds || is_cut || !world.pg.is_up || world.fails(10) {
            return;
        }
        let before = world.pg.slot.and_then(|slot| slot.confirmed);
        if before == Some(confirmed) {
            return;
        }
        world.tell(self.name, || format!("confirms {confirmed}"));
        invariants::at_confirm(world, confirmed);
        if let Some(slot) = &mut world.pg.slot {
            slot.confirmed = slot.confirmed.max(Some(confirmed));
        }
    }

    /// One report of the producer.
    pub(super) fn report(&mut self, world: &mut World) -> bool {
        let Some((tag, result)) = self.producer.report(world) else {
            return false;
        };
        let Some((uid, letter)) = self.flying.get(&tag).cloned() else {
            return true;
        };
        match (result, letter) {
            (Ok(()), Some(letter)) => self.letters.push(Noted { tag, letter, uid }),
            (Ok(()), None) => self.is_acked(tag, uid, world),
            (Err(Class::Outage | Class::Unsure), None) if world.has_bug(Bug::RetryBehindOthers) => {
                self.send_again(tag, uid, world);
            }
            (Err(class), _) => {
                world.tell(self.name, || {
                    format!("tag {tag} failed: {}", class.as_str())
                });
                self.flying.remove(&tag);
                self.input(Input::Failed(tag, class), world);
            }
        }
        true
    }

    fn is_acked(&mut self, tag: u64, uid: u64, world: &mut World) {
        self.flying.remove(&tag);
        self.acked = Some(uid);
        self.input(Input::Acked(tag), world);
    }

    /// The row of a letter, once its topic has it.
    pub(super) fn write_letter(&mut self, world: &mut World) -> bool {
        if self.letters.is_empty() || !world.pg.is_up || world.fails(100) {
            return false;
        }
        let noted = self.letters.swap_remove(0);
        // The statement names the event; its server may have drawn the id anew meanwhile.
        let letters = &mut world.pg.account.letters[index(events::Stage::Published)];
        letters.insert(noted.letter.event, noted.letter.payload.is_some());
        world.tell(self.name, || {
            format!("letter of event {} entered", noted.letter.event)
        });
        self.is_acked(noted.tag, noted.uid, world);
        true
    }

    /// The bug of [`Bug::RetryBehindOthers`].
    fn send_again(&mut self, tag: u64, uid: u64, world: &mut World) {
        let Some(row) = world.truth.rows.get(&uid).cloned() else {
            return;
        };
        let via = events::route::Via::Relay {
            commit_lsn: 0,
            index: 0,
        };
        if let events::route::Routed::Record(record) = self.router.route(&row.cells(), via) {
            self.producer.send(tag, record, None);
        }
    }

    pub(super) fn save_on(&mut self, world: &mut World) -> bool {
        let Some(confirmed) = self.saving.take() else {
            return false;
        };
        if world.pg.is_up && !world.fails(100) {
            self.save(confirmed, world);
        }
        true
    }

    pub(super) fn save(&self, confirmed: Lsn, world: &mut World) {
        world.pg.position = Some(Position {
            server: self.server.clone(),
            confirmed: confirmed.as_u64(),
            updated_us: world.clock(),
        });
    }

    fn end(&mut self, reason: &StopReason, world: &mut World) {
        world.tell(self.name, || format!("ends: {reason:?}"));
        self.is_alive = false;
        let confirmed = self.saving.take();
        if let Some(confirmed) = confirmed.filter(|_| world.pg.is_up) {
            self.save(confirmed, world);
        }
        while world.pg.is_up && self.ledger.flush(world) {}
        self.ledger.lose(world);
        self.producer.abandon(world);
        self.connection = None;
        self.attempt = None;
        world.pg.let_go(self.connection_name);
    }

    fn name_of(&self, headers: &events::route::Headers) -> u64 {
        let header = headers
            .iter()
            .find(|(name, _)| *name == events::envelope::TRACEPARENT);
        let text = header.and_then(|(_, value)| std::str::from_utf8(value).ok());
        text.and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// The row that a letter is about: the newest of this id.
    fn row_of(&self, world: &World, event: events::EventId) -> u64 {
        let rows = world.truth.rows.values().rev();
        rows.into_iter()
            .find(|row| row.id == event)
            .map_or(0, |row| row.uid)
    }
}
