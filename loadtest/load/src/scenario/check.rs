//! From what is written to what can be run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use runtime::config::value::Span;

use super::faults::Faults;
use super::raw::{
    Raw, RawArrivals, RawChurn, RawGraph, RawHotReader, RawLimits, RawPosts, RawProbe, RawReaders,
    RawSchedule, RawThresholds,
};
use super::{
    Churn, GraphPlan, HotReader, Limits, Posts, Probe, Reading, Scenario, Schedule, Thresholds,
};
use crate::arrival::{self, Arrival};
use crate::audience::Audience;

/// The largest graph that is made: beyond it ids no longer fit into four bytes.
const MOST_USERS: u64 = 100_000_000;

pub(super) fn check(name: &str, raw: Raw, faults: &mut Faults) -> Scenario {
    let duration = span(faults.need(raw.duration.map(Some), "duration", "\"60s\""));
    faults.unless(
        raw.duration.is_none() || duration >= Duration::from_millis(100),
        "duration",
        "has to be at least 100ms",
    );
    // What is compared with a duration that is not known would only be told as wrong too.
    let duration = if raw.duration.is_some() {
        duration
    } else {
        Duration::MAX
    };
    let warm_up = span(raw.warm_up);
    faults.unless(
        warm_up < duration,
        "warm_up",
        "has to be shorter than duration",
    );
    let celebrities = raw.graph.celebrities.as_ref().map_or(0, Vec::len) as u64;
    let posts = raw.posts.map(|posts| check_posts(posts, faults));
    let readers = raw
        .readers
        .map(|readers| check_readers(readers, "readers", faults));
    let graph = check_graph(raw.graph, faults);
    let hot_reader = raw
        .hot_reader
        .map(|hot| check_hot_reader(hot, graph.users, faults));
    let schedules = (raw.celebrities.into_iter().enumerate())
        .map(|(index, schedule)| check_schedule(schedule, index, celebrities, duration, faults))
        .collect::<Vec<_>>();
    if posts.is_none() && schedules.is_empty() && readers.is_none() && hot_reader.is_none() {
        faults.add(
            "posts",
            "nothing is sent: give [posts], [[celebrities]] or [readers]",
        );
    }
    let thresholds = check_thresholds(raw.thresholds, faults);
    let churn = check_churn(raw.churn, celebrities, faults);
    Scenario {
        name: name.to_owned(),
        about: raw.about.unwrap_or_default(),
        seed: raw.seed.unwrap_or(1),
        duration,
        warm_up,
        graph,
        posts,
        celebrities: schedules,
        readers,
        hot_reader,
        churn,
        probe: check_probe(raw.probe, faults),
        limits: check_limits(raw.limits, faults),
        thresholds,
    }
}

fn check_probe(raw: RawProbe, faults: &mut Faults) -> Probe {
    let probe = Probe {
        share: share(raw.share, 0.0, "probe.share", faults),
        at_once: raw.at_once.unwrap_or(8),
        deliveries_per_s: raw.deliveries_per_s.unwrap_or(50),
    };
    faults.unless(
        probe.deliveries_per_s > 0,
        "probe.deliveries_per_s",
        "is at least 1",
    );
    probe
}

fn check_limits(raw: RawLimits, faults: &mut Faults) -> Limits {
    let limits = Limits {
        in_flight: raw.in_flight.unwrap_or(512),
        patience: raw.patience.map_or(Duration::from_secs(30), |s| s.0),
        settle: raw.settle.map_or(Duration::from_secs(120), |s| s.0),
    };
    faults.unless(limits.in_flight > 0, "limits.in_flight", "is at least 1");
    limits
}

fn check_graph(raw: RawGraph, faults: &mut Faults) -> GraphPlan {
    let users = faults.need(raw.users, "graph.users", "10000");
    faults.unless(
        (2..=MOST_USERS).contains(&users),
        "graph.users",
        "is 2 to 100000000",
    );
    let celebrities = raw.celebrities.unwrap_or_default();
    for (index, &audience) in celebrities.iter().enumerate() {
        if audience > users {
            faults.add(
                format!("graph.celebrities[{index}]"),
                format!("{audience} followers are more than graph.users = {users}"),
            );
        }
    }
    faults.unless(
        raw.exponent.is_none_or(|exponent| exponent > 1.0),
        "graph.exponent",
        "is above 1; published figures are 2.05 to 2.3",
    );
    GraphPlan {
        users,
        exponent: raw.exponent,
        smallest: raw.smallest,
        largest: raw.largest,
        celebrities,
        same_partition: raw.same_partition.unwrap_or(false),
    }
}

