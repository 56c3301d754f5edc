//! The console: its files, permissions, data and pages.

mod actions;
mod browsing;
mod data;
mod history;
mod namespaces;
mod pages;
mod summary;

use http::{Method, Request};
use http_body_util::Full;
use portico_tests::http::{FullResponse, Http};
use portico_tests::{Launch, Portico};

/// Returns the folder of the assets, as the page names it.
async fn assets(client: &Http) -> String {
    let page = client.get("/console/").await.text();
    let (_, rest) = page.split_once("href=\"assets/").unwrap();
    rest.split('/').next().unwrap().to_owned()
}

async fn get_with(client: &Http, path: &str, headers: &[(&str, &str)]) -> FullResponse {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    client.fetch(request.body(Full::default()).unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_public_and_loads_only_its_own_files() {
    let portico = Portico::start().await;
    let page = portico.anonymous().get("/console/").await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert_eq!(portico.admin().get("/console/").await.body, page.body);
    let policy = page.header("content-security-policy");
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ] {
        assert!(policy.split("; ").any(|one| one == part), "{part} is not in {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cache-control", "no-cache"),
        ("vary", "accept-encoding"),
    ] {
        assert_eq!(page.header(name), value, "{name}");
    }
    let text = page.text();
    assert!(!text.contains("://") && !text.contains("<style") && !text.contains(" style="), "{text}");
    assert!(
        text.matches("<script").count() == text.matches("<script type=\"module\" src=\"assets/").count(),
        "{text}"
    );
    let moved = portico.anonymous().get("/console").await;
    assert_eq!((moved.status.as_u16(), moved.header("location")), (302, "/console/"));
}

#[tokio::test(flavor = "multi_thread")]
async fn assets_are_cacheable_and_compressed() {
    let portico = Portico::start().await;
    let anyone = portico.anonymous();
    let path = format!("/console/assets/{}/app.js", assets(&anyone).await);
    let plain = anyone.get(&path).await;
    assert_eq!((plain.status.as_u16(), plain.header("content-encoding")), (200, ""));
    assert_eq!(plain.header("content-type"), "text/javascript; charset=utf-8");
    assert_eq!(plain.header("cache-control"), "public, max-age=31536000, immutable");
    assert!(plain.header("content-security-policy").contains("default-src 'none'"));
    let gzip = get_with(&anyone, &path, &[("accept-encoding", "br, gzip")]).await;
    assert_eq!(gzip.header("content-encoding"), "gzip");
    let mut unpacked = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&gzip.body[..]), &mut unpacked).unwrap();
    assert_eq!(unpacked, plain.body);
    for path in ["/console/", &path] {
        let tag = anyone.get(path).await.header("etag").to_owned();
        let again = get_with(&anyone, path, &[("if-none-match", &tag)]).await;
        assert_eq!(
            (again.status.as_u16(), again.body.len(), again.header("etag")),
            (304, 0, &*tag),
            "{path}"
        );
        assert_eq!(get_with(&anyone, path, &[("if-none-match", "W/\"other\"")]).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_other_file_and_no_other_method_is_served() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let folder = assets(&admin).await;
    for path in [
        "/console/index.html".to_owned(),
        format!("/console/assets/{folder}/index.html"),
        format!("/console/assets/{folder}/"),
        format!("/console/assets/{folder}/../app.js"),
        format!("/console/assets/{folder}/..%2f..%2fCargo.toml"),
        format!("/console/assets/{folder}/%2e%2e/%2e%2e/etc/passwd"),
        "/console/assets/0000000000000000/app.js".to_owned(),
        "/console/assets/".to_owned(),
        "/console/assets/app.js".to_owned(),
        "/console/data/".to_owned(),
        "/console/data/none".to_owned(),
    ] {
        assert_eq!(admin.get(&path).await.status, 404, "{path}");
    }
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        let answer = admin.request(method.clone(), "/console/", "text/plain", "x").await;
        assert_eq!(answer.status, 405, "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_flag_disables_the_console() {
    let portico = Launch::new().arg("--console=false").start().await;
    let admin = portico.admin();
    for path in ["/console", "/console/", "/console/data/last-hour", "/console/data/audit"] {
        assert_eq!(admin.get(path).await.status, 404, "{path}");
    }
    let answer = admin.post("/grpc/portico.routes.v1.Routes/List", &serde_json::json!({})).await;
    assert_eq!(answer.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn authenticated_users_get_only_the_page() {
    let portico = Launch::new().arg("--anonymous-auth=false").start().await;
    assert_eq!(portico.anonymous().get("/console/").await.status, 401);
    let alice = portico.anonymous().as_user("alice");
    assert_eq!(alice.get("/console/").await.status, 200);
    for path in ["/console/data/last-hour", "/console/other", "/consoles", "/console/../metrics"] {
        assert_eq!(alice.get(path).await.status, 403, "{path}");
    }
    assert_eq!(alice.request(Method::POST, "/console/", "text/plain", "x").await.status, 403);
}
