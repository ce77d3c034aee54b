//! Writes pages of made-up runs, to look at the page without a run: one that held, one with faults,
//! one without a single value. `cargo run -p report --example sample -- [folder]`.

use std::{path::Path, time::Duration};

use report::{
    Arrivals, Class, Counter, Fact, Judged, Latency, Machine, Mark, Phase, PhaseKind, Recorder,
    Run, Series, Target, Threshold,
};

const RUN_S: u64 = 195;
const WARM_UP: Duration = Duration::from_secs(20);

fn main() -> anyhow::Result<()> {
    let folder = std::env::args().nth(1);
    let folder = folder.unwrap_or_else(|| "target/report-sample".to_owned());
    let held = made_up(7);
    let mut broken = held.clone();
    spoil(&mut broken);
    let empty = Run::default();
    for (name, run) in [("held", &held), ("broken", &broken), ("empty", &empty)] {
        let written = report::write(run, &Path::new(&folder).join(name))?;
        println!("{}", written.page.display());
        println!("{}", report::text(run));
    }
    Ok(())
}

fn made_up(seed: u64) -> Run {
    let mut run = Run {
        scenario: "celebrity-storm".to_owned(),
        seed,
        started_unix_ms: 1_772_366_400_000,
        duration_s: RUN_S as f64,
        command: format!(
            "load run --scenario celebrity-storm --seed {seed} --rate 60/s --for 3m --storm \
             100000x10@60s --out results/storm"
        ),
        plan: vec![
            Fact::new("arrivals", "Poisson, 60 posts/s"),
            Fact::new("audiences", "1 to 1 000, exponent 2.2"),
            Fact::new("storm", "10 posts to 100 000 followers each in 1 s"),
            Fact::new("readers", "200 page requests/s"),
            Fact::new("churn", "5 follows and unfollows/s"),
        ],
        versions: vec![
            Fact::new("tideline", "0.1.0"),
            Fact::new("commit", "1f0c2d9"),
            Fact::new("Postgres", "17.2"),
            Fact::new("Kafka", "4.1.0"),
            Fact::new("Cassandra", "5.0.4"),
        ],
        machine: Machine::look(),
        judged: Some(Judged {
            posts: 10_482,
            rows_expected: 1_289_114,
            rows_found: 1_289_114,
            rows_stored: 1_289_871,
            walks: 200,
            walked_posts: 31_200,
            indeterminate: 14,
            rewritten: Some(1_024),
            ..Judged::default()
        }),
        notes: vec![
            "The last follower is seen in post_delivery; the first by sampled readers that \
                     ask every 100 ms."
                .to_owned(),
        ],
        ..Run::default()
    };
    happenings(&mut run);
    let mut chance = fastrand::Rng::with_seed(seed);
    measure(&mut run, &mut chance);
    demand(&mut run);
    run
}

fn happenings(run: &mut Run) {
    let phases = [
        ("warm-up", PhaseKind::WarmUp, 0.0, 20.0),
        ("steady", PhaseKind::Steady, 20.0, 60.0),
        ("celebrity storm", PhaseKind::Storm, 60.0, 90.0),
        ("steady", PhaseKind::Steady, 90.0, 120.0),
        ("relay down", PhaseKind::Fault, 120.0, 132.0),
        ("steady", PhaseKind::Steady, 132.0, 180.0),
        ("drain", PhaseKind::Drain, 180.0, 195.0),
    ];
    for (name, kind, from_s, to_s) in phases {
        run.phases.push(Phase {
            name: name.to_owned(),
            kind,
            from_s,
            to_s,
        });
    }
    let marks = [
        (
            "relay killed",
            "SIGKILL to the process that streamed.",
            120.0,
        ),
        ("relay back", "The other relay has taken the slot.", 132.0),
        ("fanout-2 stopped", "SIGSTOP for 5 s.", 150.0),
    ];
    for (name, detail, at_s) in marks {
        run.marks.push(Mark {
            name: name.to_owned(),
            detail: detail.to_owned(),
            at_s,
        });
    }
}

/// A time around a median, with a tail to longer ones.
fn spread(chance: &mut fastrand::Rng, median_ms: f64, tail: f64) -> Duration {
    let normal: f64 = (0..12).map(|_| chance.f64()).sum::<f64>() - 6.0;
    Duration::from_secs_f64(median_ms / 1_000.0 * (normal * tail).exp())
}

