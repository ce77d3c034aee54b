//! Classes of errors as the server and the socket make them (D-12).

use database::{Error, Pool, follows, posts};
use events::{Class, PostId};
use testkit::answered;

use crate::fresh::Fresh;

#[tokio::test]
async fn nobody_listening_is_an_outage_d12() {
    let pool = Pool::new("postgresql://postgres@127.0.0.1:1/none", 1, "it").unwrap();
    let error = pool.ping().await.unwrap_err();
    assert_eq!(error.class(), Class::Outage, "{error:?}");
}

#[tokio::test]
async fn a_missing_database_or_table_is_configuration() {
    let fresh = Fresh::empty().await;
    let error = told(|| fresh.pool.ping()).await;
    assert_eq!(error.class(), Class::Config, "{error:?}");
    let pool = Pool::new(
        &testkit::Servers::get().await.postgres_url("postgres"),
        1,
        "it",
    )
    .unwrap();
    let error = posts::get(&answered(|| pool.get()).await, PostId(1))
        .await
        .unwrap_err();
    assert_eq!(error.class(), Class::Config, "{error:?}");
}

/// What the server says, when it has time to.
async fn told<F, Fut>(ask: F) -> Error
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<(), Error>>,
{
    testkit::eventually("the server says something", async || {
        let error = ask().await.unwrap_err();
        (!error.class().is_retried()).then_some(error)
    })
    .await
}

#[tokio::test]
async fn a_killed_connection_is_an_outage_and_the_pool_heals_d12() {
    let fresh = Fresh::migrated().await;
    let victim = fresh.client().await;
    let pid: i32 = victim
        .query_one("select pg_backend_pid()", &[])
        .await
        .unwrap()
        .get(0);
    fresh
        .client()
        .await
        .execute("select pg_terminate_backend($1)", &[&pid])
        .await
        .unwrap();
    let error = posts::get(&victim, PostId(1)).await.unwrap_err();
    assert_eq!(error.class(), Class::Outage, "{error:?}");
    drop(victim);
    // The pool hands out the connection used last, and may not have heard yet that it is gone.
    testkit::eventually("the pool heals", async || fresh.pool.ping().await.ok()).await;
    fresh.end().await;
}

#[tokio::test]
async fn a_lock_or_statement_timeout_is_unsure_and_a_full_pool_an_outage_d12() {
    let fresh = Fresh::migrated().await;
    let users = fresh.users(2).await;
    let mut holder = fresh.client().await;
    let held = holder.transaction().await.unwrap();
    held.batch_execute("lock table tideline.follows")
        .await
        .unwrap();
    for setting in ["lock_timeout", "statement_timeout"] {
        let mut client = fresh.client().await;
        client
            .batch_execute(&format!("set {setting} = 50"))
            .await
            .unwrap();
        let error = follows::follow(&mut client, users[0], users[1], None)
            .await
            .unwrap_err();
        assert_eq!(error.class(), Class::Unsure, "{setting}: {error:?}");
        client
            .batch_execute(&format!("reset {setting}"))
            .await
            .unwrap();
    }
    held.rollback().await.unwrap();
    drop(holder);

    let small = Pool::new(&fresh.url, 1, "it").unwrap();
    let only = small.get().await.unwrap();
    let error = small.get().await.unwrap_err();
    assert_eq!(error.class(), Class::Outage, "{error:?}");
    drop(only);
    fresh.end().await;
}
