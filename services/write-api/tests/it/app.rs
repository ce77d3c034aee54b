//! A write-api of its own on a database of its own.

use http_api::{Claims, Key, token};
use reqwest::{Method, RequestBuilder, Response};
use runtime::{
    Shutdown,
    config::{Sources, load},
};
use serde_json::{Value, json};
use testkit::Deployment;
use tokio::task::JoinHandle;
use write_api::{Service, config::Config};

/// Any moment in the far future.
const NEVER: u64 = 4_000_000_000;

/// A running service; stopped by [`App::stop`].
pub(crate) struct App {
    pub(crate) deployment: Deployment,
    base: String,
    admin: String,
    key: Key,
    http: reqwest::Client,
    shutdown: Shutdown,
    serving: JoinHandle<()>,
}

impl App {
    pub(crate) async fn start() -> Self {
        Self::start_with(Deployment::without_timelines().await, &[]).await
    }

    /// With settings that win over the deployment's.
    pub(crate) async fn start_with(deployment: Deployment, settings: &[(&str, String)]) -> Self {
        let mut variables = deployment.env();
        variables.push(("TIDELINE_WRITE_API__LISTEN".into(), "127.0.0.1:0".into()));
        variables.push(("TIDELINE_WRITE_API__ADMIN".into(), "127.0.0.1:0".into()));
        variables.extend(
            settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone())),
        );
        let config: Config = load(&Sources::of_variables(variables)).unwrap();
        let key = Key::new(config.auth.read_secret().unwrap().expose().as_bytes()).unwrap();
        let shutdown = Shutdown::new();
        let service = Service::start(&config, &shutdown).await.unwrap().unwrap();
        let base = format!("http://{}", service.address());
        let admin = format!("http://{}", service.admin_address());
        let serving = tokio::spawn(service.serve(shutdown.clone()));
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self {
            deployment,
            base,
            admin,
            key,
            http,
            shutdown,
            serving,
        }
    }

    pub(crate) async fn stop(self) {
        self.shutdown.trigger();
        self.serving.await.unwrap();
    }

    pub(crate) fn token(&self, user: &str, scope: Option<&str>) -> String {
        let claims = Claims {
            sub: user.to_owned(),
            exp: NEVER,
            scope: scope.map(str::to_owned),
        };
        token::mint(&self.key, &claims).unwrap()
    }

    /// A request without a token.
    pub(crate) fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    /// What the admin port answers.
    pub(crate) async fn admin(&self, path: &str) -> (u16, String) {
        let response = self
            .http
            .get(format!("{}{path}", self.admin))
            .send()
            .await
            .unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    /// A request of this user.
    pub(crate) fn of(&self, user: &str, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).bearer_auth(self.token(user, None))
    }

    /// A post of this user.
    pub(crate) async fn post(&self, user: &str, body: Value) -> (u16, Value) {
        answer(
            self.of(user, Method::POST, "/v1/posts")
                .json(&body)
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    /// A new account; its id.
    pub(crate) async fn user(&self, handle: &str) -> String {
        let (status, account) = self.create_user(handle).await;
        assert_eq!(status, 201, "{account}");
        account["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn create_user(&self, handle: &str) -> (u16, Value) {
        let request = self
            .bare(Method::POST, "/v1/users")
            .bearer_auth(self.token("0", Some("admin")));
        answer(
            request
                .json(&json!({ "handle": handle }))
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    /// One number out of the database.
    pub(crate) async fn count(&self, sql: &str) -> i64 {
        self.deployment
            .sql()
            .await
            .query_one(sql, &[])
            .await
            .unwrap()
            .get(0)
    }
}

/// Status and JSON of an answer; null without a body.
pub(crate) async fn answer(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let bytes = response.bytes().await.unwrap();
    let value = if bytes.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&bytes).unwrap()
    };
    (status, value)
}

/// Checks that an answer is a problem document of this status and code, and returns it.
pub(crate) async fn problem(response: Response, status: u16, code: &str) -> Value {
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    let id = response.headers()["x-request-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let (answered, document) = answer(response).await;
    assert_eq!(
        (answered, document["code"].as_str()),
        (status, Some(code)),
        "{document}"
    );
    assert_eq!(document["type"], format!("urn:tideline:problem:{code}"));
    assert_eq!(document["status"], status);
    assert_eq!(document["request_id"], id);
    assert!(document["title"].is_string());
    document
}