fn measure(run: &mut Run, chance: &mut fastrand::Rng) {
    let length = Duration::from_secs(RUN_S);
    let new = || Recorder::measured_from(WARM_UP);
    let (mut post, mut follow, mut page) = (new(), new(), new());
    let sizes: [(&str, u64, f64); 4] = [
        ("1 to 9 followers", 4, 24.0),
        ("10 to 99", 31, 38.0),
        ("100 to 999", 290, 95.0),
        ("100 000", 100_000, 5_200.0),
    ];
    let mut classes = sizes.map(|(name, ..)| Class {
        name: name.to_owned(),
        first: new(),
        last: new(),
    });
    let mut count = [(); 4].map(|()| Counter::new());
    let mut lag = [
        Series::new("unpublished", "events"),
        Series::new("fanout", "records"),
        Series::new("fanout-large", "records"),
    ];
    let [planned, acknowledged, failed, rows] = &mut count;
    for second in 0..RUN_S {
        let down = (120..132).contains(&second);
        let storm = (60..90).contains(&second);
        let offered = if second < 180 {
            52 + chance.u64(0..17)
        } else {
            0
        };
        planned.add(Duration::from_secs(second), offered);
        for index in 0..offered {
            let at = Duration::from_secs(second) + Duration::from_millis(index * 1_000 / offered);
            let answer = spread(chance, if storm { 5.0 } else { 2.4 }, 0.5);
            post.record(at, answer);
            if second == 121 && index % 4 == 0 {
                failed.add(at + answer, 1);
                continue;
            }
            acknowledged.add(at + answer, 1);
            let size = if second == 60 && index < 10 {
                3
            } else {
                [0, 0, 0, 0, 0, 1, 1, 1, 2][chance.usize(0..9)]
            };
            let (_, followers, median) = sizes[size];
            let wait = match down {
                true => Duration::from_secs(132) - at.min(Duration::from_secs(132)),
                false => Duration::ZERO,
            };
            let crowded = if storm && size < 3 { 1.7 } else { 1.0 };
            let last = wait + spread(chance, median * crowded, 0.4);
            classes[size]
                .first
                .record(at, wait + spread(chance, 14.0 * crowded, 0.3));
            classes[size].last.record(at, last);
            for part in 0..10 {
                rows.add(
                    at + wait + last * part / 10,
                    followers / 10 + u64::from(part < 4),
                );
            }
            page.record_n(at, spread(chance, if storm { 4.1 } else { 2.9 }, 0.45), 3);
        }
        follow.record(Duration::from_secs(second), spread(chance, 1.8, 0.4));
        run.generator_lag
            .record_n(Duration::from_secs(second), spread(chance, 0.11, 0.7), 60);
        let at = Duration::from_secs(second);
        let behind = second.saturating_sub(119) * 60;
        let unseen = down && second > 128;
        lag[0].push(
            at,
            (!unseen).then_some(if down { behind } else { chance.u64(0..4) } as f64),
        );
        lag[1].push(
            at,
            Some(if storm {
                30 + chance.u64(0..60)
            } else {
                chance.u64(0..9)
            } as f64),
        );
        let large = (60..66)
            .contains(&second)
            .then(|| 100.0 - (second - 60) as f64 * 16.0);
        lag[2].push(at, Some(large.unwrap_or(0.0)));
    }
    run.arrivals = Arrivals {
        planned: planned.series("planned", "requests/s", length),
        acknowledged: acknowledged.series("acknowledged", "requests/s", length),
        failed: failed.series("failed", "requests/s", length),
    };
    run.deliveries = vec![rows.series("rows delivered", "rows/s", length)];
    run.lag = lag.to_vec();
    run.classes = classes.to_vec();
    let named = |name: &str, recorded| Latency {
        name: name.to_owned(),
        recorded,
    };
    run.requests = vec![named("post", post), named("follow", follow)];
    run.pages = vec![named("", page)];
}

fn demand(run: &mut Run) {
    let p99 = |recorder: &Recorder| recorder.quantile(0.99).map(|time| time.as_secs_f64());
    let threshold = |name: &str, unit: &str, target, measured| Threshold {
        name: name.to_owned(),
        unit: unit.to_owned(),
        target,
        measured,
    };
    run.thresholds = vec![
        threshold(
            "p99 to the last of 1 to 9 followers",
            "s",
            Target::AtMost(15.0),
            p99(&run.classes[0].last),
        ),
        threshold(
            "p99 to the last of 100 000 followers",
            "s",
            Target::AtMost(30.0),
            p99(&run.classes[3].last),
        ),
        threshold(
            "backlog back under 10 events after the fault",
            "s",
            Target::AtMost(10.0),
            Some(1.2),
        ),
        threshold(
            "rows delivered",
            "rows/s",
            Target::AtLeast(4_000.0),
            run.deliveries[0].peak(),
        ),
        threshold(
            "p99 of a page",
            "ms",
            Target::AtMost(25.0),
            p99(&run.pages[0].recorded).map(|time| time * 1_000.0),
        ),
    ];
}

/// What a bad run looks like, with texts that try to break out of the page.
fn spoil(run: &mut Run) {
    run.scenario = "relay-killed <script>alert(1)</script>".to_owned();
    run.invalid = vec!["the generator was up to 2.4 s late".to_owned()];
    if let Some(judged) = &mut run.judged {
        judged.lost = 3;
        judged.resurrected = 1;
        judged.rows_found -= 3;
        judged.examples = vec![
            "lost: post 8123 of author 17 in the timeline of 4411: no row".to_owned(),
            "lost: post 8123 of author 17 in the timeline of 4412: no row".to_owned(),
            "resurrected: post 99 of author 3 in the timeline of 12: deleted & \"back\"".to_owned(),
        ];
    }
    run.thresholds[0].measured = Some(17.3);
    run.thresholds[1].measured = None;
}
