//! Headers that name a user are read as UTF-8, or the request is refused. None is ignored: the request would have another user.

use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::Full;
use portico_proto::objects::{Call, DoRequest, Target};
use portico_tests::http::{FullResponse, Http};
use portico_tests::pki::Authority;
use portico_tests::{Backend, Launch, Portico, wait_until};
use serde_json::{Value, json};
use tonic::Code;

use crate::audit::{METADATA, events, with_audit_log};
use crate::proxying::register;

const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// Bytes that are not UTF-8: a letter of Latin-1, an invalid byte, and an incomplete character.
const NOT_UTF8: [&[u8]; 3] = [b"j\xfcrgen", b"\xff", b"a\xe2\x82"];

type Header<'a> = (&'a str, &'a [u8]);

async fn send(
    http: &Http,
    request: http::request::Builder,
    headers: &[Header<'_>],
    body: Bytes,
) -> FullResponse {
    let mut request = request.body(Full::new(body)).unwrap();
    for (name, value) in headers {
        let name: http::HeaderName = name.parse().unwrap();
        request.headers_mut().append(name, HeaderValue::from_bytes(value).unwrap());
    }
    http.fetch(request).await.unwrap()
}

async fn identity(http: &Http, headers: &[Header<'_>]) -> FullResponse {
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let request = Request::post(WHO).header("content-type", "application/json");
    send(http, request, headers, review.to_string().into()).await
}

fn user(answer: &FullResponse) -> Value {
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["status"]["userInfo"].clone()
}

/// Checks each header with each kind of value: `read` names the field of the user that the header sets.
async fn check_headers(http: &Http, prefix: &str, user_header: &str, refusal: u16) {
    let rows = [("user", "/username"), ("group", "/groups/0"), ("uid", "/uid"), ("extra-a", "/extra/a/0")];
    for (kind, read) in rows {
        let name = format!("{prefix}{kind}");
        let with = |value| match kind {
            "user" => vec![(name.as_str(), value)],
            _ => vec![(user_header, &b"zoe"[..]), (name.as_str(), value)],
        };
        for text in ["jürgen", "\u{7530}\u{4e2d}", "a\tb", "plain"] {
            let user = user(&identity(http, &with(text.as_bytes())).await);
            assert_eq!(user.pointer(read), Some(&json!(text)), "{name}: {user}");
        }
        for value in NOT_UTF8 {
            let answer = identity(http, &with(value)).await;
            assert_eq!(answer.status, refusal, "{name}: {value:?}: {}", answer.text());
        }
        let raw = format!(
            "POST {WHO} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n{name}: a\x01b\r\n\r\n"
        );
        let answer = http.send_raw(raw.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{name}: control characters: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn impersonation_headers_apply_or_refuse_the_request() {
    let (launch, log) = with_audit_log(Launch::new(), METADATA);
    let portico = launch.start().await;
    let admin = portico.admin();
    check_headers(&admin, "impersonate-", "impersonate-user", 400).await;
    let answer = identity(&admin, &[("impersonate-user", b"zoe"), ("impersonate-extra-%ff", b"a")]).await;
    assert_eq!(answer.status, 400, "{}", answer.text());

    // The permissions of the impersonated user apply, and the audit event names that user.
    let secrets = "/api/v1/secrets";
    let jürgen = ("impersonate-user", "jürgen".as_bytes());
    let answer = send(&admin, Request::get(secrets), &[jürgen], Bytes::new()).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    let event = events(&log, answer.header("audit-id"), 2).await.pop().unwrap();
    assert_eq!(event["user"]["username"], "admin");
    assert_eq!(event["impersonatedUser"]["username"], "jürgen");

    // The right to impersonate applies to this name.
    let role = json!({"metadata": {"name": "be-juergen"}, "rules": [
        {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["jürgen"]}]});
    assert_eq!(admin.post(ROLES, &role).await.status, 201);
    let binding = json!({"metadata": {"name": "bob"}, "subjects": [{"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "ClusterRole", "name": "be-juergen", "apiGroup": "rbac.authorization.k8s.io"}});
    assert_eq!(admin.post(BINDINGS, &binding).await.status, 201);
    let bob = admin.as_user("bob");
    wait_until("bob may impersonate jürgen", async || identity(&bob, &[jürgen]).await.status == 201).await;
    for other in ["jörg", "jurgen", "jürgen2"] {
        let answer = identity(&bob, &[("impersonate-user", other.as_bytes())]).await;
        assert_eq!(answer.status, 403, "{other}: {}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn front_proxy_headers_apply_or_refuse_the_request() {
    let (launch, folder) = Launch::new().prepare_folder();
    let authority = Authority::new("proxies-and-clients");
    let file = folder.join("ca.crt");
    std::fs::write(&file, &authority.pem).unwrap();
    let file = file.to_str().unwrap();
    // The proxy's certificate is that of a client as well: a request must not continue as the proxy's own user.
    let flags = ["--requestheader-client-ca-file", file, "--client-ca-file", file];
    let names =
        ["user", "uid", "group"].map(|kind| format!("--requestheader-{kind}-headers=X-Remote-{kind}"));
    let names = names.map(|flag| flag.replace("-user-", "-username-"));
    let launch = launch.args(&flags).args(&names.each_ref().map(String::as_str));
    let portico = launch.arg("--requestheader-extra-headers-prefix=X-Remote-Extra-").start().await;
    let proxy = portico.with_certificate(&authority.client("proxy", &["system:masters"]));
    check_headers(&proxy, "x-remote-", "x-remote-user", 401).await;
    assert_eq!(
        user(&identity(&proxy, &[]).await)["username"],
        "proxy",
        "without headers the proxy is an ordinary client"
    );
    let groups = [("x-remote-user", &b"zoe"[..]), ("x-remote-group", b""), ("x-remote-group", b"dev")];
    assert_eq!(user(&identity(&proxy, &groups).await)["groups"], json!(["dev", "system:authenticated"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn non_ascii_tokens_are_invalid_and_names_reach_backends_unchanged() {
    let portico = Portico::start().await;
    let anyone = portico.anonymous();
    for value in ["Bearer ädmin".as_bytes(), b"Bearer \xff", b"Bearer admin-token\xff"] {
        let answer = send(&anyone, Request::get("/version"), &[("authorization", value)], Bytes::new()).await;
        assert_eq!(answer.status, 401, "{value:?}: {}", answer.text());
    }
    for protocol in [
        &b"base64url.bearer.authorization.k8s.io.\xff, v4"[..],
        b"base64url.bearer.authorization.k8s.io._w, v4",
    ] {
        let upgrade = Request::get("/version").header("connection", "upgrade").header("upgrade", "websocket");
        let headers = [("sec-websocket-protocol", protocol)];
        assert_eq!(send(&anyone, upgrade, &headers, Bytes::new()).await.status, 401, "{protocol:?}");
    }

    let backend = Backend::start("names.example.com").await;
    register(&portico, &backend).await;
    let headers = [
        ("impersonate-user", "jürgen".as_bytes()),
        ("impersonate-group", b"system:masters"),
        ("impersonate-group", "größe".as_bytes()),
        ("impersonate-extra-a%c3%bc", "\u{7530}".as_bytes()),
        ("x-forwarded-for", "ä".as_bytes()),
    ];
    let request = Request::get(backend.path("/flunders"));
    assert_eq!(send(&portico.admin(), request, &headers, Bytes::new()).await.status, 200);
    let seen = backend.last_request();
    assert_eq!(seen.all("x-remote-user"), ["jürgen"]);
    assert_eq!(seen.all("x-remote-group"), ["system:masters", "größe", "system:authenticated"]);
    assert_eq!(seen.all("x-remote-extra-a%c3%bc"), ["\u{7530}"]);
    assert_eq!(seen.all("x-forwarded-for"), ["ä, 127.0.0.1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_over_grpc_do_not_act_as_another_user() {
    let portico = Portico::start().await;
    let client = portico.control_as("admin");
    let call = || {
        let target = Target {
            version: "v1".into(),
            resource: "namespaces".into(),
            name: "default".into(),
            ..Target::default()
        };
        let call = Call { target: Some(target), verb: "get".into(), ..Call::default() };
        tonic::Request::new(DoRequest { call: Some(call) })
    };
    assert_eq!(client.objects().r#do(call()).await.unwrap().into_inner().code, 200);
    for name in
        ["impersonate-user", "impersonate-group", "impersonate-extra-a", "x-remote-user", "x-remote-group"]
    {
        let mut request = call();
        request.metadata_mut().insert(name, "zoe".parse().unwrap());
        let refusal = client.objects().r#do(request).await.unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidArgument, "{name}: {refusal:?}");
        assert!(refusal.message().starts_with(name), "{refusal:?}");
    }
}
