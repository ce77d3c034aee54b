//! Ledger, deliveries, dead letters.

use database::{
    Error, dead_letters, delivery_ledger, outbox,
    post_delivery::{self, Delivery},
    posts,
};
use events::{Class, EventId, Micros, PostId, Stage};

use crate::fresh::Fresh;

/// Makes posts and answers them with their events.
async fn make_posts(fresh: &Fresh, count: usize) -> Vec<(PostId, EventId)> {
    let author = fresh.users(1).await[0];
    let mut client = fresh.client().await;
    let mut made = Vec::new();
    for n in 0..count {
        let key = format!("key-{n}");
        let new = posts::NewPost {
            author,
            client_post_id: &key,
            fingerprint: b"",
            body: "a",
            traceparent: None,
        };
        let posts::Create::Created(post) = posts::create(&mut client, &new).await.unwrap() else {
            panic!("not made");
        };
        made.push((
            post.id,
            outbox::event_of_post(&client, post.id)
                .await
                .unwrap()
                .unwrap(),
        ));
    }
    made
}

#[tokio::test]
async fn ids_come_back_from_the_multirange() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    let ids: Vec<EventId> = [3, 1, 2, 2, 7, 9, 10].map(EventId).to_vec();
    delivery_ledger::record(&client, Stage::Published, &ids, 1)
        .await
        .unwrap();
    delivery_ledger::record(&client, Stage::Published, &[], 1)
        .await
        .unwrap();
    for id in 0..12 {
        let expected = ids.contains(&EventId(id));
        let found = delivery_ledger::contains(&client, Stage::Published, EventId(id))
            .await
            .unwrap();
        assert_eq!(found, expected, "id {id}");
        assert!(
            !delivery_ledger::contains(&client, Stage::Delivered, EventId(id))
                .await
                .unwrap()
        );
    }
    assert_eq!(
        fresh
            .number("select count(*) from tideline.delivery_ledger")
            .await,
        1
    );
    let row = client
        .query_one("select ids::text from tideline.delivery_ledger", &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, &str>(0), "{[1,4),[7,8),[9,11)}");
    fresh.end().await;
}

#[tokio::test]
async fn entries_of_another_epoch_are_refused() {
    let fresh = Fresh::migrated().await;
    let mut client = fresh.client().await;
    let (post, event) = make_posts(&fresh, 1).await[0];
    fresh
        .run("insert into tideline.epoch (epoch, system_id, pg_timeline) values (2, '1', 1)")
        .await;
    assert_eq!(database::epoch::current(&client).await.unwrap().epoch, 2);
    let error = delivery_ledger::record(&client, Stage::Published, &[event], 1)
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            Error::OtherEpoch {
                given: 1,
                current: 2
            }
        ),
        "{error:?}"
    );
    assert_eq!(error.class(), Class::Record);

    let delivery = Delivery {
        event,
        post,
        audience: 1,
        rows: 1,
        first_row_us: None,
        last_row_us: None,
    };
    let error = post_delivery::record_many(&mut client, 1, &[delivery])
        .await
        .unwrap_err();
    assert!(matches!(error, Error::OtherEpoch { .. }), "{error:?}");
    assert_eq!(
        fresh
            .number("select count(*) from tideline.post_delivery")
            .await,
        0,
        "one transaction"
    );
    assert_eq!(
        fresh
            .number("select count(*) from tideline.delivery_ledger")
            .await,
        0
    );
    fresh.end().await;
}

#[tokio::test]
async fn a_post_is_followed_from_outbox_to_rows() {
    let fresh = Fresh::migrated().await;
    let made = make_posts(&fresh, 3).await;
    let events: Vec<EventId> = made.iter().map(|(_, event)| *event).collect();
    let mut client = fresh.client().await;
    assert_eq!(outbox::unpublished(&client).await.unwrap(), 3);
    let (post, event) = made[1];
    let status = post_delivery::of_post(&client, post)
        .await
        .unwrap()
        .unwrap();
    assert!(
        !status.published && !status.delivered && status.rows.is_none() && status.event == event
    );

    delivery_ledger::record(&client, Stage::Published, &events, 1)
        .await
        .unwrap();
    assert_eq!(outbox::unpublished(&client).await.unwrap(), 0);
    assert_eq!(
        delivery_ledger::missing_count(&client, Stage::Delivered)
            .await
            .unwrap(),
        3
    );
    assert!(
        post_delivery::of_post(&client, post)
            .await
            .unwrap()
            .unwrap()
            .published
    );

    let at = |first, last| Delivery {
        event,
        post,
        audience: 5,
        rows: 5,
        first_row_us: Some(Micros(first)),
        last_row_us: Some(Micros(last)),
    };
    // Twice in one flush, and again later: counts stay, times span all.
    post_delivery::record_many(&mut client, 1, &[at(20, 30), at(20, 30)])
        .await
        .unwrap();
    post_delivery::record_many(&mut client, 1, &[at(10, 25)])
        .await
        .unwrap();
    let status = post_delivery::of_post(&client, post)
        .await
        .unwrap()
        .unwrap();
    assert!(status.published && status.delivered);
    assert_eq!((status.audience, status.rows), (Some(5), Some(5)));
    assert_eq!(
        (status.first_row_us, status.last_row_us),
        (Some(Micros(10)), Some(Micros(30)))
    );
    assert_eq!(
        delivery_ledger::missing_count(&client, Stage::Delivered)
            .await
            .unwrap(),
        2
    );
    assert_eq!(
        post_delivery::of_post(&client, PostId(1)).await.unwrap(),
        None
    );
    fresh.end().await;
}

#[tokio::test]
async fn dead_letters_have_one_row_per_event() {
    let fresh = Fresh::migrated().await;
    let (post, event) = make_posts(&fresh, 1).await[0];
    let client = fresh.client().await;
    let letter = dead_letters::DeadLetter {
        stage: Stage::Delivered,
        event: Some(event),
        post: Some(post),
        topic: "posts".to_owned(),
        partition: 3,
        offset: 7,
        reason: "first\0".to_owned(),
    };
    dead_letters::record(&client, &letter).await.unwrap();
    let again = dead_letters::DeadLetter {
        offset: 8,
        reason: "second".to_owned(),
        ..letter.clone()
    };
    dead_letters::record(&client, &again).await.unwrap();
    assert_eq!(dead_letters::count_open(&client).await.unwrap(), 1);
    let unknown = dead_letters::DeadLetter {
        event: None,
        post: None,
        ..letter
    };
    dead_letters::record(&client, &unknown).await.unwrap();
    dead_letters::record(&client, &unknown).await.unwrap();
    assert_eq!(dead_letters::count_open(&client).await.unwrap(), 2);
    let status = post_delivery::of_post(&client, post)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(status.dead_letter.as_deref(), Some("second"));
    fresh.end().await;
}
