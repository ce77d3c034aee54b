//! Every refusal is a problem document; no answer leaks what went wrong inside.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::FromRef,
    http::{Request, Response, StatusCode},
    routing::{get, post},
};
use events::{PostId, UserId};
use http_api::{
    Claims, HttpMetrics, Json, Key, Limits, PathId, Problem, Query, Traceparent, User, Verifier,
    framed, token,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Notify;
use tower::ServiceExt;

const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[derive(Clone)]
struct App {
    verifier: Verifier,
    hold: Arc<Notify>,
}

impl FromRef<App> for Verifier {
    fn from_ref(app: &App) -> Self {
        app.verifier.clone()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
struct Echo {
    text: String,
}

#[derive(Deserialize)]
struct Paging {
    limit: Option<i64>,
}

struct Setup {
    router: Router,
    hold: Arc<Notify>,
    registry: prometheus::Registry,
    token: String,
    admin: String,
}

fn setup() -> Setup {
    let key = Key::new(b"0123456789abcdef0123456789abcdef").unwrap();
    let claims = |scope: Option<&str>| Claims {
        sub: "7".into(),
        exp: 4_000_000_000,
        scope: scope.map(Into::into),
    };
    let hold = Arc::new(Notify::new());
    let app = App {
        verifier: Verifier::new(&key),
        hold: Arc::clone(&hold),
    };
    let routes = Router::new()
        .route("/me", get(|user: User| async move { user.id.to_string() }))
        .route(
            "/admin",
            get(|user: User| async move { user.require_admin() }),
        )
        .route(
            "/echo",
            post(|Json(body): Json<Echo>| async move { body.text }),
        )
        .route(
            "/posts/{id}",
            get(|PathId(id): PathId<PostId>| async move { id.to_string() }),
        )
        .route(
            "/paging",
            get(|Query(p): Query<Paging>| async move { format!("{:?}", p.limit) }),
        )
        .route(
            "/trace",
            get(|Traceparent(t): Traceparent| async move { t.unwrap_or_default() }),
        )
        .route(
            "/panic",
            get(|| async {
                if true {
                    panic!("secret detail")
                }
            }),
        )
        .route(
            "/hold",
            get(
                |axum::extract::State(app): axum::extract::State<App>| async move {
                    app.hold.notified().await
                },
            ),
        )
        .route(
            "/gone",
            get(|| async { Problem::from_class(events::Class::Outage) }),
        )
        .with_state(app);
    let registry = prometheus::Registry::new();
    let limits = Limits {
        request_timeout: Duration::from_millis(300),
        body_bytes: 64,
        in_flight: 1,
    };
    Setup {
        router: framed(routes, limits, HttpMetrics::new(&registry).unwrap()),
        hold,
        registry,
        token: token::mint(&key, &claims(None)).unwrap(),
        admin: token::mint(&key, &claims(Some("admin"))).unwrap(),
    }
}

async fn send(router: &Router, request: Request<Body>) -> Response<Body> {
    router.clone().oneshot(request).await.unwrap()
}

fn get_with(path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).unwrap()
}

fn post_json(body: &str) -> Request<Body> {
    Request::post("/echo")
        .header("content-type", "application/json")
        .body(Body::from(body.to_owned()))
        .unwrap()
}

async fn text(response: Response<Body>) -> String {
    String::from_utf8(
        to_bytes(response.into_body(), 10_000)
            .await
            .unwrap()
            .to_vec(),
    )
    .unwrap()
}

/// Checks the form of a problem document and returns it.
async fn problem(response: Response<Body>, status: u16, code: &str) -> Value {
    assert_eq!(response.status().as_u16(), status);
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    let id = response.headers()["x-request-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let document: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(document["status"], status);
    assert_eq!(document["code"], code);
    assert_eq!(document["type"], format!("urn:tideline:problem:{code}"));
    assert_eq!(document["request_id"], id);
    assert!(document["title"].is_string());
    document
}

#[tokio::test]
async fn a_token_names_the_user_and_others_are_401() {
    let s = setup();
    let bearer = format!("Bearer {}", s.token);
    assert_eq!(
        text(send(&s.router, get_with("/me", &[("authorization", &bearer)])).await).await,
        UserId(7).to_string()
    );
    for value in ["Bearer x.y.z", "Basic abc", "Bearer", ""] {
        let response = send(&s.router, get_with("/me", &[("authorization", value)])).await;
        assert_eq!(response.headers()["www-authenticate"], "Bearer");
        problem(response, 401, "unauthenticated").await;
    }
    problem(
        send(&s.router, get_with("/me", &[])).await,
        401,
        "unauthenticated",
    )
    .await;
}

#[tokio::test]
async fn the_admin_scope_is_checked() {
    let s = setup();
    let refused = send(
        &s.router,
        get_with(
            "/admin",
            &[("authorization", &format!("Bearer {}", s.token))],
        ),
    )
    .await;
    problem(refused, 403, "forbidden").await;
    let passed = send(
        &s.router,
        get_with(
            "/admin",
            &[("authorization", &format!("bearer {}", s.admin))],
        ),
    )
    .await;
    assert_eq!(passed.status(), StatusCode::OK);
}

#[tokio::test]
async fn bodies_are_bounded_and_checked() {
    let s = setup();
    assert_eq!(
        text(send(&s.router, post_json(r#"{"text":"hello"}"#)).await).await,
        "hello"
    );
    let document = problem(
        send(&s.router, post_json(r#"{"text":"a","more":1}"#)).await,
        422,
        "invalid-body",
    )
    .await;
    assert_eq!(document["errors"][0]["pointer"], "/more");
    problem(send(&s.router, post_json("{")).await, 400, "invalid-json").await;
    problem(
        send(
            &s.router,
            post_json(&format!("{{\"text\":\"{}\"}}", "x".repeat(65))),
        )
        .await,
        413,
        "body-too-large",
    )
    .await;
    let plain = Request::post("/echo")
        .header("content-type", "text/plain")
        .body(Body::from("{}"))
        .unwrap();
    problem(send(&s.router, plain).await, 415, "unsupported-media-type").await;
}

#[tokio::test]
async fn unknown_paths_methods_ids_and_queries_are_problems() {
    let s = setup();
    problem(
        send(&s.router, get_with("/nowhere", &[])).await,
        404,
        "not-found",
    )
    .await;
    let response = send(
        &s.router,
        Request::delete("/me").body(Body::empty()).unwrap(),
    )
    .await;
    assert!(
        response.headers()["allow"]
            .to_str()
            .unwrap()
            .contains("GET")
    );
    problem(response, 405, "method-not-allowed").await;
    for id in ["x", "007", "+7", "9223372036854775808", "%00", "7%20"] {
        problem(
            send(&s.router, get_with(&format!("/posts/{id}"), &[])).await,
            404,
            "not-found",
        )
        .await;
    }
    assert_eq!(
        text(send(&s.router, get_with("/posts/7", &[])).await).await,
        "7"
    );
    problem(
        send(&s.router, get_with("/paging?limit=x", &[])).await,
        400,
        "invalid-query",
    )
    .await;
}

#[tokio::test]
async fn request_id_and_traceparent_pass_through() {
    let s = setup();
    let response = send(
        &s.router,
        get_with(
            "/trace",
            &[("x-request-id", "mine-1"), ("traceparent", TRACEPARENT)],
        ),
    )
    .await;
    assert_eq!(response.headers()["x-request-id"], "mine-1");
    assert_eq!(text(response).await, TRACEPARENT);
    let other = send(&s.router, get_with("/trace", &[("traceparent", "00-no")])).await;
    assert_eq!(text(other).await, "");
}

#[tokio::test]
async fn a_panic_is_a_500_that_tells_nothing() {
    let s = setup();
    let document = problem(
        send(&s.router, get_with("/panic", &[])).await,
        500,
        "internal",
    )
    .await;
    assert!(!document.to_string().contains("secret"));
}

#[tokio::test]
async fn slow_and_too_many_requests_are_503_with_retry_after() {
    let s = setup();
    let first = tokio::spawn(send_owned(s.router.clone(), "/hold"));
    // The first takes the only permit at its first poll; wait until it has.
    while !gathered(&s.registry).contains("tideline_http_requests_in_flight 1") {
        tokio::task::yield_now().await;
    }
    let second = send(&s.router, get_with("/me", &[])).await;
    assert_eq!(second.headers()["retry-after"], "1");
    problem(second, 503, "overloaded").await;
    let slow = first.await.unwrap();
    problem(slow, 503, "timed-out").await;
    s.hold.notify_one();
    assert_eq!(
        send(&s.router, get_with("/hold", &[])).await.status(),
        StatusCode::OK
    );
    let away = send(&s.router, get_with("/gone", &[])).await;
    assert_eq!(away.headers()["retry-after"], "2");
    problem(away, 503, "unavailable").await;
}

#[tokio::test]
async fn metrics_carry_the_route_template_only() {
    let s = setup();
    for id in 1..4 {
        let _ = send(&s.router, get_with(&format!("/posts/{id}"), &[])).await;
    }
    let _ = send(&s.router, get_with("/some/made/up/path", &[])).await;
    let shown = gathered(&s.registry);
    assert!(
        shown.contains(
            r#"tideline_http_requests_total{method="GET",route="/posts/{id}",status="2xx"} 3"#
        ),
        "{shown}"
    );
    assert!(
        shown.contains(r#"tideline_http_requests_total{method="GET",route="none",status="4xx"} 1"#),
        "{shown}"
    );
}

async fn send_owned(router: Router, path: &'static str) -> Response<Body> {
    send(&router, get_with(path, &[])).await
}

fn gathered(registry: &prometheus::Registry) -> String {
    prometheus::TextEncoder::new()
        .encode_to_string(&registry.gather())
        .unwrap()
}
