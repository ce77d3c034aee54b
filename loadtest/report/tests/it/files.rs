//! The data and the logs, read again.

use std::{fs, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::{
    Histogram,
    serialization::{
        Deserializer,
        interval_log::{IntervalLogIterator, LogEntry},
    },
};
use report::{Latency, Run};

use crate::run::{HOSTILE, folder, full, times};

/// The histograms of a log with their tag, start and length.
fn read_log(bytes: &[u8]) -> Vec<(Option<String>, f64, f64, Histogram<u64>)> {
    IntervalLogIterator::new(bytes)
        .filter_map(|entry| match entry.unwrap() {
            LogEntry::Interval(interval) => Some(interval),
            _ => None,
        })
        .map(|interval| {
            let bytes = STANDARD.decode(interval.encoded_histogram()).unwrap();
            (
                interval.tag().map(|tag| tag.as_str().to_owned()),
                interval.start_timestamp().as_secs_f64(),
                interval.duration().as_secs_f64(),
                Deserializer::new()
                    .deserialize(&mut bytes.as_slice())
                    .unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_run_is_read_as_it_was_written() {
    for (name, run) in [
        ("json-full", full("plain")),
        ("json-hostile", full(HOSTILE)),
        ("json-empty", Run::default()),
    ] {
        let written = report::write(&run, &folder(name)).unwrap();
        assert_eq!(report::read(&written.json).unwrap(), run, "{name}");
    }
}

#[test]
fn numbers_in_the_data_are_there_for_other_programs() {
    let written = report::write(&full("plain"), &folder("json-numbers")).unwrap();
    let data: serde_json::Value =
        serde_json::from_slice(&fs::read(&written.json).unwrap()).unwrap();
    assert_eq!(data["format"], 1);
    let last = &data["classes"][0]["last"];
    assert_eq!(last["count"], 1_000);
    let p99 = last["p99_us"].as_u64().unwrap();
    assert!((989_000..=991_000).contains(&p99), "{p99}");
    assert_eq!(last["intervals"].as_array().map(Vec::len), Some(100));
}

#[test]
fn a_log_has_every_interval_and_the_total() {
    let run = full("plain");
    let written = report::write(&run, &folder("logs")).unwrap();
    let names: Vec<&str> = written
        .logs
        .iter()
        .filter_map(|path| path.file_name()?.to_str())
        .collect();
    assert_eq!(
        names,
        [
            "request-plain.hdr",
            "first-follower-plain.hdr",
            "last-follower-plain.hdr",
            "page-plain.hdr",
            "seen-plain.hdr",
            "generator-lag.hdr"
        ]
    );
    let bytes = fs::read(&written.logs[2]).unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(text.contains("#[StartTime: 1772366400.000"), "{text}");
    let log = read_log(&bytes);
    let (tag, from, length, total) = log.last().unwrap();
    assert_eq!(
        (tag.as_deref(), *from, *length),
        (Some("total"), 0.0, 100.0)
    );
    assert_eq!(total, run.classes[0].last.total());
    let intervals = &log[..log.len() - 1];
    assert_eq!(intervals.len(), 100);
    for (index, (tag, from, length, times)) in intervals.iter().enumerate() {
        assert_eq!((tag, *from, *length), (&None, index as f64, 1.0));
        assert_eq!(times.len(), 10);
    }
}

#[test]
fn metrics_of_one_name_have_a_log_each_and_empty_ones_have_none() {
    let mut run = Run::default();
    for count in [3, 0, 5] {
        run.pages.push(Latency {
            name: "home / page".to_owned(),
            recorded: times(count),
        });
    }
    let written = report::write(&run, &folder("names")).unwrap();
    let counts: Vec<u64> = written
        .logs
        .iter()
        .map(|path| read_log(&fs::read(path).unwrap()).last().unwrap().3.len())
        .collect();
    assert_eq!(counts, [3, 5]);
    assert!(
        written.logs[1].ends_with("page-home-page-2.hdr"),
        "{written:?}"
    );
}

#[test]
fn what_is_no_run_is_refused_with_a_reason() {
    let folder = folder("refused");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("run.json");
    for (text, reason) in [
        (
            "{\"format\": 2}",
            "has the format 2, this program reads up to 1",
        ),
        ("{}", "has the format of no run"),
        ("{\"format\": 1, \"seed\": \"x\"}", "run in"),
        ("{", "JSON of"),
    ] {
        fs::write(&path, text).unwrap();
        let error = format!("{:#}", report::read(&path).unwrap_err());
        assert!(error.contains(reason), "{error}");
        assert!(error.contains("run.json"), "{error}");
    }
    let missing = format!("{:#}", report::read(&folder.join("none.json")).unwrap_err());
    assert!(missing.contains("read the run"), "{missing}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = folder("taken");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("file");
    fs::write(&file, "").unwrap();
    let error = report::write(&Run::default(), &file.join("below")).unwrap_err();
    assert!(
        format!("{error:#}").contains("make the folder"),
        "{error:#}"
    );
}

#[test]
fn warm_up_is_in_the_intervals_of_a_log_and_not_in_its_total() {
    let mut recorder = report::Recorder::measured_from(Duration::from_secs(2));
    for second in 0..4 {
        recorder.record(Duration::from_secs(second), Duration::from_millis(5));
    }
    let run = Run {
        generator_lag: recorder,
        ..Run::default()
    };
    let written = report::write(&run, &folder("warm-up")).unwrap();
    let log = read_log(&fs::read(&written.logs[0]).unwrap());
    let counts: Vec<u64> = log.iter().map(|(.., times)| times.len()).collect();
    assert_eq!(counts, [1, 1, 1, 1, 2]);
}
