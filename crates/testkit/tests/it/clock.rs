//! The clock of one service jumps while it runs.

use std::{process::Command, time::Duration};

use testkit::{Pipeline, Service, ServiceProcess, Signal, clock, eventually, http_get};

const HOUR: i64 = 3_600;

#[tokio::test(flavor = "multi_thread")]
async fn a_service_goes_by_its_own_clock_and_jumps_with_it() {
    for ahead in [HOUR, -HOUR] {
        let pipeline = Pipeline::new().await;
        let clock = clock();
        let env = clock.env();
        let env: Vec<_> = env.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let mut process = pipeline.start(Service::WriteApi, &env).await;
        let before = newest(&process);
        clock.set(ahead).expect("set");
        // Its waits go by the other clock: it neither hangs nor rushes.
        eventually("it still answers", async || {
            http_get(process.admin(), "/livez").await
        })
        .await;
        process.signal(Signal::Term).expect("sent");
        let status = process.wait_exit(Duration::from_secs(20));
        assert!(status.is_some_and(|status| status.success()), "{status:?}");
        let jumped = newest(&process) - before;
        // Between the two lines is what the test itself took.
        let expected = ahead..ahead + 60;
        assert!(expected.contains(&jumped), "{jumped} s, not {ahead}");
    }
}

/// The time of the newest line of a log, in seconds since 1970.
fn newest(process: &ServiceProcess) -> i64 {
    let text = std::fs::read_to_string(process.log()).expect("it logs");
    let mut times = text.lines().filter_map(|line| line.split_once(' '));
    let (time, _) = times
        .rfind(|(word, _)| word.ends_with('Z') && word.contains('T'))
        .expect("a line with a time");
    let read = Command::new("date")
        .args(["-u", "-d", time, "+%s"])
        .output();
    let seconds = read.expect("date runs").stdout;
    let seconds = String::from_utf8(seconds).expect("digits");
    seconds.trim().parse().expect("seconds")
}