fn check_posts(raw: RawPosts, faults: &mut Faults) -> Posts {
    let arrivals = check_arrivals(raw.arrivals, "posts.arrivals", faults);
    let mut mix = Vec::new();
    for (key, value) in raw.mix {
        let at = format!("posts.mix.{key}");
        match Audience::of_key(&key) {
            Some(class) => mix.push((class, share(Some(value), 0.0, &at, faults))),
            None => faults.add(at, unknown_class()),
        }
    }
    mix.retain(|(_, share)| *share > 0.0);
    let total: f64 = mix.iter().map(|(_, share)| share).sum();
    if !mix.is_empty() && (total - 1.0).abs() > 0.001 {
        faults.add("posts.mix", format!("the shares add up to {total}, not 1"));
    }
    Posts {
        arrivals,
        mix,
        delete_share: share(raw.delete_share, 0.0, "posts.delete_share", faults),
        delete_within: raw.delete_within.map_or(Duration::from_secs(3), |s| s.0),
        repeat_share: share(raw.repeat_share, 0.0, "posts.repeat_share", faults),
    }
}

fn check_schedule(
    raw: RawSchedule,
    index: usize,
    celebrities: u64,
    duration: Duration,
    faults: &mut Faults,
) -> Schedule {
    let name = |key: &str| format!("celebrities[{index}].{key}");
    let (first, authors) = (raw.first.unwrap_or(0), raw.authors.unwrap_or(1));
    if authors == 0 || first.saturating_add(authors) > celebrities {
        faults.add(
            name("authors"),
            format!(
                "names celebrities {first} to {}, and graph.celebrities has {celebrities}",
                first.saturating_add(authors)
            ),
        );
    }
    let schedule = Schedule {
        first,
        authors,
        at: span(raw.at),
        within: span(raw.within),
        times: raw.times.unwrap_or(1),
        every: raw.every.map_or(Duration::from_secs(1), |s| s.0),
        delete_after: raw.delete_after.map(|s| s.0),
        readers_per_mille: (share(raw.readers_share, 0.0, &name("readers_share"), faults) * 1_000.0)
            .round() as u64,
        readers_within: raw.readers_within.map_or(Duration::from_secs(10), |s| s.0),
    };
    faults.unless(schedule.times > 0, &name("times"), "is at least 1");
    faults.unless(
        schedule.at < duration,
        &name("at"),
        "lies behind the end of the run",
    );
    faults.unless(
        schedule.readers_within >= Duration::from_millis(1),
        &name("readers_within"),
        "is at least 1ms",
    );
    schedule
}

fn check_readers(raw: RawReaders, at: &str, faults: &mut Faults) -> Reading {
    let reading = Reading {
        arrivals: check_arrivals(raw.arrivals, &format!("{at}.arrivals"), faults),
        pages: raw.pages.unwrap_or(1),
        page_size: raw.page_size.unwrap_or(20),
    };
    faults.unless(reading.pages > 0, &format!("{at}.pages"), "is at least 1");
    faults.unless(
        (1..=100).contains(&reading.page_size),
        &format!("{at}.page_size"),
        "is 1 to 100",
    );
    reading
}

fn check_hot_reader(raw: RawHotReader, users: u64, faults: &mut Faults) -> HotReader {
    let follows = faults.need(raw.follows, "hot_reader.follows", "1000");
    faults.unless(
        follows <= users,
        "hot_reader.follows",
        "is at most graph.users",
    );
    let reading = RawReaders {
        arrivals: raw.arrivals,
        pages: raw.pages,
        page_size: raw.page_size,
    };
    HotReader {
        follows,
        reading: check_readers(reading, "hot_reader", faults),
    }
}

