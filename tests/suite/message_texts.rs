//! Messages for users and operators in case of errors: sentences of Portico, without terms of libraries or of Rust.

use std::path::Path;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use portico_tests::backend::Backend;
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Launch, Portico, wait_until};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

/// Texts that only libraries or Rust's formatting write.
const MARKS: [&str; 24] = [
    "os error",
    "Some(",
    "None)",
    "Err(",
    "Error(",
    "Error {",
    "Custom {",
    "Os {",
    "Kind::",
    "kind:",
    "hyper",
    "tonic",
    "rustls",
    "webpki",
    "sqlx",
    "serde",
    "h2::",
    "http2 error",
    "transport error",
    "returned from database",
    "EOF while parsing",
    "invalid type",
    "close_notify",
    "docs.rs",
];

#[track_caller]
fn assert_plain(text: &str) {
    let found = MARKS.iter().find(|mark| text.contains(**mark));
    assert!(found.is_none(), "{found:?} in {text}");
}

/// Returns a filter for all logs of Portico's own crates, without those of libraries.
fn log_filter() -> String {
    let crates = ["auth", "controllers", "facade", "kit", "proxy", "registry", "server", "store"];
    crates.iter().fold("info".to_owned(), |all, name| format!("{all},portico_{name}=debug"))
}

async fn available(portico: &Portico, backend: &Backend) -> Value {
    let service = portico.admin().get(&format!("{SERVICES}/{}", backend.name())).await.json();
    service["status"]["conditions"][0].clone()
}

/// Sends refused requests and invalid connections, and uses unreachable backends; returns the messages.
async fn provoke(portico: &Portico) -> Vec<String> {
    let http = portico.admin();
    let mut texts = Vec::new();
    let mut tcp = tokio::net::TcpStream::connect(portico.https()).await.unwrap();
    tcp.write_all(b"this is no TLS\r\n\r\n").await.unwrap();
    drop(tcp);
    drop(http.dial().await.unwrap());
    texts.push(http.send_raw(b"this is no HTTP\r\n\r\n").await);
    texts.push(http.with_token("a.b.c").get("/api").await.text());
    let bodies: [(&str, &[u8]); 7] = [
        ("application/json", b"{"),
        ("application/json", br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":7}"#),
        ("application/json", b"\xff"),
        ("application/yaml", b"a: [\n b"),
        ("application/vnd.kubernetes.protobuf", b"k8s\0\xff\xff"),
        ("application/vnd.kubernetes.protobuf", b"none"),
        ("text/plain", b"text"),
    ];
    for (media, body) in bodies {
        let request = Request::builder().method(Method::POST).uri(CONFIG_MAPS).header("content-type", media);
        let request = request.body(Full::new(Bytes::from_static(body))).unwrap();
        texts.push(http.fetch(request).await.unwrap().text());
    }
    texts
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_and_logs_contain_no_terms_of_libraries() {
    let mut portico = Launch::new().args(&["--v", &log_filter()]).start().await;
    let (mut stopped, untrusted) =
        (Backend::start("gone.example").await, Backend::start("wrong.example").await);
    stopped.stop().await;
    let mut other = untrusted.api_service();
    other["spec"]["caBundle"] = stopped.api_service()["spec"]["caBundle"].clone();
    for service in [stopped.api_service(), other] {
        assert_eq!(portico.admin().post(SERVICES, &service).await.status.as_u16(), 201);
    }
    let mut texts = provoke(&portico).await;
    for backend in [&stopped, &untrusted] {
        wait_until("the condition reports the failure", || async {
            available(&portico, backend).await["status"] == "False"
        })
        .await;
        texts.push(available(&portico, backend).await.to_string());
        texts.push(portico.admin().get(&backend.path("/things")).await.text());
    }
    assert!(portico.stop().await.success());
    texts.iter().for_each(|text| assert_plain(text));
    let log = portico.log();
    assert!(log.lines().count() > 50, "{log}");
    log.lines().for_each(assert_plain);
}

fn written(folder: &Path, name: &str, content: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_settings_are_refused_without_terms_of_libraries() {
    let folder = tempfile::tempdir().unwrap();
    let garbage = written(folder.path(), "garbage", b"a: [\xff");
    let other = written(folder.path(), "other", b"a: 5");
    for file in ["/nowhere/at-all", "/", &garbage, &other] {
        for flag in [
            "--config",
            "--tls-cert-file",
            "--client-ca-file",
            "--token-auth-file",
            "--egress-selector-config-file",
        ] {
            let mut arguments = vec![flag, file];
            if flag == "--tls-cert-file" {
                arguments.extend(["--tls-private-key-file", file]);
            }
            let (code, out, err) = Launch::new().args(&arguments).run().await;
            assert_ne!(code, Some(0), "{flag} {file}");
            assert!(!err.is_empty() || !out.is_empty(), "{flag} {file}: no output");
            out.lines().chain(err.lines()).for_each(assert_plain);
        }
    }
}
