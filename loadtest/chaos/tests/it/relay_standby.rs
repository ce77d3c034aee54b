//! A second relay waits for the slot and takes over.

use std::time::{Duration, Instant};

use chaos::Flow;
use events::UserId;
use testkit::{Service, Signal, eventually, eventually_within, free_address};

#[tokio::test(flavor = "multi_thread")]
async fn a_second_relay_waits_and_takes_over() {
    let _turn = crate::ONE_AT_A_TIME.lock().await;
    let flow = Flow::new(1, 5).await.unwrap();
    let [_api, mut first, _fanout] = flow.start_all().await;
    let address = free_address();
    let second = flow
        .start(Service::Relay, &[("TIDELINE_RELAY__ADMIN", &address)])
        .await;
    let streams = |process: &testkit::ServiceProcess, state: &str| {
        let line = format!("tideline_relay_state{{state=\"{state}\"}} 1");
        process
            .scrape()
            .is_ok_and(|text| text.lines().any(|found| found == line))
    };
    eventually("the second relay is on standby", async || {
        streams(&second, "standby").then_some(())
    })
    .await;

    let _before = flow.client().post(UserId(1), "before").await.unwrap();
    let verdict = flow.verdict().await.unwrap();
    assert!(verdict.is_clean(), "{verdict}");
    assert!(streams(&second, "standby"), "the second relay did not wait");

    first.signal(Signal::Kill).unwrap();
    let killed = Instant::now();
    let _after = flow.client().post(UserId(1), "after").await.unwrap();
    eventually_within(
        Duration::from_secs(10),
        "the second relay streams",
        async || streams(&second, "streaming").then_some(()),
    )
    .await;
    println!("took over after {:?}", killed.elapsed());
    let verdict = flow.verdict().await.unwrap();
    assert!(verdict.is_clean(), "{verdict}");
}
