//! How the run goes on, once a second.

use std::time::Duration;

use crate::metrics::{Metrics, Seen};
use crate::run::Shared;
use crate::screen::Screen;
use crate::tally::{Counts, Request};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// One look.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Snapshot {
    at: Duration,
    counts: Counts,
    before: Counts,
    /// Acknowledged and not known to be delivered.
    awaited: u64,
    in_flight: usize,
    ack_p99: Option<Duration>,
    last_p99: Option<Duration>,
    lag_p99: Option<Duration>,
    seen: Seen,
}

/// Shows how the run goes on, until the future is dropped.
pub async fn show(shared: &Shared, metrics: &Metrics, screen: &Screen) {
    let mut before = Counts::default();
    let mut next = shared.clock.now();
    loop {
        let seen = metrics.look().await;
        metrics.note(&shared.clock, &seen);
        let now = look(shared, before, seen);
        before = now.counts;
        screen.show(lines(&now), || plain(&now));
        next = (next + EVERY).max(shared.clock.now());
        tokio::time::sleep_until(shared.clock.moment(next)).await;
    }
}

fn look(shared: &Shared, before: Counts, seen: Seen) -> Snapshot {
    let in_flight = shared.in_flight();
    let at = shared.clock.now();
    let tally = shared.tally();
    let last = tally.classes.iter();
    Snapshot {
        at,
        counts: tally.counts,
        before,
        awaited: tally.counts.posts.saturating_sub(tally.counts.delivered),
        in_flight,
        ack_p99: tally.request(Request::Post).and_then(|r| r.quantile(0.99)),
        last_p99: last.filter_map(|class| class.last.quantile(0.99)).max(),
        lag_p99: tally.lag.quantile(0.99),
        seen,
    }
}

fn lines(now: &Snapshot) -> Vec<String> {
    let (counts, before) = (now.counts, now.before);
    vec![
        format!(
            "  {:>6.1} s     {:>8} due   {} in flight   {} retries   {} failed   {} shed",
            now.at.as_secs_f64(),
            counts.planned,
            now.in_flight,
            counts.retries,
            counts.failed,
            counts.shed
        ),
        format!(
            "  write-api  {:>8} posts ({}/s)   {} deleted   {} follows changed   p99 {}",
            counts.posts,
            counts.posts - before.posts,
            counts.deletes,
            counts.edges,
            milliseconds(now.ack_p99)
        ),
        format!(
            "  read-api   {:>8} pages ({}/s)",
            counts.pages,
            counts.pages - before.pages
        ),
        format!(
            "  timelines  {:>8} posts delivered   {} rows   {} posts on their way   last follower p99 {}",
            counts.delivered,
            counts.rows,
            now.awaited,
            milliseconds(now.last_p99)
        ),
        format!(
            "  services   {:>8} not published   {} records of lag   {} sent again by the sweep",
            whole(now.seen.unpublished),
            whole(now.seen.lag),
            whole(now.seen.redelivered)
        ),
        format!("  generator  {:>8} late (p99)", milliseconds(now.lag_p99)),
    ]
}

fn plain(now: &Snapshot) -> String {
    format!(
        "t={:.0}s due={} posts={} delivered={} rows={} waiting={} pages={} in_flight={} retries={} failed={} shed={} lag={} ack_p99={} last_p99={} late_p99={}",
        now.at.as_secs_f64(),
        now.counts.planned,
        now.counts.posts,
        now.counts.delivered,
        now.counts.rows,
        now.awaited,
        now.counts.pages,
        now.in_flight,
        now.counts.retries,
        now.counts.failed,
        now.counts.shed,
        whole(now.seen.lag),
        milliseconds(now.ack_p99),
        milliseconds(now.last_p99),
        milliseconds(now.lag_p99)
    )
}

fn milliseconds(time: Option<Duration>) -> String {
    time.map_or_else(
        || "-".to_owned(),
        |time| format!("{:.1}ms", time.as_secs_f64() * 1e3),
    )
}

fn whole(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_a_dash() {
        let now = Snapshot {
            counts: Counts {
                posts: 12,
                ..Counts::default()
            },
            ..Snapshot::default()
        };
        let plain = plain(&now);
        assert!(
            plain.contains("posts=12") && plain.contains("ack_p99=-"),
            "{plain}"
        );
        assert!(lines(&now).iter().all(|line| !line.contains('\n')));
    }
}
