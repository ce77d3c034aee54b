//! The home timeline: merge, filter, fill, cursors.

use serde_json::json;

use crate::app::{App, ghost, ids};

/// Pushed and own posts interleave; deletes, unfollows and ghosts are stepped over; every page size
/// gives the same walk.
#[tokio::test]
async fn d_8_a_walk_shows_what_is_visible_and_nothing_else() {
    let app = App::start().await;
    let (reader, ann, bob) = (
        app.user("reader").await,
        app.user("ann").await,
        app.user("bob").await,
    );
    app.follow(reader, ann).await;
    app.follow(reader, bob).await;
    let mut visible = Vec::new();
    for round in 0..12 {
        let theirs = [
            app.post(ann, &format!("a{round}")).await,
            app.post(bob, &format!("b{round}")).await,
        ];
        app.push(reader, &theirs).await;
        let mine = app.post(reader, &format!("r{round}")).await;
        let [kept, hidden] = theirs;
        match round % 4 {
            0 => app.delete(&kept).await,
            1 => {
                app.delete(&mine).await;
                visible.push(kept);
                continue;
            }
            // Own rows may be pushed too, and appear once.
            2 => {
                app.push(reader, std::slice::from_ref(&mine)).await;
                app.push(reader, &[ghost(ann, &hidden)]).await;
                visible.push(kept);
            }
            _ => visible.push(kept),
        }
        visible.push(mine);
    }
    // Bob's posts are hidden at once; the rows are still there.
    app.unfollow(reader, bob).await;
    for limit in [1, 3, 7, 100] {
        let (seen, _) = app.walk(reader, "/v1/timelines/home", "posts", limit).await;
        assert_eq!(seen, ids(&visible), "limit {limit}");
    }
    app.stop().await;
}

/// Scenario 45: twenty hidden rows at the head do not make an empty page.
#[tokio::test]
async fn hidden_rows_at_the_head_still_fill_the_page() {
    let app = App::start().await;
    let (reader, ann, bob) = (
        app.user("reader").await,
        app.user("ann").await,
        app.user("bob").await,
    );
    app.follow(reader, ann).await;
    let mut shown = Vec::new();
    for n in 0..5 {
        shown.push(app.post(ann, &format!("a{n}")).await);
    }
    let mut hidden = Vec::new();
    for n in 0..20 {
        hidden.push(app.post(bob, &format!("b{n}")).await);
    }
    app.push(reader, &shown).await;
    app.push(reader, &hidden).await;
    let first = app.get(reader, "/v1/timelines/home?limit=3").await;
    let texts: Vec<_> = first.json["posts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|post| &post["body"])
        .collect();
    assert_eq!(texts, ["a4", "a3", "a2"]);
    // The page is full before the end of the rows, so there is a cursor, and the walk ends.
    assert!(first.json["next_cursor"].is_string());
    assert_eq!(
        app.walk(reader, "/v1/timelines/home", "posts", 3).await.0,
        ids(&shown)
    );
    app.stop().await;
}

/// A post that arrives above the cursor, or a row that arrives late below it, breaks no walk.
#[tokio::test]
async fn changes_during_a_walk_make_no_gap_and_no_repeat() {
    let app = App::start().await;
    let (reader, ann) = (app.user("reader").await, app.user("ann").await);
    app.follow(reader, ann).await;
    let mut posts = Vec::new();
    for n in 0..9 {
        posts.push(app.post(ann, &format!("a{n}")).await);
    }
    let late = posts.remove(2);
    app.push(reader, &posts).await;
    let first = app.get(reader, "/v1/timelines/home?limit=4").await;
    let cursor = first.json["next_cursor"].as_str().unwrap().to_owned();
    let newer = app.post(ann, "newer").await;
    app.push(reader, &[newer, late.clone()]).await;
    let rest = app
        .get(
            reader,
            &format!("/v1/timelines/home?limit=50&cursor={cursor}"),
        )
        .await;
    let of = |answer: &crate::app::Answer| -> Vec<i64> {
        let found = answer.json["posts"].as_array().unwrap().clone();
        found
            .iter()
            .map(|post| post["id"].as_str().unwrap().parse().unwrap())
            .collect()
    };
    posts.push(late);
    assert_eq!([of(&first), of(&rest)].concat(), ids(&posts));
    assert_eq!(rest.json.get("next_cursor"), None);
    app.stop().await;
}

#[tokio::test]
async fn limits_are_clamped_and_bad_cursors_refused() {
    let app = App::start().await;
    let (reader, other) = (app.user("reader").await, app.user("other").await);
    app.post(reader, "one").await;
    let two = app.post(reader, "two").await;
    for (asked, used) in [
        ("?limit=0", 1),
        ("?limit=-3", 1),
        ("?limit=1000", 100),
        ("", 20),
    ] {
        let answer = app.get(reader, &format!("/v1/timelines/home{asked}")).await;
        assert_eq!((answer.status, &answer.json["limit"]), (200, &json!(used)));
    }
    let malformed = app.get(reader, "/v1/timelines/home?limit=x").await;
    assert_eq!(
        (malformed.status, &malformed.json["code"]),
        (400, &json!("invalid-query"))
    );

    let page = app.get(reader, "/v1/timelines/home?limit=1").await;
    assert_eq!(page.json["posts"][0]["id"], two.id.to_string());
    let cursor = page.json["next_cursor"].as_str().unwrap().to_owned();
    let mut changed = cursor.clone();
    changed.replace_range(3..4, if &cursor[3..4] == "A" { "B" } else { "A" });
    let refused = [
        (reader, format!("/v1/timelines/home?cursor={changed}")),
        (reader, "/v1/timelines/home?cursor=".to_owned()),
        (other, format!("/v1/timelines/home?cursor={cursor}")),
        (reader, format!("/v1/users/{reader}/posts?cursor={cursor}")),
    ];
    for (user, path) in refused {
        let answer = app.get(user, &path).await;
        assert_eq!(
            (answer.status, &answer.json["code"]),
            (400, &json!("invalid-cursor")),
            "{path}"
        );
    }
    app.stop().await;
}

/// All sources end at the retention, by Postgres's clock.
#[tokio::test]
async fn nothing_older_than_the_retention_is_shown() {
    let app = App::start().await;
    let (reader, ann) = (app.user("reader").await, app.user("ann").await);
    app.follow(reader, ann).await;
    let mut posts = Vec::new();
    for n in 0..4 {
        posts.push(
            app.post(if n % 2 == 0 { ann } else { reader }, &format!("p{n}"))
                .await,
        );
    }
    app.push(reader, &posts).await;
    // The retention of these tests is 12 hours.
    let age = "update tideline.posts set created_at = created_at - interval '13 hours' where body in ('p0', 'p1')";
    app.deployment.sql().await.execute(age, &[]).await.unwrap();
    let (seen, _) = app.walk(reader, "/v1/timelines/home", "posts", 10).await;
    assert_eq!(seen, ids(&posts[2..]));
    app.stop().await;
}
