//! Each fault planted into real stores that were clean, and the names the judge gives it.

use std::time::Instant;

use database::{Pool, posts, users};
use events::{Micros, PostId, UserId};
use judge::{Change, Fault, Journal, Verdict, judge_at_rest};
use testkit::{Deployment, answered};
use timeline_store::{CqlTimelines, PgNow, TimelineDelete, TimelineRow, TimelineStore};

/// One author, followed by `kept` and `left` and not by `stranger`; `left` unfollowed between the
/// two posts, and the second post was deleted.
pub(crate) struct Run {
    pub(crate) deployment: Deployment,
    pool: Pool,
    pub(crate) store: CqlTimelines,
    journal: Journal,
    pub(crate) author: UserId,
    pub(crate) kept: UserId,
    pub(crate) left: UserId,
    pub(crate) stranger: UserId,
    pub(crate) standing: PostId,
    pub(crate) deleted: PostId,
    pub(crate) post_us: Micros,
}

impl Run {
    pub(crate) async fn clean() -> Self {
        let deployment = Deployment::new().await;
        let pool = Pool::new(&deployment.database_url(), 2, "judge-test").unwrap();
        let store = deployment.timelines().await;
        let mut client = pool.get().await.unwrap();
        let mut people = Vec::new();
        for handle in ["author", "kept", "left", "stranger"] {
            match users::create(&client, handle).await.unwrap() {
                users::CreateUser::Created(user) => people.push(user.id),
                other => panic!("{other:?}"),
            }
        }
        let [author, kept, left, stranger] = people[..] else {
            panic!("four accounts")
        };
        let mut journal = Journal::new();
        journal.know_users(people);
        journal.bulk_follows(author, [kept, left]);
        let (first, standing, post_us) = post(&mut client, &mut journal, author, "standing").await;
        let edge = journal.edge_sent(Change::Unfollow, left, author);
        journal.edge_acked(edge);
        let (second, deleted, _) = post(&mut client, &mut journal, author, "deleted").await;
        assert_ne!(first, second);
        journal.delete_sent(second);
        posts::delete(&mut client, author, deleted, None)
            .await
            .unwrap();
        journal.delete_acked(second);
        drop(client);
        let run = Self {
            deployment,
            pool,
            store,
            journal,
            author,
            kept,
            left,
            stranger,
            standing,
            deleted,
            post_us,
        };
        run.write(run.kept, run.standing).await;
        run.write(run.left, run.standing).await;
        run
    }

    pub(crate) async fn write(&self, owner: UserId, post: PostId) {
        let expires_us = self.post_us.plus(Micros::HOUR);
        let row = TimelineRow {
            owner,
            post,
            author: self.author,
            write_us: self.post_us,
            expires_us,
        };
        let now = PgNow::new(self.post_us, Instant::now());
        let _written = answered(async || self.store.write(&[row], &now).await).await;
    }

    async fn verdict(&mut self) -> Verdict {
        judge_at_rest(&mut self.journal, &self.pool, &self.store)
            .await
            .unwrap()
    }

    /// Exactly this fault was found, and it is named.
    async fn finds(&mut self, fault: Fault, owner: Option<UserId>, post: PostId) {
        let verdict = self.verdict().await;
        for other in Fault::ALL {
            assert_eq!(
                verdict.tally(other).count,
                u64::from(other == fault),
                "{}: {verdict}",
                other.word()
            );
        }
        let example = &verdict.tally(fault).examples[0];
        assert_eq!(
            (example.owner, example.post, example.author),
            (owner, Some(post), Some(self.author)),
            "{verdict}"
        );
    }
}

async fn post(
    client: &mut database::Client,
    journal: &mut Journal,
    author: UserId,
    key: &str,
) -> (judge::PostRef, PostId, Micros) {
    let entry = journal.post_sent(author, key);
    let new = posts::NewPost {
        author,
        client_post_id: key,
        fingerprint: b"f",
        body: "text",
        traceparent: None,
    };
    match posts::create(client, &new).await.unwrap() {
        posts::Create::Created(post) => {
            journal.post_acked(entry, post.id);
            (entry, post.id, post.created_us)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_clean_run_has_no_fault() {
    let mut run = Run::clean().await;
    let verdict = run.verdict().await;
    assert!(verdict.holds(), "{verdict}");
    assert_eq!(
        (
            verdict.posts,
            verdict.rows_expected,
            verdict.rows_found,
            verdict.rows_stored
        ),
        (2, 1, 1, 2)
    );
}

#[tokio::test]
async fn a_lost_row_is_named() {
    let mut run = Run::clean().await;
    let (owner, post) = (run.kept, run.standing);
    let gone = TimelineDelete {
        owner,
        post,
        write_us: run.post_us.plus(1),
    };
    answered(async || run.store.delete(&[gone]).await).await;
    run.finds(Fault::Lost, Some(owner), post).await;
}

#[tokio::test]
async fn a_foreign_row_is_named() {
    let mut run = Run::clean().await;
    let (owner, post) = (run.stranger, run.standing);
    run.write(owner, post).await;
    run.finds(Fault::Foreign, Some(owner), post).await;
}

#[tokio::test]
async fn d_8_a_resurrected_delete_is_named() {
    let mut run = Run::clean().await;
    let (owner, post) = (run.kept, run.deleted);
    run.write(owner, post).await;
    run.finds(Fault::Resurrected, Some(owner), post).await;
}

#[tokio::test]
async fn a_row_for_somebody_who_had_left_is_named() {
    let mut run = Run::clean().await;
    let (owner, post) = (run.left, run.deleted);
    run.write(owner, post).await;
    run.finds(Fault::Foreign, Some(owner), post).await;
}

#[tokio::test]
async fn d_2_two_posts_for_one_key_are_named() {
    let mut run = Run::clean().await;
    let second = second_post_of_one_key(&run).await;
    run.finds(Fault::Duplicated, None, second).await;
}

/// Plants a second post of a key that has one, and returns its id.
pub(crate) async fn second_post_of_one_key(run: &Run) -> PostId {
    let sql = run.deployment.sql().await;
    // Nothing but the constraint stands between a client and a second post.
    sql.batch_execute(
        "alter table tideline.posts drop constraint posts_author_id_client_post_id_key",
    )
    .await
    .unwrap();
    let second = PostId(run.standing.0 + 1);
    let copy = "insert into tideline.posts (id, author_id, client_post_id, fingerprint, body, created_at)
        select $1, author_id, client_post_id, fingerprint, body, created_at from tideline.posts where id = $2";
    sql.execute(copy, &[&second.0, &run.standing.0])
        .await
        .unwrap();
    second
}
