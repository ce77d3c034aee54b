//! What the admin port says about a running service.

use reqwest::Method;

use crate::app::App;

#[tokio::test]
async fn the_admin_port_tells_readiness_and_metrics() {
    let app = App::start().await;
    let (status, text) = app.admin("/readyz").await;
    assert_eq!(
        (status, text.contains("[ok] postgres")),
        (200, true),
        "{text}"
    );
    assert_eq!(app.admin("/startupz").await.0, 200);
    let _missing = app
        .of("7", Method::DELETE, "/v1/posts/12")
        .send()
        .await
        .unwrap();
    let (_, metrics) = app.admin("/metrics").await;
    let counted =
        r#"tideline_http_requests_total{method="DELETE",route="/v1/posts/{id}",status="4xx"} 1"#;
    assert!(metrics.contains(counted), "{metrics}");
    assert!(!metrics.contains("/v1/posts/12"), "{metrics}");
    app.stop().await;
}
