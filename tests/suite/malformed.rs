//! Malformed input: every refusal is clear, no process fails, the next request is served.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Method, Request};
use http_body_util::Full;
use portico_tests::objects::API_SERVICES;
use portico_tests::{Launch, Portico, WAIT_LIMIT, wait_until};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Checks that the process still serves requests.
async fn assert_serving(portico: &mut Portico) {
    assert!(portico.is_running(), "the process has ended");
    assert_eq!(portico.admin().get("/readyz").await.text(), "ok");
    assert!(!portico.log().contains("panicked"), "{}", portico.log());
}

/// Returns the status of the response to these bytes, after which the server must close the connection.
async fn last_status(portico: &Portico, bytes: &[u8]) -> u16 {
    let (mut reader, mut writer) = tokio::io::split(portico.anonymous().dial().await.unwrap());
    let mut answer = Vec::new();
    let exchange = async {
        // A server that refuses early does not read the rest: only the response matters, not errors of the connection.
        let (_, _) = tokio::join!(writer.write_all(bytes), reader.read_to_end(&mut answer));
    };
    let end = tokio::time::timeout(WAIT_LIMIT, exchange).await;
    let (excerpt, answer) =
        (String::from_utf8_lossy(&bytes[..bytes.len().min(60)]), String::from_utf8_lossy(&answer));
    assert!(end.is_ok(), "{excerpt:?}: the connection stays open after {answer:?}");
    let status = answer.strip_prefix("HTTP/1.1 ").or_else(|| answer.strip_prefix("HTTP/1.0 "));
    let status = status.and_then(|rest| rest.get(..3)?.parse().ok());
    status.unwrap_or_else(|| panic!("{excerpt:?}: no status in {answer:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_not_http_are_refused() {
    let mut portico = Portico::start().await;
    let host_and_token = "Host: a\r\nAuthorization: Bearer admin-token\r\n";
    let cases: [(&[u8], u16); 9] = [
        (b"\x00\x01\x02\x03\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"GET /version HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n", 400),
        (b"POST /version HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST /version HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", 400),
        (
            b"GET /%zz HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer admin-token\r\n\r\n",
            400,
        ),
        (b"GET /\xff\xfe HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 400),
        (b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ];
    for (bytes, status) in cases {
        assert_eq!(last_status(&portico, bytes).await, status, "{:?}", String::from_utf8_lossy(bytes));
    }
    let chunks = format!(
        "POST /api/v1/namespaces HTTP/1.1\r\n{host_and_token}Content-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n"
    );
    assert_eq!(last_status(&portico, chunks.as_bytes()).await, 400, "a chunk without a size");
    assert_serving(&mut portico).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_on_the_tls_port_is_closed() {
    let mut portico = Portico::start().await;
    for address in [portico.https(), portico.grpc()] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let mut rest = Vec::new();
        let end = tokio::time::timeout(WAIT_LIMIT, stream.read_to_end(&mut rest)).await;
        assert!(end.is_ok(), "the connection stays open");
    }
    assert_serving(&mut portico).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_are_closed() {
    let mut portico = Launch::new()
        .args(&["--tls-handshake-timeout", "300ms", "--request-header-timeout", "300ms"])
        .start()
        .await;
    let mut silent = TcpStream::connect(portico.https()).await.unwrap();
    let mut slow = portico.anonymous().dial().await.unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ").await.unwrap();
    let mut rest = Vec::new();
    let wait = Duration::from_secs(5);
    assert!(tokio::time::timeout(wait, silent.read_to_end(&mut rest)).await.is_ok(), "no handshake");
    assert!(tokio::time::timeout(wait, slow.read_to_end(&mut rest)).await.is_ok(), "half a head");
    assert_serving(&mut portico).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_beyond_the_limit_are_refused() {
    let mut portico = Portico::start().await;
    let large = format!("X-Large: {}\r\n", "a".repeat(1100 << 10));
    let many: String = (0..2000).map(|n| format!("X-{n}: a\r\n")).collect();
    for headers in [large, many] {
        let request = format!("GET /version HTTP/1.1\r\nHost: a\r\n{headers}\r\n");
        assert_eq!(last_status(&portico, request.as_bytes()).await, 431);
    }
    let long = format!("GET /version?{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(1100 << 10));
    assert_eq!(last_status(&portico, long.as_bytes()).await, 431);
    assert_serving(&mut portico).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_up_to_the_header_limit_are_unauthorized() {
    let mut portico = Portico::start().await;
    for bytes in [70_000, 300_000, 900_000] {
        let token = format!("Bearer {}", "a".repeat(bytes));
        let text = format!(
            "GET /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: {token}\r\n\r\n"
        );
        assert_eq!(last_status(&portico, text.as_bytes()).await, 401, "{bytes} bytes over HTTP/1.1");
        let request = Request::get("/api/v1/namespaces").header("authorization", token);
        let answer = portico.anonymous().fetch_over_http2(request.body(Full::default()).unwrap()).await;
        assert_eq!(answer.unwrap().status, 401, "{bytes} bytes over HTTP/2");
    }
    assert_serving(&mut portico).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_above_the_limit_is_413() {
    let mut portico = Portico::start().await;
    let admin = portico.admin();
    let limit = 3 << 20;
    let config_map = |bytes: usize| {
        let object = json!({"kind": "ConfigMap", "metadata": {"name": "big"}, "data": {"a": ""}}).to_string();
        let fill = bytes - object.len();
        object.replace("\"a\":\"\"", &format!("\"a\":\"{}\"", "x".repeat(fill)))
    };
    let path = "/api/v1/namespaces/default/configmaps";
    let body = config_map(limit + 1);
    assert_eq!(body.len(), limit + 1);
    let refused = admin.request(Method::POST, path, "application/json", body).await;
    refused.status_body(413, "RequestEntityTooLarge");
    // A body at the limit: its content is validated (a ConfigMap has at most 1 MiB).
    let checked = admin.request(Method::POST, path, "application/json", config_map(limit)).await;
    checked.status_body(422, "Invalid");
    // Without a Content-Length as well.
    let chunk = "x".repeat(1 << 16);
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin-token\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let chunks = format!("10000\r\n{chunk}\r\n").repeat(50);
    let answer = admin.send_raw(format!("{head}{chunks}0\r\n\r\n").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{}", answer.chars().take(300).collect::<String>());
    assert_serving(&mut portico).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_objects_have_clear_errors() {
    let mut portico = Portico::start().await;
    let admin = portico.admin();
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let deep_object =
        format!("{{\"kind\":\"APIService\",\"apiVersion\":\"apiregistration.k8s.io/v1\",\"spec\":{deep}}}");
    let deep_yaml = format!("{}a", "- ".repeat(90));
    let deep_flow = format!("{}a{}", "[".repeat(3000), "]".repeat(3000));
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";
    for (media_type, body, codes) in [
        ("application/json", "", &[400][..]),
        ("application/json", "{", &[400]),
        ("application/json", "[]", &[400]),
        ("application/json", "null", &[400, 422]),
        ("application/json", "\"text\"", &[400]),
        ("application/json", "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", &[400]),
        (
            "application/json",
            "{\"kind\":\"APIService\",\"apiVersion\":\"apiregistration.k8s.io/v1\",\"spec\":{\"group\":1}}",
            &[400],
        ),
        ("application/json", "{\"metadata\":{\"name\":\"\\ud800\"}}", &[400, 422]),
        ("application/json", deep_object.as_str(), &[400]),
        ("application/yaml", ": :\n - [", &[400]),
        ("application/yaml", bomb, &[400]),
        ("application/yaml", deep_yaml.as_str(), &[400]),
        ("application/yaml", deep_flow.as_str(), &[400]),
        ("application/vnd.kubernetes.protobuf", "k8s\0garbage", &[400, 415]),
        ("text/strange", "x", &[415]),
    ] {
        let answer = admin.request(Method::POST, API_SERVICES, media_type, body.to_owned()).await;
        let code = answer.status.as_u16();
        let excerpt: String = body.chars().take(60).collect();
        assert!(codes.contains(&code), "{media_type} {excerpt}: {code} {}", answer.text());
        assert_eq!(answer.json()["kind"], "Status", "{media_type} {excerpt}: {}", answer.text());
    }
    assert_serving(&mut portico).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_above_etcds_limit_is_refused_like_upstream() {
    const ETCD: usize = 1_572_864;
    let mut portico = Launch::new().arg(&format!("--max-object-bytes={ETCD}")).start().await;
    let admin = portico.admin();
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let versions =
        json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]);
    let spec = json!({"group": "larges.example.com", "scope": "Cluster", "names": {"plural": "larges", "kind": "Deep"},
        "versions": versions});
    let body = json!({"metadata": {"name": "larges.larges.example.com"}, "spec": spec});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(admin.post(definitions, &body).await.status, 201);
    let path = "/apis/larges.example.com/v1/larges";
    let object = |bytes: usize| {
        let head = r#"{"apiVersion":"larges.example.com/v1","kind":"Deep","metadata":{"name":"one"},"a":"#;
        format!("{head}\"{}\"}}", "x".repeat(bytes))
    };
    let small = async || admin.request(Method::POST, path, "application/json", object(1)).await.status == 201;
    wait_until("the definition is served", small).await;
    let one = format!("{path}/one");
    let patch = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes));
    let merge = "application/merge-patch+json";
    assert_eq!(admin.request(Method::PATCH, &one, merge, patch(ETCD - 4096)).await.status, 200);
    let refused = admin.request(Method::PATCH, &one, merge, patch(ETCD)).await;
    assert_eq!(refused.status, 500, "{}", refused.text());
    assert_eq!(refused.json()["message"], "etcdserver: request is too large");
    assert_serving(&mut portico).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_that_changes_the_kind_is_refused() {
    let mut portico = Portico::start().await;
    let admin = portico.admin();
    let created =
        admin.post("/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "a"}})).await;
    assert_eq!(created.status, 201, "{}", created.text());
    for (patch, error) in [
        (json!({"kind": "Pod"}), "converting (v1.Pod) to (core.ConfigMap): unknown conversion"),
        (
            json!({"kind": "Deployment", "apiVersion": "apps/v1"}),
            "converting (v1.Deployment) to (core.ConfigMap): unknown conversion",
        ),
        (json!({"kind": "Other"}), "no kind \"Other\" is registered for version \"v1\""),
        (json!({"apiVersion": "apps/v1"}), "no kind \"ConfigMap\" is registered for version \"apps/v1\""),
    ] {
        let refused = admin.merge("/api/v1/namespaces/default/configmaps/a", &patch).await;
        let message = refused.status_body(422, "Invalid")["message"].to_string();
        assert!(serde_json::from_str::<String>(&message).unwrap().ends_with(error), "{message}");
    }
    assert_serving(&mut portico).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_queries_are_refused_with_a_status() {
    let mut portico = Portico::start().await;
    let admin = portico.admin();
    for query in [
        "labelSelector=a%20in",
        "labelSelector=%3D%3D%3D",
        "fieldSelector=nothing",
        "fieldSelector=spec.x%3Dy",
        "limit=x",
        "continue=%3F",
        "resourceVersion=x",
        "watch=1&resourceVersion=x",
        "resourceVersionMatch=Exact",
        "timeoutSeconds=x",
        "sendInitialEvents=true",
    ] {
        let answer = admin.get(&format!("{API_SERVICES}?{query}")).await;
        let code = answer.status.as_u16();
        assert!([400, 422].contains(&code), "{query}: {code} {}", answer.text());
        assert_eq!(answer.json()["kind"], "Status", "{query}: {}", answer.text());
    }
    assert_serving(&mut portico).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_continue_tokens_are_refused() {
    let mut portico = Portico::start().await;
    let admin = portico.admin();
    let first = admin.get(&format!("{API_SERVICES}?limit=1")).await.json();
    let token = first["metadata"]["continue"].as_str().expect("the list has a second page").to_owned();
    let mut connection = admin.connect().await.unwrap();
    let inside = URL_SAFE_NO_PAD.decode(&token).unwrap();
    let mut tokens: Vec<String> = (0..token.len()).map(|at| token[..at].to_owned()).collect();
    for at in 0..inside.len() {
        for change in [1, 0x20, 0x80] {
            let mut bytes = inside.clone();
            bytes[at] ^= change;
            tokens.push(URL_SAFE_NO_PAD.encode(bytes));
        }
    }
    for (from, to) in [("\"rv\":", "\"rv\":9"), ("\"rv\":", "\"rv\":-"), ("v1.", "../"), ("v1.", "\\u0000")] {
        tokens.push(URL_SAFE_NO_PAD.encode(String::from_utf8_lossy(&inside).replace(from, to)));
    }
    for mutilated in tokens.iter().filter(|text| !text.is_empty()) {
        let answer = connection.get(&format!("{API_SERVICES}?limit=1&continue={mutilated}")).await.unwrap();
        // Some changes result in another valid token; none may cause a server error.
        assert!([200, 400, 410, 504].contains(&answer.status.as_u16()), "{mutilated}: {}", answer.text());
    }
    assert_serving(&mut portico).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_grpc_is_refused() {
    let mut portico = Portico::start().await;
    let control = portico_tests::http::Http::new(portico.grpc(), portico.ca());
    assert!(control.dial().await.is_err(), "the port accepts HTTP/2 only");
    let control = control.offering(b"h2");
    let garbage = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\ngarbage that is no frame at all";
    for (bytes, gets_goaway) in [(&garbage[..], true), (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false)] {
        let mut stream = control.dial().await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut read = Vec::new();
        let end = tokio::time::timeout(WAIT_LIMIT, stream.read_to_end(&mut read)).await;
        assert!(end.is_ok(), "the connection stays open");
        let refused = goaway(&read);
        assert_ne!(refused, Some(0), "{read:?}");
        assert!(refused.is_some() || !gets_goaway, "{read:?}");
    }
    assert_serving(&mut portico).await;
}

/// Returns the error code of the GOAWAY among these frames.
fn goaway(mut frames: &[u8]) -> Option<u32> {
    const GOAWAY: u8 = 7;
    while let [a, b, c, kind, _, _, _, _, _, payload @ ..] = frames {
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        if *kind == GOAWAY {
            return Some(u32::from_be_bytes(payload.get(4..8)?.try_into().ok()?));
        }
        frames = payload.get(length..)?;
    }
    None
}
