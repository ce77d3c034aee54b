//! The admin port's five answers.

use prometheus::{IntCounter, Registry};
use runtime::{Admin, Health};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

async fn get(admin: &Admin, path: &str) -> String {
    ask(admin, path).await.expect("the admin port answers")
}

async fn ask(admin: &Admin, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(admin.address()).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    let _read = stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::test]
async fn readiness_follows_the_conditions_and_liveness_does_not() {
    let health = Health::new();
    let registry = Registry::new();
    let counter = IntCounter::new("tideline_example_total", "An example.").unwrap();
    registry.register(Box::new(counter)).unwrap();
    let admin = Admin::open("127.0.0.1:0", "example", health.clone(), registry)
        .await
        .unwrap();

    assert!(get(&admin, "/startupz").await.starts_with("HTTP/1.1 503"));
    health.started();
    health.set("postgres", false, "start it with ./x up");
    let answer = get(&admin, "/readyz").await;
    assert!(
        answer.starts_with("HTTP/1.1 503") && answer.contains("[no] postgres: start it"),
        "{answer}"
    );
    assert!(get(&admin, "/livez").await.starts_with("HTTP/1.1 200"));
    health.set("postgres", true, "answered");
    assert!(get(&admin, "/readyz").await.starts_with("HTTP/1.1 200"));
    assert!(
        get(&admin, "/metrics")
            .await
            .contains("tideline_example_total 0")
    );
    assert!(get(&admin, "/version").await.contains("example 0.1.0"));
    admin.close().await;
}

#[tokio::test]
async fn a_busy_port_is_named() {
    let first = Admin::open("127.0.0.1:0", "a", Health::new(), Registry::new())
        .await
        .unwrap();
    let address = first.address().to_string();
    let error = Admin::open(&address, "b", Health::new(), Registry::new())
        .await
        .unwrap_err();
    assert!(error.to_string().contains(&address));
    first.close().await;
}
