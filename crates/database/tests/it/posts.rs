//! D-1, D-2, ids, deletion, reading.

use std::collections::BTreeSet;

use database::posts::{self, Create, Delete, NewPost, Post};
use events::{Class, Event, Micros, PostId, UserId};
use futures::future::join_all;

use crate::fresh::Fresh;

fn new(author: UserId, key: &str) -> NewPost<'_> {
    NewPost {
        author,
        client_post_id: key,
        fingerprint: b"one",
        body: "hello",
        traceparent: None,
    }
}

async fn created(fresh: &Fresh, new: &NewPost<'_>) -> Post {
    match posts::create(&mut fresh.client().await, new).await.unwrap() {
        Create::Created(post) => post,
        other => panic!("expected a new post, got {other:?}"),
    }
}

/// D-1
#[tokio::test]
async fn post_and_event_commit_together_d1() {
    let fresh = Fresh::migrated().await;
    let author = fresh.users(1).await[0];
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let post = created(
        &fresh,
        &NewPost {
            traceparent: Some(traceparent),
            ..new(author, "a")
        },
    )
    .await;

    let sql = "select o.aggregatetype, o.aggregateid, o.partition_key, o.type, o.payload::text, o.traceparent,
            o.created_at = p.created_at, o.xmin = p.xmin
        from tideline.outbox o, tideline.posts p";
    let rows = fresh.client().await.query(sql, &[]).await.unwrap();
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(row.get::<_, &str>(0), "post");
    assert_eq!(row.get::<_, String>(1), post.id.to_string());
    assert_eq!(row.get::<_, String>(2), author.to_string());
    assert_eq!(row.get::<_, &str>(5), traceparent);
    assert!(row.get::<_, bool>(6), "one created_at");
    assert!(row.get::<_, bool>(7), "one transaction");
    let Event::PostCreated(payload) =
        Event::decode(row.get(3), row.get::<_, &str>(4).as_bytes()).unwrap()
    else {
        panic!("another event");
    };
    assert_eq!(
        (payload.post_id, payload.author_id, payload.post_us),
        (post.id, author, post.created_us)
    );
    assert_eq!(
        fresh
            .number("select count(*) from tideline.outbox_default")
            .await,
        0,
        "the row is in its day"
    );
    fresh.end().await;
}

/// D-1
#[tokio::test]
async fn failing_outbox_insert_leaves_no_post_d1() {
    let fresh = Fresh::migrated().await;
    let author = fresh.users(1).await[0];
    fresh
        .run("alter table tideline.outbox add check (traceparent is distinct from 'refuse')")
        .await;
    let refused = NewPost {
        traceparent: Some("refuse"),
        ..new(author, "a")
    };
    let error = posts::create(&mut fresh.client().await, &refused)
        .await
        .unwrap_err();
    assert_eq!(error.class(), Class::Record, "{error:?}");
    assert_eq!(fresh.number("select count(*) from tideline.posts").await, 0);

    let post = created(&fresh, &new(author, "a")).await;
    let error = posts::delete(&mut fresh.client().await, author, post.id, Some("refuse"))
        .await
        .unwrap_err();
    assert_eq!(error.class(), Class::Record, "{error:?}");
    assert_eq!(
        posts::get(&fresh.client().await, post.id)
            .await
            .unwrap()
            .unwrap()
            .deleted_us,
        None
    );
    fresh.end().await;
}

