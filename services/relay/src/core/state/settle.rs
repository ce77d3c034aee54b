//! What follows from the whole situation, whatever the input was: what is due, and what took too
//! long.

use super::{Action, Actions, Lost, Relay, State, StopReason};
use crate::core::Moment;
use crate::core::session::Session;

/// Periodic statuses without an answer after which the server counts as gone.
const UNANSWERED: u64 = 3;
/// A connection that lasted this long starts the backoff over.
const STABLE_US: u64 = 10_000_000;

impl Relay {
    /// What follows from the whole situation, whatever the input was.
    pub(super) fn settle(&mut self, now: Moment, out: &mut Actions) {
        if let Some(session) = &mut self.session {
            self.idle_advances += u64::from(session.idle());
        }
        if self.stop_by.is_some() {
            self.wind_down(now, out);
            return;
        }
        self.judge_sink(now, out);
        let crowded = self.session.as_ref().is_some_and(Session::is_crowded);
        if self.session.is_some() {
            match self.flying.turn(crowded) {
                Some(true) => out.push(Action::PauseRead),
                Some(false) => {
                    self.heard_at = now;
                    out.push(Action::ResumeRead);
                }
                None => {}
            }
        }
        self.judge_server(now, out);
        self.speak(now, out);
        self.retry(now, out);
        self.sleep(now, out);
    }

    fn speak(&mut self, now: Moment, out: &mut Actions) {
        let Some(session) = &mut self.session else {
            return;
        };
        if let Some(status) = session.confirm.due(now) {
            out.push(Action::Confirm(status));
        }
        if now.since(self.connected_at) >= STABLE_US {
            self.backoff.reset();
        }
        // Only acknowledged commits are stored: storing each idle advance would write the log
        // that causes the next one.
        let acked = session.confirm.acked();
        let due = now.since(self.saved.1) >= self.timing.save_position_us;
        if due && self.unsaved && acked > self.saved.0 {
            self.saved = (acked, now);
            self.unsaved = false;
            out.push(Action::SavePosition(acked));
        }
    }

    fn retry(&mut self, now: Moment, out: &mut Actions) {
        if self.session.is_some() || self.asked {
            return;
        }
        // A probe that was answered leaves no moment to wait for: connect at once.
        if self.retry_at.is_some_and(|at| now < at) {
            return;
        }
        self.asked = true;
        let probe = self.state == State::SinkUnavailable && self.retry_at.is_some();
        self.retry_at = None;
        out.push(if probe {
            Action::ProbeSink
        } else {
            Action::Connect
        });
    }

    fn sleep(&mut self, now: Moment, out: &mut Actions) {
        let speak = self
            .session
            .as_ref()
            .map(|session| session.confirm.wake_at());
        let stalled = (self.session.is_some() && self.flying.rows() > 0).then(|| self.stall_at());
        let retry = if self.session.is_none() && !self.asked {
            self.retry_at
        } else {
            None
        };
        let next = [speak, stalled, retry, self.silent_at(), self.stop_by]
            .into_iter()
            .flatten()
            .min();
        if let Some(next) = next.filter(|_| next != self.slept || next.is_some_and(|at| at <= now))
        {
            self.slept = Some(next);
            out.push(Action::SleepUntil(next));
        }
    }

    fn judge_sink(&mut self, now: Moment, out: &mut Actions) {
        if self.session.is_some() && self.flying.rows() > 0 && now >= self.stall_at() {
            // Nothing is thrown away: the producer goes on trying, in order. Only Postgres is
            // set free, so that it can shut down meanwhile (C27).
            self.hang_up(out);
            let text = format!(
                "no acknowledgement for {} s",
                self.timing.sink_patience_us / 1_000_000
            );
            self.wait_in(State::SinkUnavailable, text, now, out);
        }
    }

    /// Each periodic status asks for an answer; a server that gives none is gone, whatever its
    /// socket says.
    fn judge_server(&mut self, now: Moment, out: &mut Actions) {
        if self.silent_at().is_some_and(|at| now >= at) {
            self.lost(
                Lost::connection("postgres does not answer on the stream"),
                now,
                out,
            );
        }
    }

    fn silent_at(&self) -> Option<Moment> {
        let session = self.session.as_ref().filter(|_| !self.flying.is_paused())?;
        Some(
            self.heard_at
                .plus(session.confirm.interval_us() * UNANSWERED),
        )
    }

    fn stall_at(&self) -> Moment {
        self.progress_at.plus(self.timing.sink_patience_us)
    }

    fn wind_down(&mut self, now: Moment, out: &mut Actions) {
        let Some(session) = &mut self.session else {
            out.push(Action::Stop(StopReason::Asked));
            return;
        };
        if self.flying.rows() > 0 && self.stop_by.is_some_and(|at| now < at) {
            if self.flying.pause() {
                out.push(Action::PauseRead);
            }
            self.speak(now, out);
            self.sleep(now, out);
            return;
        }
        let status = session.confirm.send(now, false);
        out.push(Action::Confirm(status));
        if status.confirmed > self.saved.0 {
            out.push(Action::SavePosition(status.confirmed));
        }
        out.push(Action::Stop(StopReason::Asked));
    }
}
