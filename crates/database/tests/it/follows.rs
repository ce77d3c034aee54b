//! Times of edges, events of changes, follower pages.

use database::{
    follows::{self, Direction, Follow, Unfollow},
    posts,
};
use events::{Event, Micros, PostId, UserId};
use futures::future::join_all;

use crate::fresh::Fresh;

async fn post(fresh: &Fresh, author: UserId) -> PostId {
    let new = posts::NewPost {
        author,
        client_post_id: "a",
        fingerprint: b"",
        body: "a",
        traceparent: None,
    };
    match posts::create(&mut fresh.client().await, &new)
        .await
        .unwrap()
    {
        posts::Create::Created(post) => post.id,
        other => panic!("{other:?}"),
    }
}

async fn follow(fresh: &Fresh, follower: UserId, followee: UserId) -> Micros {
    match follows::follow(&mut fresh.client().await, follower, followee, None)
        .await
        .unwrap()
    {
        Follow::Created { edge_us } => edge_us,
        other => panic!("{other:?}"),
    }
}

async fn unfollow(fresh: &Fresh, follower: UserId, followee: UserId) -> Micros {
    match follows::unfollow(&mut fresh.client().await, follower, followee, None)
        .await
        .unwrap()
    {
        Unfollow::Ended { unfollow_us } => unfollow_us,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn times_of_a_pair_rise_strictly() {
    let fresh = Fresh::migrated().await;
    let users = fresh.users(2).await;
    let (follower, followee) = (users[0], users[1]);
    let mut times = vec![
        follow(&fresh, follower, followee).await,
        unfollow(&fresh, follower, followee).await,
    ];
    // The clock steps back by an hour: the noted end lies ahead of it.
    fresh
        .run("update tideline.follow_end set unfollow_us = unfollow_us + 3600000000")
        .await;
    times[1] = times[1].plus(Micros::HOUR);
    times.push(follow(&fresh, follower, followee).await);
    times.push(unfollow(&fresh, follower, followee).await);
    times.push(follow(&fresh, follower, followee).await);
    assert!(
        times.is_sorted_by(|earlier, later| earlier < later),
        "{times:?}"
    );
    assert_eq!(times[2], times[1].plus(1));

    let rows = fresh
        .client()
        .await
        .query(
            "select type, payload::text from tideline.outbox order by id",
            &[],
        )
        .await
        .unwrap();
    let told: Vec<Micros> = rows
        .iter()
        .map(
            |row| match Event::decode(row.get(0), row.get::<_, &str>(1).as_bytes()).unwrap() {
                Event::FollowCreated(payload) => payload.edge_us,
                Event::FollowDeleted(payload) => payload.unfollow_us,
                other => panic!("{other:?}"),
            },
        )
        .collect();
    assert_eq!(told.len(), 5);
    assert_eq!(told[2..], times[2..]);
    fresh.end().await;
}

#[tokio::test]
async fn concurrent_changes_of_a_pair_keep_the_order() {
    let fresh = Fresh::migrated().await;
    let users = fresh.users(2).await;
    // Each with a connection of its own: whoever waits for one of the pool's gives up soon.
    let mut clients = Vec::new();
    for _ in 0..20 {
        clients.push(fresh.client().await);
    }
    join_all(clients.iter_mut().map(async |client| {
        follows::follow(client, users[0], users[1], None)
            .await
            .map(drop)
            .unwrap();
        follows::unfollow(client, users[0], users[1], None)
            .await
            .map(drop)
            .unwrap();
    }))
    .await;
    drop(clients);
    let rows = fresh
        .client()
        .await
        .query(
            "select type, payload::text from tideline.outbox order by id",
            &[],
        )
        .await
        .unwrap();
    let times: Vec<i64> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| {
            match Event::decode(row.get(0), row.get::<_, &str>(1).as_bytes()).unwrap() {
                Event::FollowCreated(payload) if index % 2 == 0 => payload.edge_us.0,
                Event::FollowDeleted(payload) if index % 2 == 1 => payload.unfollow_us.0,
                other => panic!("out of turn: {other:?}"),
            }
        })
        .collect();
    assert!(
        times.is_sorted_by(|earlier, later| earlier < later),
        "{times:?}"
    );
    fresh.end().await;
}

#[tokio::test]
async fn refusals_store_nothing() {
    let fresh = Fresh::migrated().await;
    let users = fresh.users(2).await;
    let nobody = UserId(i64::MAX);
    let mut client = fresh.client().await;
    assert_eq!(
        follows::follow(&mut client, users[0], users[0], None)
            .await
            .unwrap(),
        Follow::SelfFollow
    );
    assert_eq!(
        follows::follow(&mut client, users[0], nobody, None)
            .await
            .unwrap(),
        Follow::NoUser
    );
    assert_eq!(
        follows::follow(&mut client, nobody, users[0], None)
            .await
            .unwrap(),
        Follow::NoUser
    );
    assert_eq!(
        follows::unfollow(&mut client, users[0], nobody, None)
            .await
            .unwrap(),
        Unfollow::NoUser
    );
    assert_eq!(
        follows::unfollow(&mut client, users[0], users[1], None)
            .await
            .unwrap(),
        Unfollow::NotFollowing
    );
    assert_eq!(
        fresh.number("select count(*) from tideline.outbox").await,
        0
    );
    follow(&fresh, users[0], users[1]).await;
    assert_eq!(
        follows::follow(&mut client, users[0], users[1], None)
            .await
            .unwrap(),
        Follow::Already
    );
    assert_eq!(
        fresh.number("select count(*) from tideline.outbox").await,
        1
    );
    fresh.end().await;
}

#[tokio::test]
async fn follower_pages_by_key() {
    let fresh = Fresh::migrated().await;
    let users = fresh.users(8).await;
    let author = users[0];
    for follower in &users[1..] {
        follow(&fresh, *follower, author).await;
    }
    let post = post(&fresh, author).await;
    let client = fresh.client().await;
    let mut seen = Vec::new();
    let mut sizes = Vec::new();
    let mut after = None;
    loop {
        let page = follows::follower_page(&client, post, after, 3)
            .await
            .unwrap();
        let state = page.post.unwrap();
        assert_eq!((state.author, state.deleted), (author, false));
        assert!(page.pg_now >= state.post_us);
        assert!(page.edges.iter().all(|edge| edge.edge_us < state.post_us));
        sizes.push(page.edges.len());
        seen.extend(page.edges.iter().map(|edge| edge.follower));
        after = page.edges.last().map(|edge| edge.follower);
        if page.edges.len() < 3 {
            break;
        }
    }
    assert_eq!(sizes, [3, 3, 1]);
    assert_eq!(seen, users[1..]);
    fresh.end().await;
}

#[tokio::test]
async fn follower_page_of_nobody_of_the_deleted_and_of_a_ghost() {
    let fresh = Fresh::migrated().await;
    let users = fresh.users(2).await;
    let post = post(&fresh, users[0]).await;
    let mut client = fresh.client().await;
    let page = follows::follower_page(&client, post, None, 10)
        .await
        .unwrap();
    assert!(page.post.is_some_and(|state| !state.deleted) && page.edges.is_empty());

    follow(&fresh, users[1], users[0]).await;
    posts::delete(&mut client, users[0], post, None)
        .await
        .unwrap();
    let page = follows::follower_page(&client, post, None, 10)
        .await
        .unwrap();
    assert!(page.post.is_some_and(|state| state.deleted), "deleted");
    assert_eq!(
        page.edges.len(),
        1,
        "the rows to delete are those of the followers"
    );

    let page = follows::follower_page(&client, PostId(1), None, 10)
        .await
        .unwrap();
    assert!(
        page.post.is_none() && page.edges.is_empty() && page.pg_now > Micros(0),
        "ghost"
    );
    fresh.end().await;
}

#[tokio::test]
async fn filter_and_lists() {
    let fresh = Fresh::migrated().await;
    let users = fresh.users(5).await;
    for followee in &users[1..4] {
        follow(&fresh, users[0], *followee).await;
    }
    unfollow(&fresh, users[0], users[2]).await;
    let client = fresh.client().await;
    let mut followed = follows::followed_among(&client, users[0], &users)
        .await
        .unwrap();
    followed.sort();
    assert_eq!(followed, [users[1], users[3]]);

    let ids =
        |list: Vec<follows::Neighbour>| list.into_iter().map(|line| line.user).collect::<Vec<_>>();
    let page = follows::list(&client, users[0], Direction::Following, None, 1)
        .await
        .unwrap();
    assert_eq!(ids(page), [users[1]]);
    let page = follows::list(&client, users[0], Direction::Following, Some(users[1]), 9)
        .await
        .unwrap();
    assert_eq!(ids(page), [users[3]]);
    let page = follows::list(&client, users[3], Direction::Followers, None, 9)
        .await
        .unwrap();
    assert_eq!(ids(page), [users[0]]);
    fresh.end().await;
}