/// D-2
#[tokio::test]
async fn concurrent_creates_of_one_key_make_one_post_d2() {
    let fresh = Fresh::migrated().await;
    let author = fresh.users(1).await[0];
    let results = join_all((0..20).map(|_| async {
        posts::create(&mut fresh.client().await, &new(author, "key"))
            .await
            .unwrap()
    }))
    .await;
    let mut ids = BTreeSet::new();
    let mut made = 0;
    for result in results {
        match result {
            Create::Created(post) => {
                made += 1;
                ids.insert(post.id);
            }
            Create::Replayed(post) => {
                ids.insert(post.id);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((made, ids.len()), (1, 1));
    assert_eq!(fresh.number("select count(*) from tideline.posts").await, 1);
    assert_eq!(
        fresh.number("select count(*) from tideline.outbox").await,
        1
    );
    fresh.end().await;
}

/// D-2
#[tokio::test]
async fn another_request_under_the_key_is_refused_d2() {
    let fresh = Fresh::migrated().await;
    let users = fresh.users(2).await;
    let post = created(&fresh, &new(users[0], "key")).await;
    let other = NewPost {
        fingerprint: b"two",
        body: "other",
        ..new(users[0], "key")
    };
    let mut client = fresh.client().await;
    assert_eq!(
        posts::create(&mut client, &other).await.unwrap(),
        Create::KeyReused
    );
    let nobody = new(UserId(i64::MAX), "key");
    assert_eq!(
        posts::create(&mut client, &nobody).await.unwrap(),
        Create::NoAuthor
    );
    assert_eq!(fresh.number("select count(*) from tideline.posts").await, 1);
    assert_eq!(
        fresh.number("select count(*) from tideline.outbox").await,
        1
    );
    // The key is the author's own.
    let theirs = created(&fresh, &new(users[1], "key")).await;
    assert_ne!(theirs.id, post.id);
    fresh.end().await;
}

#[tokio::test]
async fn ids_rise_over_a_clock_step_back() {
    let fresh = Fresh::migrated().await;
    let author = fresh.users(1).await[0];
    let first = created(&fresh, &new(author, "first")).await;
    // A post made an hour ahead, as if the clock had been there.
    let planted = first.id.0 + (3_600_000 << 22);
    fresh
        .run(&format!(
            "insert into tideline.posts (id, author_id, client_post_id, fingerprint, body, created_at)
             values ({planted}, {author}, 'planted', '', '', clock_timestamp())"
        ))
        .await;
    let mut last = planted;
    for key in ["b", "c", "d"] {
        let post = created(&fresh, &new(author, key)).await;
        assert_eq!(post.id.0, last + 1);
        last = post.id.0;
    }
    let keys: Vec<String> = (0..16).map(|n| format!("together-{n}")).collect();
    let ids: BTreeSet<PostId> = join_all(
        keys.iter()
            .map(|key| async { created(&fresh, &new(author, key)).await.id }),
    )
    .await
    .into_iter()
    .collect();
    assert_eq!(ids.len(), 16);
    assert!(ids.iter().all(|id| id.0 > last));
    fresh.end().await;
}

#[tokio::test]
async fn deletion_is_told_once_and_a_replay_shows_it() {
    let fresh = Fresh::migrated().await;
    let users = fresh.users(2).await;
    let post = created(&fresh, &new(users[0], "a")).await;
    let mut client = fresh.client().await;
    assert_eq!(
        posts::delete(&mut client, users[1], post.id, None)
            .await
            .unwrap(),
        Delete::NotFound
    );
    let results = join_all((0..8).map(|_| async {
        posts::delete(&mut fresh.client().await, users[0], post.id, None)
            .await
            .unwrap()
    }))
    .await;
    let deleted: Vec<&Post> = results
        .iter()
        .filter_map(|result| match result {
            Delete::Deleted(post) => Some(post),
            Delete::AlreadyDeleted => None,
            Delete::NotFound => panic!("not found"),
        })
        .collect();
    assert_eq!(deleted.len(), 1);
    let deleted_us = deleted[0].deleted_us.unwrap();

    let row = client
        .query_one(
            "select payload::text, type from tideline.outbox where type like '%deleted%'",
            &[],
        )
        .await
        .unwrap();
    let Event::PostDeleted(payload) =
        Event::decode(row.get(1), row.get::<_, &str>(0).as_bytes()).unwrap()
    else {
        panic!("another event");
    };
    assert_eq!(payload.post_us, post.created_us);
    assert_eq!(payload.del_us, deleted_us.plus(24 * Micros::HOUR));

    let Create::Replayed(replayed) = posts::create(&mut client, &new(users[0], "a"))
        .await
        .unwrap()
    else {
        panic!("not a replay");
    };
    assert_eq!(replayed.deleted_us, Some(deleted_us));
    assert_eq!(
        posts::get_many(&client, &[post.id, PostId(1)])
            .await
            .unwrap(),
        vec![replayed]
    );
    fresh.end().await;
}

#[tokio::test]
async fn posts_of_an_author_newest_first() {
    let fresh = Fresh::migrated().await;
    let users = fresh.users(2).await;
    let mut made = Vec::new();
    for key in ["a", "b", "c", "d"] {
        made.push(created(&fresh, &new(users[0], key)).await);
        created(&fresh, &new(users[1], key)).await;
    }
    let mut client = fresh.client().await;
    posts::delete(&mut client, users[0], made[1].id, None)
        .await
        .unwrap();
    let ids = |posts: Vec<Post>| posts.into_iter().map(|post| post.id).collect::<Vec<_>>();
    let page = posts::by_author(&client, users[0], None, Micros(0), 2)
        .await
        .unwrap();
    assert_eq!(ids(page), [made[3].id, made[2].id]);
    let page = posts::by_author(&client, users[0], Some(made[2].id), Micros(0), 2)
        .await
        .unwrap();
    assert_eq!(ids(page), [made[0].id]);
    let page = posts::by_author(&client, users[0], None, made[3].created_us, 9)
        .await
        .unwrap();
    assert_eq!(ids(page), [made[3].id]);
    fresh.end().await;
}
