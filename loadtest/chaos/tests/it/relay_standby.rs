//! A second relay waits for the slot and takes over.

use std::time::{Duration, Instant};

use chaos::Flow;
use events::UserId;
use testkit::{Service, ServiceProcess, Signal, eventually, eventually_within, free_address};

/// A stand-by is promised to take over within this time.
const PROMISED: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_second_relay_waits_and_takes_over() {
    let _turn = crate::ONE_AT_A_TIME.lock().await;
    let flow = Flow::new(1, 5).await.unwrap();
    let [_api, first, _fanout] = flow.start_all().await;
    let address = free_address();
    let second = flow
        .start(Service::Relay, &[("TIDELINE_RELAY__ADMIN", &address)])
        .await;
    eventually("the second relay is on standby", async || {
        is(&second, "standby").then_some(())
    })
    .await;

    let _before = flow.client().post(UserId(1), "before").await.unwrap();
    let verdict = flow.verdict().await.unwrap();
    assert!(verdict.is_clean(), "{verdict}");
    eventually("the second relay still waits", async || {
        is(&second, "standby").then_some(())
    })
    .await;

    let took = take_over(&flow, first, &second, "after").await;
    if took > PROMISED {
        // A stall of Postgres and one of the stand-by together are longer; not twice.
        let first = flow.start(Service::Relay, &[]).await;
        eventually("the first relay is on standby", async || {
            is(&first, "standby").then_some(())
        })
        .await;
        let again = take_over(&flow, second, &first, "again").await;
        assert!(again <= PROMISED, "took over after {took:?} and {again:?}");
    }
}

/// Kills the relay that streams; answers how long the other one took until it streamed.
async fn take_over(
    flow: &Flow,
    mut streaming: ServiceProcess,
    standby: &ServiceProcess,
    key: &str,
) -> Duration {
    streaming.signal(Signal::Kill).expect("it runs");
    let killed = Instant::now();
    let posted = flow.client().post(UserId(1), key).await;
    let _after = posted.expect("an answer");
    eventually_within(
        Duration::from_secs(40),
        "the other relay streams",
        async || is(standby, "streaming").then_some(()),
    )
    .await;
    let took = killed.elapsed();
    println!("took over after {took:?}");
    let verdict = flow.verdict().await.expect("servers that answer");
    assert!(verdict.is_clean(), "{verdict}");
    took
}

fn is(process: &ServiceProcess, state: &str) -> bool {
    let line = format!("tideline_relay_state{{state=\"{state}\"}} 1");
    process
        .scrape()
        .is_ok_and(|text| text.lines().any(|found| found == line))
}
