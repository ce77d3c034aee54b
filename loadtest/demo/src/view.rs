//! What the person in front of the terminal sees: messages, and one live line for each part.
//!
//! On a terminal the lines are redrawn in place; elsewhere one short line comes from time to time.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::progress::Snapshot;

/// Time between two lines without a terminal.
const PLAIN_EVERY: Duration = Duration::from_secs(5);

/// The screen.
#[derive(Debug)]
pub(crate) struct View {
    terminal: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    drawn: Vec<String>,
    last_plain: Option<Instant>,
}

impl View {
    /// Standard output.
    pub(crate) fn new() -> Self {
        let state = Mutex::new(State {
            drawn: Vec::new(),
            last_plain: None,
        });
        Self {
            terminal: io::stdout().is_terminal(),
            state,
        }
    }

    /// Prints a message that stays, above the live lines.
    pub(crate) fn say(&self, message: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = state.drawn.clone();
        write(&format!(
            "{}{message}\n{}",
            erase(state.drawn.len()),
            block(&lines)
        ));
        state.drawn = lines;
    }

    /// Redraws the live lines.
    pub(crate) fn show(&self, now: &Snapshot) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.terminal {
            let lines = lines(now);
            write(&format!("{}{}", erase(state.drawn.len()), block(&lines)));
            state.drawn = lines;
        } else if state
            .last_plain
            .is_none_or(|last| last.elapsed() >= PLAIN_EVERY)
        {
            state.last_plain = Some(Instant::now());
            write(&format!("{}\n", plain(now)));
        }
    }

    /// Leaves the last live lines where they are.
    pub(crate) fn freeze(&self) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drawn
            .clear();
    }
}

/// A screen that cannot be written to is no reason to stop: the exit code tells the outcome.
fn write(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Up over so many lines, and away with them.
fn erase(lines: usize) -> String {
    if lines == 0 {
        String::new()
    } else {
        format!("\x1b[{lines}F\x1b[J")
    }
}

/// Lines that are cut at the edge of the screen instead of wrapped, so that their number is known.
fn block(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    format!("\x1b[?7l{}\n\x1b[?7h", lines.join("\n"))
}

/// One line for each part, in the order the data flows.
fn lines(now: &Snapshot) -> Vec<String> {
    let state = |up: bool| if up { "" } else { "   killed, starting again" };
    vec![
        format!(
            "  write-api  {:>8} posts accepted   {} deleted   {} follows changed   {} retries",
            now.sent.accepted, now.sent.deleted, now.sent.edges_changed, now.sent.retries
        ),
        format!(
            "  relay      {:>8} of {} events published   {} waiting{}",
            now.events - now.unpublished,
            now.events,
            now.unpublished,
            state(now.relay_up)
        ),
        format!(
            "  sweep      {:>8} events sent again, whose entry in the ledger was lost",
            now.redelivered
        ),
        format!("  kafka      {:>8} events of lag", now.lag),
        format!(
            "  fanout     {:>8} of {} post events delivered   oldest undelivered {:.1} s{}",
            now.post_events - now.undelivered,
            now.post_events,
            now.oldest.as_secs_f64(),
            state(now.fanout_up)
        ),
        format!("  timelines  {:>8} rows written", now.rows),
        match now.page {
            Some(time) => format!(
                "  read-api   {:>8} ms for a reader's first page",
                time.as_millis()
            ),
            None => "  read-api   no answer".to_owned(),
        },
    ]
}

fn plain(now: &Snapshot) -> String {
    format!(
        "accepted={} published={}/{} delivered={}/{} rows={} lag={} oldest={:.1}s",
        now.sent.accepted,
        now.events - now.unpublished,
        now.events,
        now.post_events - now.undelivered,
        now.post_events,
        now.rows,
        now.lag,
        now.oldest.as_secs_f64()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_one_line() {
        let now = Snapshot {
            events: 10,
            unpublished: 3,
            relay_up: false,
            fanout_up: true,
            ..Snapshot::default()
        };
        let lines = lines(&now);
        for (part, line) in [
            "write-api",
            "relay",
            "sweep",
            "kafka",
            "fanout",
            "timelines",
            "read-api",
        ]
        .iter()
        .zip(&lines)
        {
            assert!(line.trim_start().starts_with(part), "{line}");
            assert!(!line.contains('\n'));
        }
        assert!(lines[1].contains("7 of 10 events published") && lines[1].contains("killed"));
        assert!(!lines[4].contains("killed"));
        assert!(plain(&now).contains("published=7/10"));
    }
}
