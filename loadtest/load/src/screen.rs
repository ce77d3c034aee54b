//! What the person in front of the terminal sees: messages that stay, and live lines below them.
//!
//! On a terminal the live lines are redrawn in place; elsewhere one short line comes from time to
//! time.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Standard output.
#[derive(Debug)]
pub struct Screen {
    terminal: bool,
    /// Time between two lines without a terminal.
    plain_every: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    drawn: Vec<String>,
    last_plain: Option<Instant>,
}

impl Screen {
    /// Without a terminal a line comes at most every `plain_every`.
    pub fn new(plain_every: Duration) -> Self {
        let state = Mutex::new(State {
            drawn: Vec::new(),
            last_plain: None,
        });
        Self {
            terminal: io::stdout().is_terminal(),
            plain_every,
            state,
        }
    }

    /// Prints a message that stays, above the live lines.
    pub fn say(&self, message: &str) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        write(&format!(
            "{}{message}\n{}",
            erase(state.drawn.len()),
            block(&state.drawn)
        ));
    }

    /// Redraws the live lines; without a terminal prints `plain` when it is time.
    pub fn show(&self, lines: Vec<String>, plain: impl FnOnce() -> String) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.terminal {
            write(&format!("{}{}", erase(state.drawn.len()), block(&lines)));
            state.drawn = lines;
        } else if state
            .last_plain
            .is_none_or(|last| last.elapsed() >= self.plain_every)
        {
            state.last_plain = Some(Instant::now());
            write(&format!("{}\n", plain()));
        }
    }

    /// Leaves the last live lines where they are.
    pub fn freeze(&self) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_lines_are_erased_as_were_drawn() {
        let lines = ["one".to_owned(), "two".to_owned()];
        assert_eq!(block(&lines).matches('\n').count(), lines.len());
        assert!(erase(lines.len()).starts_with("\x1b[2F"));
        assert_eq!((erase(0), block(&[])), (String::new(), String::new()));
    }
}
