//! Start-up rides over servers that are still booting, and gives up in time.

use std::time::Duration;

use runtime::{
    Health, Shutdown,
    startup::{GivenUp, wait_for},
};

const BUDGET: Duration = Duration::from_secs(60);

fn away() -> std::io::Error {
    std::io::Error::other("connection refused")
}

#[tokio::test(start_paused = true)]
async fn it_tries_until_the_dependency_answers() {
    let health = Health::new();
    let mut attempts = 0;
    let value = wait_for(
        "postgres",
        BUDGET,
        &health,
        &Shutdown::new(),
        |_| true,
        || {
            attempts += 1;
            let answer = if attempts < 4 {
                Err(away())
            } else {
                Ok(attempts)
            };
            async move { answer }
        },
    )
    .await
    .unwrap();
    assert_eq!(value, 4);
    health.started();
    assert!(health.readiness().0);
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_the_budget_is_spent_or_waiting_cannot_help() {
    let health = Health::new();
    let spent = wait_for(
        "kafka",
        BUDGET,
        &health,
        &Shutdown::new(),
        |_| true,
        || async { Err::<(), _>(away()) },
    )
    .await;
    assert!(matches!(spent, Err(GivenUp::OutOfBudget(_))));
    assert!(
        health.readiness().1["kafka"]
            .detail
            .contains("connection refused")
    );
    let last = wait_for(
        "kafka",
        BUDGET,
        &health,
        &Shutdown::new(),
        |_| false,
        || async { Err::<(), _>(away()) },
    )
    .await;
    assert!(matches!(last, Err(GivenUp::Final(_))));
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_asked_to_stop() {
    let shutdown = Shutdown::new();
    shutdown.trigger();
    let health = Health::new();
    let outcome = wait_for(
        "cql",
        BUDGET,
        &health,
        &shutdown,
        |_| true,
        || async { Err::<(), _>(away()) },
    )
    .await;
    assert!(matches!(outcome, Err(GivenUp::Shutdown)));
}
