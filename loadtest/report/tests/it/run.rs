//! Runs to write about.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use report::{
    Arrivals, Class, Counter, Fact, Judged, Latency, Machine, Mark, Phase, PhaseKind, Recorder,
    Run, Series, Target, Threshold,
};

/// A text that breaks out of everything that does not escape it.
pub(crate) const HOSTILE: &str = "</script><script src=\"x\">alert('1')</script>&amp;\u{1b}[31m";

/// A folder of its own under the target folder, empty.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("report")
        .join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    folder
}

/// Times of 1, 2, 3 … milliseconds, ten each second.
pub(crate) fn times(count: u32) -> Recorder {
    let mut recorder = Recorder::new();
    for index in 0..count {
        let at = Duration::from_millis(100 * u64::from(index));
        recorder.record(at, Duration::from_millis(u64::from(index) + 1));
    }
    recorder
}

/// A run with a value in every field, all text of it `text`.
pub(crate) fn full(text: &str) -> Run {
    let length = Duration::from_secs(100);
    let owned = || text.to_owned();
    let series = |unit: &str| {
        let mut counter = Counter::new();
        for second in 0..100 {
            counter.add(Duration::from_secs(second), 20 + second);
        }
        counter.series(text, unit, length)
    };
    let mut lag = Series::new(text, text);
    for second in 0..100 {
        let value = (second != 50).then_some(second as f64);
        lag.push(Duration::from_secs(second), value);
    }
    Run {
        scenario: owned(),
        seed: 42,
        started_unix_ms: 1_772_366_400_000,
        duration_s: 100.0,
        command: owned(),
        plan: vec![Fact::new(text, text)],
        versions: vec![Fact::new(text, text)],
        machine: Machine {
            cores: 2,
            cpu: owned(),
            memory_mib: 24_000,
            kernel: owned(),
            load_before: owned(),
        },
        judged: Some(Judged {
            posts: 1_000,
            rows_expected: 5_000,
            rows_found: 5_000,
            rows_stored: 5_000,
            walks: 3,
            rewritten: Some(7),
            examples: vec![owned()],
            ..Judged::default()
        }),
        thresholds: vec![Threshold {
            name: owned(),
            unit: owned(),
            target: Target::AtMost(2.0),
            measured: Some(1.0),
        }],
        phases: vec![Phase {
            name: owned(),
            kind: PhaseKind::Storm,
            from_s: 10.0,
            to_s: 60.0,
        }],
        marks: vec![Mark {
            name: owned(),
            detail: owned(),
            at_s: 70.0,
        }],
        arrivals: Arrivals {
            planned: series("requests/s"),
            acknowledged: series("requests/s"),
            failed: series("requests/s"),
        },
        deliveries: vec![series(text)],
        lag: vec![lag],
        requests: vec![latency(text, 1_000)],
        classes: vec![Class {
            name: owned(),
            first: times(500),
            last: times(1_000),
        }],
        pages: vec![latency(text, 50)],
        seen: vec![latency(text, 30)],
        generator_lag: times(20),
        notes: vec![owned()],
        ..Run::default()
    }
}

fn latency(name: &str, count: u32) -> Latency {
    Latency {
        name: name.to_owned(),
        recorded: times(count),
    }
}
