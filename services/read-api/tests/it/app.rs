//! A read-api of its own on a database and a keyspace of its own.

use std::time::{Duration, Instant};

use database::{
    Pool,
    follows::{self, Follow},
    posts::{self, Create, Delete, NewPost, Post},
    users::{self, CreateUser},
};
use events::{Micros, PostId, UserId};
use http_api::{Claims, Key, token};
use read_api::{Service, config::Config};
use runtime::{
    Shutdown,
    config::{Sources, load},
};
use serde_json::Value;
use testkit::{Deployment, answered, eventually_within};
use timeline_store::{CqlTimelines, PgNow, TimelineRow, TimelineStore};
use tokio::task::JoinHandle;

/// Any moment in the far future.
const NEVER: u64 = 4_000_000_000;
const HOUR: i64 = Micros::HOUR;

/// A running service; stopped by [`App::stop`].
pub(crate) struct App {
    pub(crate) pool: Pool,
    timelines: CqlTimelines,
    base: String,
    key: Key,
    http: reqwest::Client,
    shutdown: Shutdown,
    serving: JoinHandle<()>,
    // Dropped last: it drops the slot of the database.
    pub(crate) deployment: Deployment,
}

/// An answer: status, `Link` header, JSON.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) link: Option<String>,
    pub(crate) json: Value,
}

impl App {
    pub(crate) async fn start() -> Self {
        let deployment = Deployment::new().await;
        let mut variables = deployment.env();
        variables.push(("TIDELINE_READ_API__LISTEN".into(), "127.0.0.1:0".into()));
        variables.push(("TIDELINE_READ_API__ADMIN".into(), "127.0.0.1:0".into()));
        variables.push(("TIDELINE_TIMELINES__RETENTION".into(), "12h".into()));
        let config: Config = load(&Sources::of_variables(variables)).unwrap();
        let key = Key::new(config.auth.read_secret().unwrap().expose().as_bytes()).unwrap();
        let shutdown = Shutdown::new();
        let service = Service::start(&config, &shutdown).await.unwrap().unwrap();
        let base = format!("http://{}", service.address());
        let serving = tokio::spawn(service.serve(shutdown.clone()));
        Self {
            pool: Pool::new(&deployment.database_url(), 2, "test").unwrap(),
            timelines: deployment.timelines().await,
            base,
            key,
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            shutdown,
            serving,
            deployment,
        }
    }

    pub(crate) async fn stop(self) {
        self.shutdown.trigger();
        self.serving.await.unwrap();
    }

    /// Asks, and asks again while a server behind the service stalls (503).
    pub(crate) async fn get(&self, user: UserId, path: &str) -> Answer {
        let minute = Duration::from_secs(60);
        eventually_within(minute, "another answer than 503", async || {
            let answer = self.ask(user, path).await;
            (answer.status != 503).then_some(answer)
        })
        .await
    }

    async fn ask(&self, user: UserId, path: &str) -> Answer {
        let claims = Claims {
            sub: user.to_string(),
            exp: NEVER,
            scope: None,
        };
        let token = token::mint(&self.key, &claims).unwrap();
        let response = self
            .http
            .get(format!("{}{path}", self.base))
            .bearer_auth(token)
            .send()
            .await
            .unwrap();
        Answer {
            status: response.status().as_u16(),
            link: response
                .headers()
                .get("link")
                .map(|link| link.to_str().unwrap().to_owned()),
            json: response.json().await.unwrap(),
        }
    }

    /// Walks a list to its end; the ids of all items and the number of pages.
    pub(crate) async fn walk(
        &self,
        user: UserId,
        path: &str,
        items: &str,
        limit: usize,
    ) -> (Vec<i64>, usize) {
        let (mut ids, mut pages) = (Vec::new(), 0);
        let mut next = format!("{path}?limit={limit}");
        loop {
            let answer = self.get(user, &next).await;
            assert_eq!(answer.status, 200, "{}", answer.json);
            pages += 1;
            let found = answer.json[items].as_array().unwrap();
            assert!(found.len() <= limit);
            ids.extend(
                found
                    .iter()
                    .map(|item| item["id"].as_str().unwrap().parse::<i64>().unwrap()),
            );
            let Some(cursor) = answer.json["next_cursor"].as_str() else {
                assert_eq!(answer.link, None);
                return (ids, pages);
            };
            next = format!("{path}?cursor={cursor}&limit={limit}");
            assert_eq!(answer.link, Some(format!("<{next}>; rel=\"next\"")));
        }
    }

    pub(crate) async fn user(&self, handle: &str) -> UserId {
        match users::create(&self.pool.get().await.unwrap(), handle)
            .await
            .unwrap()
        {
            CreateUser::Created(user) => user.id,
            CreateUser::Exists(user) => panic!("{user:?} exists"),
        }
    }

    pub(crate) async fn follow(&self, follower: UserId, followee: UserId) {
        let mut client = self.pool.get().await.unwrap();
        let outcome = follows::follow(&mut client, follower, followee, None)
            .await
            .unwrap();
        assert!(matches!(outcome, Follow::Created { .. }), "{outcome:?}");
    }

    pub(crate) async fn unfollow(&self, follower: UserId, followee: UserId) {
        let _ended = follows::unfollow(
            &mut self.pool.get().await.unwrap(),
            follower,
            followee,
            None,
        )
        .await
        .unwrap();
    }

    pub(crate) async fn post(&self, author: UserId, text: &str) -> Post {
        let new = NewPost {
            author,
            client_post_id: text,
            fingerprint: text.as_bytes(),
            body: text,
            traceparent: None,
        };
        match posts::create(&mut self.pool.get().await.unwrap(), &new)
            .await
            .unwrap()
        {
            Create::Created(post) => post,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn delete(&self, post: &Post) {
        let outcome = posts::delete(
            &mut self.pool.get().await.unwrap(),
            post.author,
            post.id,
            None,
        )
        .await
        .unwrap();
        assert!(matches!(outcome, Delete::Deleted(_)), "{outcome:?}");
    }

    /// Writes rows of these posts into a timeline, as fan-out would.
    pub(crate) async fn push(&self, owner: UserId, posts: &[Post]) {
        let rows: Vec<TimelineRow> = posts
            .iter()
            .map(|post| TimelineRow {
                owner,
                post: post.id,
                author: post.author,
                write_us: post.created_us,
                expires_us: post.created_us.plus(100 * HOUR),
            })
            .collect();
        let now = PgNow::new(
            rows.first().map_or(Micros(0), |row| row.write_us),
            Instant::now(),
        );
        let written = answered(|| self.timelines.write(&rows, &now)).await;
        assert_eq!(written.rows, rows.len() as u64);
    }
}

pub(crate) fn ids(posts: &[Post]) -> Vec<i64> {
    let mut ids: Vec<i64> = posts.iter().map(|post| post.id.0).collect();
    ids.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
    ids
}

/// A row whose post Postgres does not have.
pub(crate) fn ghost(author: UserId, like: &Post) -> Post {
    Post {
        id: PostId(like.id.0 + 1_000),
        author,
        ..like.clone()
    }
}
