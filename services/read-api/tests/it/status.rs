//! The delivery status of a post.

use database::{
    delivery_ledger, epoch,
    post_delivery::{self, Delivery},
};
use events::{EventId, Micros, PostId, Stage};
use serde_json::json;

use crate::app::App;

#[tokio::test]
async fn a_post_is_committed_then_published_then_delivered() {
    let app = App::start().await;
    let ann = app.user("ann").await;
    let post = app.post(ann, "a").await;
    let path = format!("/v1/posts/{}/delivery", post.id);
    let fresh = app.get(ann, &path).await;
    assert_eq!(
        (fresh.status, &fresh.json["state"], &fresh.json["rows"]),
        (200, &json!("committed"), &json!(null))
    );
    let event: EventId = fresh.json["event_id"].as_str().unwrap().parse().unwrap();

    let mut client = app.pool.get().await.unwrap();
    let epoch = epoch::current(&client).await.unwrap().epoch;
    delivery_ledger::record(&client, Stage::Published, &[event], epoch)
        .await
        .unwrap();
    assert_eq!(app.get(ann, &path).await.json["state"], "published");
    let (first, last) = (Some(Micros(1_000)), Some(Micros(2_000)));
    let delivery = Delivery {
        event,
        post: post.id,
        audience: 3,
        rows: 2,
        first_row_us: first,
        last_row_us: last,
    };
    post_delivery::record_many(&mut client, epoch, &[delivery])
        .await
        .unwrap();
    let done = app.get(ann, &path).await.json;
    let expected = json!({
        "post_id": post.id.to_string(), "state": "delivered", "event_id": event.to_string(), "published": true,
        "delivered": true, "dead_letter_reason": null, "audience": 3, "rows": 2, "first_row_us": 1_000,
        "last_row_us": 2_000,
    });
    assert_eq!(done, expected);
    let unknown = PostId(post.id.0 + 1);
    assert_eq!(
        app.get(ann, &format!("/v1/posts/{unknown}/delivery"))
            .await
            .status,
        404
    );
    app.stop().await;
}
