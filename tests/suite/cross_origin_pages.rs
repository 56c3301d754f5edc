//! A browser sends its user's client certificate with the requests of any page. Pages of other origins, and pages that backends
//! serve through the facade, must not be able to use it.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use portico_proto::objects::{Call, DoRequest, Target};
use portico_tests::http::Http;
use portico_tests::pki::{Authority, CertPair};
use portico_tests::{Backend, Launch, Portico};
use prost::Message;

use crate::proxying::register;

const NAMESPACES: &str = "/api/v1/namespaces";
const CROSS: (&str, &str) = ("sec-fetch-site", "cross-site");
const NAVIGATE: (&str, &str) = ("sec-fetch-mode", "navigate");

/// Starts a process that authenticates clients by certificates; also returns an administrator's certificate.
async fn start(flags: &[&str]) -> (Portico, CertPair) {
    let (launch, folder) = Launch::new().prepare_folder();
    let authority = Authority::new("clients");
    let file = folder.join("clients.crt");
    std::fs::write(&file, &authority.pem).unwrap();
    let portico = launch.args(&["--client-ca-file", file.to_str().unwrap()]).args(flags).start().await;
    (portico, authority.client("browser", &["system:masters"]))
}

fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri(path);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(Full::default()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_origins_do_not_use_a_client_certificate() {
    let (portico, pair) = start(&["--cors-allowed-origins", r"^https://friend\.example$"]).await;
    let browser = portico.with_certificate(&pair);
    let own = format!("https://{}", portico.https());
    // The namespace `none` does not exist: permitted requests get 404.
    for (method, headers, code) in [
        ("GET", &[CROSS][..], 403),
        ("GET", &[CROSS, NAVIGATE, ("sec-fetch-dest", "iframe")], 403),
        ("GET", &[CROSS, NAVIGATE, ("sec-fetch-dest", "document")], 404),
        ("DELETE", &[("origin", "https://evil.example")], 403),
        ("DELETE", &[CROSS, ("origin", "https://friend.example")], 404),
        ("DELETE", &[("origin", own.as_str())], 404),
        ("DELETE", &[("sec-fetch-site", "same-origin")], 404),
        ("DELETE", &[], 404),
    ] {
        let path = format!("{NAMESPACES}/none");
        let answer = browser.fetch(request(method, &path, headers)).await.unwrap();
        assert_eq!(answer.status, code, "HTTP/1.1: {method} {headers:?}: {}", answer.text());
        let answer = browser.fetch_over_http2(request(method, &path, headers)).await.unwrap();
        assert_eq!(answer.status, code, "HTTP/2: {method} {headers:?}: {}", answer.text());
        let with_token = portico.admin().fetch(request(method, &path, headers)).await.unwrap();
        assert_eq!(with_token.status, 404, "a page may use a token that it has: {}", with_token.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_over_grpc_are_refused_without_grpcs_content_type() {
    let (portico, pair) = start(&[]).await;
    let browser = Http::with_certificate(portico.grpc(), portico.ca(), Some(&pair));
    let target = Target {
        version: "v1".into(),
        resource: "namespaces".into(),
        name: "default".into(),
        ..Target::default()
    };
    let call = DoRequest { call: Some(Call { target: Some(target), verb: "get".into(), ..Call::default() }) };
    let message = call.encode_to_vec();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let body = Bytes::from([&[0][..], &length, &message].concat());
    for (content_type, is_answered) in [
        ("text/plain", false),
        ("application/x-www-form-urlencoded", false),
        ("multipart/form-data; boundary=a", false),
        ("", false),
        ("application/grpc", true),
        ("application/grpc+proto", true),
    ] {
        let request = Request::post("/portico.objects.v1.Objects/Do").header("content-type", content_type);
        let answer = browser.fetch_over_http2(request.body(Full::new(body.clone())).unwrap()).await.unwrap();
        assert_eq!(!answer.body.is_empty(), is_answered, "{content_type}: {answer:?}");
        assert_eq!(answer.status, if is_answered { 200 } else { 415 }, "{content_type}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_backends_get_a_separate_origin() {
    let backend = Backend::start("pages.example.com").await;
    let (portico, pair) = start(&[]).await;
    register(&portico, &backend).await;
    let browser = portico.with_certificate(&pair);
    let service = "/api/v1/namespaces/default/services/https:backend:443/proxy";
    for (path, is_page) in [
        (format!("{service}/page.html"), true),
        (backend.path("/page.html"), true),
        (format!("{service}/flunders"), false),
        (backend.path("/flunders"), false),
    ] {
        let policy = async |headers| {
            let answer = browser.fetch(request("GET", &path, headers)).await.unwrap();
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            answer.header("content-security-policy").to_owned()
        };
        assert_eq!(policy(&[]).await.starts_with("sandbox"), is_page, "{path}");
        assert_eq!(policy(&[("x-forwarded-for", "127.0.0.1")]).await, "", "by kubectl proxy: {path}");
    }
}