fn check_churn(raw: RawChurn, celebrities: u64, faults: &mut Faults) -> Churn {
    let churn = Churn {
        unfollow_rate: raw.unfollow_rate.unwrap_or(0.0),
        follow_rate: raw.follow_rate.unwrap_or(0.0),
        back_after: raw.back_after.map(|s| s.0),
        celebrity_share: share(raw.celebrity_share, 0.0, "churn.celebrity_share", faults),
    };
    for (key, rate) in [
        ("unfollow_rate", churn.unfollow_rate),
        ("follow_rate", churn.follow_rate),
    ] {
        faults.unless(
            rate >= 0.0 && rate.is_finite(),
            &format!("churn.{key}"),
            "is a rate per second, at least 0",
        );
    }
    faults.unless(
        churn.celebrity_share == 0.0 || celebrities > 0,
        "churn.celebrity_share",
        "needs graph.celebrities",
    );
    churn
}

fn check_arrivals(raw: RawArrivals, at: &str, faults: &mut Faults) -> Arrival {
    let name = |key: &str| format!("{at}.{key}");
    let rate = |value: Option<f64>, key: &str, faults: &mut Faults| {
        let rate = faults.need(value, &name(key), "100");
        if value.is_some() && !(rate > 0.0 && rate.is_finite()) {
            faults.add(name(key), "is a rate per second above 0");
        }
        rate
    };
    match raw.process.as_deref().unwrap_or("poisson") {
        "constant" => Arrival::Constant {
            rate: rate(raw.rate, "rate", faults),
        },
        "poisson" => Arrival::Poisson {
            rate: rate(raw.rate, "rate", faults),
        },
        "ramp" => Arrival::Ramp {
            from: rate(raw.rate, "rate", faults),
            to: rate(raw.to, "to", faults),
        },
        "burst" => {
            let (base, peak) = (
                rate(raw.rate, "rate", faults),
                rate(raw.peak, "peak", faults),
            );
            let every = span(faults.need(raw.every.map(Some), &name("every"), "\"10s\""));
            let length = span(faults.need(raw.length.map(Some), &name("length"), "\"1s\""));
            if length.is_zero() || length > every {
                faults.add(name("length"), "is above 0 and at most `every`");
            }
            Arrival::Burst {
                base,
                peak,
                every,
                length,
            }
        }
        "replay" => {
            let trace = PathBuf::from(faults.need(raw.trace, &name("trace"), "\"times.txt\""));
            if !trace.as_os_str().is_empty()
                && let Err(error) = arrival::check_trace(&trace)
            {
                faults.add(name("trace"), format!("{error:#}"));
            }
            Arrival::Replay { trace }
        }
        other => {
            faults.add(
                name("process"),
                format!("{other:?} is none of constant, poisson, ramp, burst, replay"),
            );
            Arrival::Constant { rate: 1.0 }
        }
    }
}

fn check_thresholds(raw: RawThresholds, faults: &mut Faults) -> Thresholds {
    Thresholds {
        ack_p99: raw.ack_p99.map(|s| s.0),
        page_p99: raw.page_p99.map(|s| s.0),
        visible_p99: raw.visible_p99.map(|s| s.0),
        first_follower_p99: by_class(raw.first_follower_p99, "first_follower_p99", faults),
        last_follower_p99: by_class(raw.last_follower_p99, "last_follower_p99", faults),
        failed: raw.failed.unwrap_or(0),
        scheduler_lag_p99: raw
            .scheduler_lag_p99
            .map_or(Duration::from_millis(5), |s| s.0),
    }
}

fn by_class(
    raw: BTreeMap<String, Span>,
    key: &str,
    faults: &mut Faults,
) -> BTreeMap<usize, Duration> {
    let mut limits = BTreeMap::new();
    for (name, limit) in raw {
        match Audience::of_key(&name) {
            Some(class) => {
                let _before = limits.insert(class.index(), limit.0);
            }
            None => faults.add(format!("thresholds.{key}.{name}"), unknown_class()),
        }
    }
    limits
}

fn unknown_class() -> String {
    let keys = Audience::ALL.map(Audience::key);
    format!("is no audience class; they are {}", keys.join(", "))
}

fn share(value: Option<f64>, default: f64, at: &str, faults: &mut Faults) -> f64 {
    let value = value.unwrap_or(default);
    faults.unless(
        (0.0..=1.0).contains(&value),
        at,
        "is a share between 0 and 1",
    );
    value
}

fn span(value: Option<Span>) -> Duration {
    value.map_or(Duration::ZERO, |span| span.0)
}
