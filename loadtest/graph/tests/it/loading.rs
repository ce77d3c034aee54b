//! Edge lists into a real Postgres.

use std::{fs, path::PathBuf};

use database::{Pool, follows, users};
use events::UserId;
use graph::{
    Graph, Shape,
    loader::{Accounts, Input, LoadError, Options, Outcome, load},
};
use testkit::Deployment;

/// A list in a file of its own.
pub(crate) fn list(text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("{}.txt", testkit::unique("edges")));
    fs::write(&path, text).unwrap();
    path
}

async fn loaded(deployment: &Deployment, text: &str, options: &Options) -> Outcome {
    let input = Input::File(list(text));
    let outcome = load(input, &deployment.database_url(), options, |_| {}).await;
    outcome.unwrap()
}

fn ids() -> Options {
    Options {
        accounts: Accounts::Ids {
            add: 0,
            prefix: "user".into(),
        },
        ..Options::default()
    }
}

/// Every edge by handles, sorted.
async fn edges(deployment: &Deployment) -> Vec<(String, String)> {
    const SQL: &str = "select r.handle, e.handle from tideline.follows f
        join tideline.users r on r.id = f.follower_id join tideline.users e on e.id = f.followee_id
        order by 1, 2";
    let rows = deployment.sql().await.query(SQL, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

async fn count(deployment: &Deployment, table: &str) -> i64 {
    let sql = format!("select count(*) from tideline.{table}");
    let row = deployment.sql().await.query_one(&sql, &[]).await;
    row.unwrap().get(0)
}

#[tokio::test]
async fn a_list_of_handles_is_loaded_once_however_often() {
    let deployment = Deployment::without_timelines().await;
    let sql = deployment.sql().await;
    let there = "insert into tideline.users (handle) values ('ann')";
    sql.execute(there, &[]).await.unwrap();
    let text = "# made by hand\r\nbob ann\r\ncarl\tann\n\nann,bob\nbob ann\nann ann\n";
    let outcome = loaded(&deployment, text, &Options::default()).await;
    let expected = Outcome {
        edges: 5,
        self_follows: 1,
        duplicates: 1,
        follows_made: 3,
        accounts_made: 2,
        ..Outcome::default()
    };
    assert_eq!(outcome, expected);
    let pairs = [("ann", "bob"), ("bob", "ann"), ("carl", "ann")];
    let pairs = pairs.map(|(follower, followee)| (follower.to_owned(), followee.to_owned()));
    assert_eq!(edges(&deployment).await, pairs);
    let again = loaded(&deployment, text, &Options::default()).await;
    let expected = Outcome {
        already: 3,
        follows_made: 0,
        accounts_made: 0,
        ..expected
    };
    assert_eq!(again, expected);
    assert_eq!(edges(&deployment).await, pairs);
    assert_eq!(count(&deployment, "outbox").await, 0, "no events");
}

#[tokio::test]
async fn numbers_from_1_on_become_ids_from_1_on_in_an_empty_database() {
    let deployment = Deployment::without_timelines().await;
    let text: String = (1..=120)
        .rev()
        .map(|n| format!("{n} {}\n", n % 120 + 1))
        .collect();
    let _outcome = loaded(&deployment, &text, &Options::default()).await;
    let sql = deployment.sql().await;
    let row = sql
        .query_one(
            "select count(*) from tideline.users where id::text = handle",
            &[],
        )
        .await;
    assert_eq!(row.unwrap().get::<_, i64>(0), 120);
}

#[tokio::test]
async fn nothing_is_loaded_from_a_list_with_a_bad_line_unless_told_to_go_on() {
    let deployment = Deployment::without_timelines().await;
    let text = "1 2\n3\n2 1\nx 1\n1 2 3\n";
    let options = Options {
        show_bad: 2,
        ..ids()
    };
    let input = Input::File(list(text));
    let error = load(input, &deployment.database_url(), &options, |_| {})
        .await
        .unwrap_err();
    let words = error.to_string();
    assert!(matches!(error, LoadError::Bad(_)), "{error:?}");
    let expected = "line 2: expected `follower followee`, found 1 field\n\
        line 4: \"x\" is no account id\nand 1 more bad lines\nnothing was loaded";
    assert!(words.starts_with(expected), "{words}");
    assert_eq!(
        (
            count(&deployment, "users").await,
            count(&deployment, "follows").await
        ),
        (0, 0)
    );
    let options = Options {
        skip_bad: true,
        ..options
    };
    let outcome = loaded(&deployment, text, &options).await;
    assert_eq!((outcome.bad.count, outcome.follows_made), (3, 2));
}

/// Follows that are made again by the API after the load, and before it.
#[tokio::test]
async fn an_edge_that_was_ended_begins_above_its_end() {
    let deployment = Deployment::without_timelines().await;
    let _outcome = loaded(&deployment, "1 2\n", &ids()).await;
    let pool = Pool::new(&deployment.database_url(), 1, "graph-test").unwrap();
    let mut client = pool.get().await.unwrap();
    let ended = follows::unfollow(&mut client, UserId(1), UserId(2), None)
        .await
        .unwrap();
    assert!(matches!(ended, follows::Unfollow::Ended { .. }));
    // An end that a clock ahead of ours has made.
    let ahead = "update tideline.follow_end set unfollow_us = unfollow_us + 3600000000";
    let sql = deployment.sql().await;
    assert_eq!(sql.execute(ahead, &[]).await.unwrap(), 1);
    let outcome = loaded(&deployment, "1 2\n", &ids()).await;
    assert_eq!((outcome.follows_made, outcome.already), (1, 0));
    let above = "select f.edge_us > e.unfollow_us from tideline.follows f
        join tideline.follow_end e using (followee_id, follower_id)";
    assert!(sql.query_one(above, &[]).await.unwrap().get::<_, bool>(0));
}

#[tokio::test]
async fn the_api_gives_out_no_id_that_a_list_has_taken() {
    let deployment = Deployment::without_timelines().await;
    let _outcome = loaded(&deployment, "7 9\n", &ids()).await;
    let pool = Pool::new(&deployment.database_url(), 1, "graph-test").unwrap();
    let client = pool.get().await.unwrap();
    let made = users::create(&client, "next").await.unwrap();
    assert!(matches!(made, users::CreateUser::Created(user) if user.id == UserId(10)));
}

#[tokio::test]
async fn a_handle_that_belongs_to_another_account_is_told() {
    let deployment = Deployment::without_timelines().await;
    let sql = deployment.sql().await;
    let taken = "insert into tideline.users (id, handle) values (100, 'user2')";
    sql.execute(taken, &[]).await.unwrap();
    let input = Input::File(list("1 2\n"));
    let error = load(input, &deployment.database_url(), &ids(), |_| {})
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("account 2 cannot be made: the handle user2"),
        "{error}"
    );
    assert_eq!(count(&deployment, "follows").await, 0);
}

#[tokio::test]
async fn a_generated_graph_is_loaded_whole_in_small_batches() {
    let deployment = Deployment::without_timelines().await;
    let shape = Shape {
        celebrities: vec![900, 0],
        ..Shape::of(1_000, 3)
    };
    let graph = Graph::new(shape).unwrap();
    let options = Options {
        accounts: Accounts::Ids {
            add: 5_000,
            prefix: "load".into(),
        },
        batch: 1_000,
        ..Options::default()
    };
    let input = Input::Graph(Box::new(graph.clone()));
    let mut steps = 0;
    let outcome = load(input, &deployment.database_url(), &options, |_| steps += 1).await;
    let outcome = outcome.unwrap();
    let expected = graph.edges().count() as u64;
    assert_eq!(
        (outcome.edges, outcome.follows_made, outcome.duplicates),
        (expected, expected, 0)
    );
    assert_eq!(
        outcome.accounts_made, 1_002,
        "also those whom nobody follows"
    );
    assert!(steps > 10, "{steps} notes of progress for many batches");
    let sql = deployment.sql().await;
    let celebrity = "select count(*) from tideline.follows f
        join tideline.users u on u.id = f.followee_id where u.handle = 'load6001'";
    assert_eq!(
        sql.query_one(celebrity, &[])
            .await
            .unwrap()
            .get::<_, i64>(0),
        900
    );
    let stored = sql.query(
        "select follower_id - 5000, followee_id - 5000 from tideline.follows",
        &[],
    );
    for row in stored.await.unwrap() {
        let [follower, followee] =
            [0, 1].map(|column| u64::try_from(row.get::<_, i64>(column)).unwrap());
        assert!(graph.follows(follower, followee), "{follower} {followee}");
    }
}
