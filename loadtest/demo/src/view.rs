//! What the person in front of the terminal sees: messages, and one live line for each part.

use std::time::Duration;

use load::screen::Screen;

use crate::progress::Snapshot;

/// Time between two lines without a terminal.
const PLAIN_EVERY: Duration = Duration::from_secs(5);

/// The screen.
#[derive(Debug)]
pub(crate) struct View(Screen);

impl View {
    /// Standard output.
    pub(crate) fn new() -> Self {
        Self(Screen::new(PLAIN_EVERY))
    }

    /// Prints a message that stays, above the live lines.
    pub(crate) fn say(&self, message: &str) {
        self.0.say(message);
    }

    /// Redraws the live lines.
    pub(crate) fn show(&self, now: &Snapshot) {
        self.0.show(lines(now), || plain(now));
    }

    /// Leaves the last live lines where they are.
    pub(crate) fn freeze(&self) {
        self.0.freeze();
    }
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
