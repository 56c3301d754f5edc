//! Tests of the catalog from the view of clients, with responses recorded from a real server.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex;
use portico_kit::offload::Offload;
use portico_kit::tasks::TaskSet;
use portico_machinery::GroupVersion;
use portico_machinery::accept::Encoding;
use portico_machinery::api_path::ApiPath;
use portico_machinery::digest::sha256_hex;
use portico_machinery::discovery::{ServedVersion, Source};
use portico_machinery::route::Route;

use crate::{
    Catalog, Change, DocumentError, DocumentFuture, DocumentSource, Reply, Request, ServedApis, Settings,
};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const BETA: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

#[derive(Default)]
struct TestDocuments {
    documents: Mutex<HashMap<String, Bytes>>,
    requests: AtomicUsize,
}

impl TestDocuments {
    fn put(&self, json: &str) -> String {
        let hash = sha256_hex(json.as_bytes());
        self.documents.lock().insert(hash.clone(), Bytes::copy_from_slice(json.as_bytes()));
        hash
    }
}

impl DocumentSource for TestDocuments {
    fn get<'a>(&'a self, hash: &'a str) -> DocumentFuture<'a> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let found = self.documents.lock().get(hash).cloned();
        let missing = || DocumentError { hash: hash.to_owned(), reason: "not here".into() };
        Box::pin(async move { found.ok_or_else(missing) })
    }
}

struct TestCatalog {
    catalog: Catalog,
    apis: Mutex<Arc<ServedApis>>,
    shelf: Arc<TestDocuments>,
}

fn test_catalog() -> TestCatalog {
    let shelf = Arc::new(TestDocuments::default());
    let settings = Settings { server_address: "10.0.0.1:6443".into(), version: "1.36".into() };
    let offload = Arc::new(Offload::with_threads("long", 1, &TaskSet::new()).unwrap());
    TestCatalog { catalog: Catalog::new(settings, shelf.clone(), offload), apis: Mutex::default(), shelf }
}

fn route(gv: &str, priorities: (i32, i32), remote: bool) -> Change {
    let group_version: GroupVersion = gv.parse().unwrap();
    let name = group_version.api_service_name();
    let route = Route {
        name: name.clone(),
        group_version,
        group_priority_minimum: priorities.0,
        version_priority: priorities.1,
        backend: remote.then(Arc::default),
        ..Route::default()
    };
    Change::Route { key: name, route: Some(Arc::new(route)) }
}

impl TestCatalog {
    fn apis(&self) -> Arc<ServedApis> {
        self.apis.lock().clone()
    }

    fn update(&self, changes: impl IntoIterator<Item = Change>) {
        let after = self.apis().with_changes(changes);
        *self.apis.lock() = after;
    }

    fn reset(&self, entries: impl IntoIterator<Item = Change>) {
        let after = self.apis().replace_with(entries);
        *self.apis.lock() = after;
    }

    fn serve(&self, gv: &str, source: Source, stale: bool) {
        let gv: GroupVersion = gv.parse().unwrap();
        let (group, version) = (gv.group.as_str(), gv.version.as_str());
        let discovery = format!(
            r#"{{"version":"{version}","resources":[{{"resource":"things","responseKind":{{"group":"","version":"","kind":"Thing"}},"scope":"Cluster","singularResource":"thing","verbs":["get"]}}],"freshness":"Current"}}"#
        );
        let list = format!(r#"{{"kind":"APIResourceList","groupVersion":"{gv}","resources":[]}}"#);
        let v3 = format!(r#"{{"openapi":"3.0.0","info":{{"title":"{gv}"}}}}"#);
        let v2 = format!(
            r##"{{"paths":{{"{}/":{{"get":{{"schema":{{"$ref":"#/definitions/Shared"}}}}}}}},"definitions":{{"Shared":{{"type":"object","title":"{group}"}}}}}}"##,
            gv.root()
        );
        let local = source != Source::Aggregator;
        let served = ServedVersion {
            group: group.into(),
            version: version.into(),
            source,
            stale,
            discovery: self.shelf.put(&discovery),
            resource_list: if local { self.shelf.put(&list) } else { String::new() },
            openapi_v3: self.shelf.put(&v3),
            openapi_v2: self.shelf.put(&v2),
            ..ServedVersion::default()
        };
        self.update([Change::Served { key: served.key(), served: Some(Arc::new(served)) }]);
    }

    async fn send(&self, method: Method, url: &str, headers: &[(header::HeaderName, &str)]) -> Option<Reply> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(name, HeaderValue::from_str(value).unwrap());
        }
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let apis = self.apis();
        let path = ApiPath::parse(path);
        self.catalog
            .respond(&apis, &Request { method: &method, path, query, headers: &map, client: None })
            .await
    }

    async fn get(&self, url: &str, accept: &str) -> Option<Reply> {
        self.send(Method::GET, url, &[(header::ACCEPT, accept)]).await
    }

    /// Returns the JSON of a discovery document.
    async fn json(&self, url: &str, accept: &str) -> String {
        match self.get(url, accept).await {
            Some(Reply::Document(document)) => {
                String::from_utf8(document.body.to_vec()).unwrap().trim_end().into()
            }
            other => panic!("{url}: {other:?}"),
        }
    }

    /// Returns the group names (and versions) of a discovery document, in order.
    async fn order(&self, accept: &str) -> String {
        let json = self.json("/apis", accept).await;
        let key = if accept == AGGREGATED { r#""metadata":{"name":""# } else { r#"{"name":""# };
        json.split(key).skip(1).map(|t| t.split('"').next().unwrap()).collect::<Vec<_>>().join(" ")
    }
}

fn ready(reply: Option<Reply>) -> http::Response<Bytes> {
    match reply {
        Some(Reply::Ready(response)) => response,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_empty_server_knows_its_own_group_only() {
    let w = test_catalog();
    let own = r#"{"name":"apiregistration.k8s.io","versions":[{"groupVersion":"apiregistration.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apiregistration.k8s.io/v1","version":"v1"}}"#;
    let want = format!(r#"{{"kind":"APIGroupList","apiVersion":"v1","groups":[{own}]}}"#);
    assert_eq!(w.json("/apis", "").await, want);
    let want = r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"10.0.0.1:6443"}]}"#;
    assert_eq!(w.json("/api", "application/json").await, want);
    assert_eq!(w.json("/api/", "*/*").await, want);
    let want =
        r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[]}"#;
    assert_eq!(w.json("/apis", AGGREGATED).await, want);
    assert!(w.get("/apis/nothing.example.org", "").await.is_none());
    assert!(w.get("/apis/nothing.example.org/v1", "").await.is_none());
}

#[tokio::test]
async fn groups_rank_by_their_highest_priority_and_the_own_group_above_all() {
    let w = test_catalog();
    w.update([
        route("apiregistration.k8s.io/v1", (18000, 1), false),
        route("v1", (18000, 1), false),
        route("apps/v1", (17800, 15), false),
        route("foo/v1", (20, 10), true),
        route("foo/v2", (1, 15), true),
        route("bar/v1", (11, 10), true),
        route("bar/v2", (11, 10), true),
        route("high/v1", (19500, 10), true),
    ]);
    for gv in ["apiregistration.k8s.io/v1", "v1", "apps/v1"] {
        w.serve(gv, Source::Builtin, false);
    }
    let want = "apiregistration.k8s.io high apps foo bar";
    assert_eq!(w.order("").await, want);
    assert_eq!(w.order(AGGREGATED).await, want);
    let foo = r#"{"kind":"APIGroup","apiVersion":"v1","name":"foo","versions":[{"groupVersion":"foo/v2","version":"v2"},{"groupVersion":"foo/v1","version":"v1"}],"preferredVersion":{"groupVersion":"foo/v2","version":"v2"}}"#;
    assert_eq!(w.json("/apis/foo", "").await, foo);
    assert_eq!(w.json("/apis/foo/", "application/*").await, foo);
    assert!(w.json("/apis/bar", "").await.contains(r#""preferredVersion":{"groupVersion":"bar/v2""#));
    // A removed version no longer contributes its priority.
    w.update([Change::Route { key: "v1.foo".into(), route: None }]);
    assert_eq!(w.order("").await, "apiregistration.k8s.io high apps bar foo");
}

#[tokio::test]
async fn tied_groups_order_by_service_name_in_one_document_and_by_group_in_the_other() {
    let w = test_catalog();
    w.update([route("zzz/v1", (10, 10), true), route("aaa/v1beta1", (10, 10), true)]);
    assert_eq!(w.order("").await, "apiregistration.k8s.io zzz aaa");
    assert_eq!(w.order(AGGREGATED).await, "aaa zzz");
}

#[tokio::test]
async fn the_aggregated_document_keeps_the_priority_that_a_version_came_with() {
    let w = test_catalog();
    let versions = |json: String| {
        json.split(r#"{"version":""#).skip(1).map(|t| t[..2].to_owned()).collect::<Vec<_>>().join(" ")
    };
    w.update([route("back/v1", (10, 10), true), route("back/v2", (10, 10), true)]);
    w.update([route("back/v1", (10, 50), true)]);
    assert!(w.json("/apis/back", "").await.contains(r#""versions":[{"groupVersion":"back/v1""#));
    assert_eq!(versions(w.json("/apis", AGGREGATED).await), "v2 v1");
    // A new snapshot of the stream keeps first priorities; a removed version loses them.
    w.reset([route("back/v1", (10, 50), true), route("back/v2", (10, 10), true)]);
    assert_eq!(versions(w.json("/apis", AGGREGATED).await), "v2 v1");
    w.update([Change::Route { key: "v1.back".into(), route: None }]);
    w.update([route("back/v1", (10, 50), true)]);
    assert_eq!(versions(w.json("/apis", AGGREGATED).await), "v1 v2");
}

#[tokio::test]
async fn the_address_can_be_set_once_it_is_bound() {
    let w = test_catalog();
    w.catalog.set_server_address("10.0.0.2:7000");
    assert!(w.json("/api", "").await.contains(r#""serverAddress":"10.0.0.2:7000""#));
}

#[tokio::test]
async fn clients_in_the_range_of_services_see_the_address_of_the_service() {
    let w = test_catalog();
    let rule = "10.0.0.0/16 10.0.0.1:443".parse().ok();
    let ruled = w.apis().with_address_rule(rule);
    *w.apis.lock() = ruled;
    let inside = header::HeaderName::from_static("x-forwarded-for");
    let rule = r#"{"clientCIDR":"10.0.0.0/16","serverAddress":"10.0.0.1:443"}"#;
    for (client, reported) in [("10.0.3.4", true), ("192.168.0.1", false)] {
        let reply = w.send(Method::GET, "/api", &[(inside.clone(), client)]).await;
        let Some(Reply::Document(document)) = reply else { panic!("{client}: no document") };
        assert_eq!(std::str::from_utf8(&document.body).unwrap().contains(rule), reported, "{client}");
    }
}

#[tokio::test]
async fn the_form_follows_the_accept_header() {
    let w = test_catalog();
    w.update([route("apps/v1", (1, 1), false)]);
    w.serve("apps/v1", Source::Builtin, false);
    let both = format!("{AGGREGATED},{BETA},application/json");
    let beta = format!("{BETA},application/json");
    let last = format!("application/json,{AGGREGATED}");
    let odd = format!("{},application/json", AGGREGATED.replace("v=v2", "v=v9"));
    let yaml = AGGREGATED.replace("json", "yaml");
    // Path, Accept, kind or code of the response.
    for (path, accept, want) in [
        ("/apis", both.as_str(), "APIGroupDiscoveryList"),
        ("/apis", &last, "APIGroupDiscoveryList"),
        ("/apis", &yaml, "APIGroupDiscoveryList"),
        ("/apis", &beta, "APIGroupList"),
        ("/apis", BETA, "406"),
        ("/apis", &odd, "APIGroupList"),
        ("/apis", "application/yaml", "APIGroupList"),
        ("/apis", "application/*", "APIGroupList"),
        ("/apis", "text/html", "406"),
        ("/apis/", AGGREGATED, "406"),
        ("/apis/", &both, "APIGroupList"),
        ("/apis/apps", AGGREGATED, "406"),
        ("/apis/apps", &both, "APIGroup"),
        ("/api", &odd, "APIVersions"),
        ("/api", AGGREGATED, "APIGroupDiscoveryList"),
        ("/api/", AGGREGATED, "APIGroupDiscoveryList"),
        ("/api", "application/*", "406"),
        ("/apis/apps/v1", "", "APIResourceList"),
        ("/apis/apps/v1/", "application/json", "APIResourceList"),
        ("/apis/apps/v1", "application/*", "406"),
    ] {
        let got = match w.get(path, accept).await.unwrap() {
            Reply::Document(document) => {
                let json = String::from_utf8(document.body.to_vec()).unwrap();
                json.split('"').nth(3).unwrap().to_owned()
            }
            Reply::Refused(status) => status.code.to_string(),
            Reply::Ready(response) => response.status().to_string(),
        };
        assert_eq!(got, want, "{path} {accept}");
    }
    let Some(Reply::Document(document)) = w.get("/apis", &yaml).await else { panic!() };
    assert_eq!(
        (document.encoding, document.headers[header::CONTENT_TYPE].to_str().unwrap()),
        (Encoding::Yaml, yaml.as_str())
    );
    let Some(Reply::Refused(status)) = w.get("/apis", BETA).await else { panic!() };
    assert_eq!(
        status.message,
        "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    );
}

#[tokio::test]
async fn methods_are_checked_where_upstream_routes_them() {
    let w = test_catalog();
    w.update([route("apps/v1", (1, 1), false)]);
    w.serve("apps/v1", Source::Builtin, false);
    for (path, refused) in [("/api", true), ("/apis/apps/v1", true), ("/apis", false), ("/apis/apps", false)]
    {
        let reply = w.send(Method::OPTIONS, path, &[]).await.unwrap();
        assert_eq!(matches!(reply, Reply::Refused(status) if status.code == 405), refused, "{path}");
    }
}

#[tokio::test]
async fn an_aggregated_document_has_a_tag_and_only_that_very_tag_is_304() {
    let w = test_catalog();
    w.update([route("apps/v1", (1, 1), false)]);
    w.serve("apps/v1", Source::Builtin, false);
    let Some(Reply::Document(first)) = w.get("/apis", AGGREGATED).await else { panic!() };
    let tag = first.headers[header::ETAG].to_str().unwrap().to_owned();
    assert!(tag.len() == 130 && tag.starts_with('"') && tag.to_uppercase() == tag, "{tag}");
    assert_eq!(first.headers[header::CACHE_CONTROL], "public");
    assert_eq!(first.headers[header::VARY], "Accept");
    for (sent, same) in [
        (tag.clone(), true),
        (format!("W/{tag}"), false),
        (format!("{tag}, \"x\""), false),
        ("*".to_owned(), false),
    ] {
        let headers = [(header::ACCEPT, AGGREGATED), (header::IF_NONE_MATCH, sent.as_str())];
        let reply = w.send(Method::GET, "/apis", &headers).await.unwrap();
        let got = matches!(&reply, Reply::Ready(r) if r.status() == StatusCode::NOT_MODIFIED && r.headers()[header::ETAG] == tag.as_str());
        assert_eq!(got, same, "{sent}");
    }
    // An equal update, or one without an effect on documents, causes no request.
    let asked = w.shelf.requests.load(Ordering::SeqCst);
    w.update([route("apps/v1", (1, 1), false), Change::Served { key: "unknown".into(), served: None }]);
    w.serve("apps/v1", Source::Builtin, false);
    w.json("/apis", AGGREGATED).await;
    assert_eq!(w.shelf.requests.load(Ordering::SeqCst), asked);
}

#[tokio::test]
async fn backends_appear_once_routed_fresh_stale_or_without_discovery() {
    let w = test_catalog();
    w.serve("back/v1", Source::Aggregator, false);
    w.serve("back/v2", Source::Aggregator, true);
    assert_eq!(w.order(AGGREGATED).await, "", "nothing leads there yet");
    w.update([
        route("back/v1", (1, 30), true),
        route("back/v2", (1, 20), true),
        route("back/v3", (1, 10), true),
    ]);
    let json = w.json("/apis", AGGREGATED).await;
    let versions: Vec<_> = json.split(r#"{"version":""#).skip(1).collect();
    let (first, second, third) = (versions[0], versions[1], versions[2]);
    assert!(
        first.starts_with("v1") && first.contains("things") && first.contains(r#""freshness":"Current""#)
    );
    assert!(
        second.starts_with("v2") && second.contains("things") && second.contains(r#""freshness":"Stale""#)
    );
    assert!(third.starts_with(r#"v3","freshness":"Stale""#), "{third}");
    assert!(w.get("/apis/back/v1", "").await.is_none(), "the backend itself answers");
    // A routed backend takes precedence over a built-in version until it is removed.
    w.serve("apps/v1", Source::Builtin, false);
    w.update([route("apps/v1", (1, 1), true)]);
    assert!(
        w.json("/apis", AGGREGATED)
            .await
            .contains(r#""name":"apps"},"versions":[{"version":"v1","freshness":"Stale""#)
    );
    w.update([route("apps/v1", (1, 1), false)]);
    assert!(w.get("/apis/apps/v1", "").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn discovery_with_a_missing_document_is_cached_briefly_and_then_rebuilt() {
    for (gv, path) in [("apps/v1", "/apis"), ("v1", "/api")] {
        let w = test_catalog();
        w.update([route(gv, (1, 1), false)]);
        w.serve(gv, Source::Builtin, false);
        let kept = std::mem::take(&mut *w.shelf.documents.lock());
        for _ in 0..3 {
            assert!(w.json(path, AGGREGATED).await.contains(r#""freshness":"Stale""#));
        }
        assert_eq!(w.shelf.requests.load(Ordering::Relaxed), 1, "{path}");
        *w.shelf.documents.lock() = kept;
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        assert!(w.json(path, AGGREGATED).await.contains(r#""freshness":"Current""#));
    }
}

#[tokio::test(start_paused = true)]
async fn a_merged_document_with_a_missing_part_is_cached_briefly_and_then_rebuilt() {
    let w = test_catalog();
    w.update([route("apps/v1", (1, 1), false)]);
    w.serve("apps/v1", Source::Builtin, false);
    let kept = std::mem::take(&mut *w.shelf.documents.lock());
    let (first, second) = tokio::join!(w.get("/openapi/v2", ""), w.get("/openapi/v2", ""));
    let asked = w.shelf.requests.load(Ordering::Relaxed);
    let etags = [ready(first), ready(second), ready(w.get("/openapi/v2", "").await)];
    assert!(etags.iter().all(|r| r.headers()[header::ETAG] == etags[0].headers()[header::ETAG]));
    assert_eq!(w.shelf.requests.load(Ordering::Relaxed), asked, "the third request merges nothing");
    assert_eq!(asked, 1, "nor does the second");
    *w.shelf.documents.lock() = kept;
    tokio::time::advance(std::time::Duration::from_secs(11)).await;
    let whole = ready(w.get("/openapi/v2", "").await);
    assert_ne!(whole.headers()[header::ETAG], etags[0].headers()[header::ETAG]);
}

#[tokio::test]
async fn v3_documents_have_an_immutable_address() {
    let w = test_catalog();
    w.update([route("apps/v1", (1, 1), false), route("back/v1", (1, 1), true)]);
    w.serve("apps/v1", Source::Builtin, false);
    w.serve("back/v1", Source::Aggregator, false);
    w.serve("v1", Source::Builtin, false);
    let index = ready(w.get("/openapi/v3", "text/html").await);
    let index = String::from_utf8(index.body().to_vec()).unwrap();
    for key in ["api", "apis", "apis/apps", "version", "api/v1", "apis/apps/v1", "apis/back/v1"] {
        let at = format!(r#""{key}":{{"serverRelativeURL":""#);
        let address = index.split(&at).nth(1).unwrap_or_else(|| panic!("{key}")).split('"').next().unwrap();
        let response = ready(w.get(address, "application/json").await);
        assert_eq!(response.status(), StatusCode::OK, "{address}");
        assert_eq!(response.headers()[header::CACHE_CONTROL], "public, immutable");
        assert!(response.headers().contains_key(header::EXPIRES));
        let tag = address.split_once("hash=").unwrap().1;
        assert_eq!(response.headers()[header::ETAG], format!("\"{tag}\""));
        let stale = ready(w.get(&format!("/openapi/v3/{key}?hash=0000"), "").await);
        assert_eq!(stale.headers()[header::CONTENT_TYPE], "application/json");
        assert_eq!(stale.headers()[header::ETAG], format!("\"{tag}\""));
        if key == "apis/back/v1" {
            // The document of a backend is served, but not cacheable under another hash than its own.
            assert_eq!(stale.status(), StatusCode::OK);
            assert!(!stale.headers().contains_key(header::CACHE_CONTROL));
        } else {
            assert_eq!(stale.status(), StatusCode::MOVED_PERMANENTLY);
            assert_eq!(stale.headers()[header::LOCATION], address);
        }
        let plain = ready(w.get(&format!("/openapi/v3/{key}?hash="), "").await);
        assert!(!plain.headers().contains_key(header::CACHE_CONTROL));
        for sent in ["*", &format!("W/\"{tag}\"")] {
            let reply = w.send(Method::GET, address, &[(header::IF_NONE_MATCH, sent)]).await;
            assert_eq!(ready(reply).status(), StatusCode::NOT_MODIFIED);
        }
    }
    for (path, accept, code) in [
        ("/openapi/v3/apis/nothing/v1", "", 404),
        ("/openapi/v3/apis/apps/v1/", "", 404),
        ("/openapi/v3/apis/back", "", 404),
        ("/openapi/v3/", "", 404),
        ("/openapi/v3/apis/apps/v1", "application/yaml", 406),
    ] {
        let response = ready(w.get(path, accept).await);
        assert_eq!((response.status().as_u16(), response.body().len()), (code, 0), "{path}");
    }
    assert!(w.get("/openapi/v2/", "").await.is_none());
}

#[tokio::test]
async fn documents_are_compressed_if_accepted() {
    let w = test_catalog();
    w.serve("apps/v1", Source::Builtin, false);
    for url in ["/openapi/v3/apis/apps/v1", "/openapi/v3/version", "/openapi/v2"] {
        let packed = ready(w.send(Method::GET, url, &[(header::ACCEPT_ENCODING, "deflate, gzip")]).await);
        assert_eq!(packed.headers()[header::CONTENT_ENCODING], "gzip");
        let mut text = String::new();
        flate2::read::GzDecoder::new(&packed.body()[..]).read_to_string(&mut text).unwrap();
        let plain = ready(w.send(Method::GET, url, &[(header::ACCEPT_ENCODING, "gzip;q=0")]).await);
        assert!(!plain.headers().contains_key(header::CONTENT_ENCODING));
        assert_eq!(plain.body(), &text);
        assert_eq!(plain.headers()[header::ETAG], packed.headers()[header::ETAG]);
    }
}

#[tokio::test]
async fn the_v2_document_merges_all_parts() {
    let w = test_catalog();
    w.update([route("apps/v1", (1, 1), false), route("back/v1", (5, 1), true)]);
    w.serve("apps/v1", Source::Builtin, false);
    w.serve("back/v1", Source::Aggregator, false);
    let response = ready(w.get("/openapi/v2", "application/*").await);
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
    let text = String::from_utf8(response.body().to_vec()).unwrap();
    assert!(
        text.starts_with(
            r#"{"swagger":"2.0","info":{"title":"Kubernetes","version":"1.36"},"paths":{"/.well-known/openid-configuration/":"#
        )
    );
    for piece in [
        r##""/apis/apps/v1/":{"get":{"schema":{"$ref":"#/definitions/Shared"}}}"##,
        r##""/apis/back/v1/":{"get":{"schema":{"$ref":"#/definitions/Shared_v2"}}}"##,
        r#""Shared":{"type":"object","title":"apps"}"#,
        r#""Shared_v2":{"type":"object","title":"back"}"#,
        r#""/apis/apps/":{"get":"#,
        r#""securityDefinitions":{"BearerToken":{"#,
    ] {
        assert!(text.contains(piece), "{piece}\n{text}");
    }
    let refused = ready(w.get("/openapi/v2", "text/html").await);
    assert_eq!((refused.status(), refused.body().len()), (StatusCode::NOT_ACCEPTABLE, 0));
    let again = w.send(Method::POST, "/openapi/v2", &[(header::IF_NONE_MATCH, "*")]).await;
    assert_eq!(ready(again).status(), StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn the_v2_document_is_protobuf_if_accepted() {
    const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    const OLD: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let w = test_catalog();
    w.serve("apps/v1", Source::Builtin, false);
    let json = ready(w.get("/openapi/v2", "").await);
    for (accept, want) in [
        (PROTOBUF, PROTOBUF),
        (OLD, PROTOBUF),
        (&format!("application/json;q=0.5,{OLD}"), PROTOBUF),
        (&format!("text/html,{PROTOBUF}"), PROTOBUF),
        (&format!("application/json,{PROTOBUF}"), "application/json"),
        (&format!("{PROTOBUF};q=0.5,*/*;q=0.8"), "application/json"),
    ] {
        let response = ready(w.get("/openapi/v2", accept).await);
        assert_eq!(response.headers()[header::CONTENT_TYPE], want, "{accept}");
        assert_eq!(response.headers()[header::ETAG], json.headers()[header::ETAG]);
        assert!(response.headers().get_all(header::VARY).iter().any(|v| v == "Accept"));
        // The first field is the version of the specification.
        assert_eq!(response.body().starts_with(b"\x0a\x032.0"), want == PROTOBUF, "{accept}");
    }
    let plain = ready(w.get("/openapi/v2", PROTOBUF).await);
    let packed =
        w.send(Method::GET, "/openapi/v2", &[(header::ACCEPT, OLD), (header::ACCEPT_ENCODING, "gzip")]).await;
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&ready(packed).body()[..]).read_to_end(&mut unpacked).unwrap();
    assert_eq!(plain.body(), &unpacked);
    let etag = json.headers()[header::ETAG].to_str().unwrap();
    let again =
        w.send(Method::GET, "/openapi/v2", &[(header::ACCEPT, OLD), (header::IF_NONE_MATCH, etag)]).await;
    let again = ready(again);
    assert_eq!((again.status(), again.body().len()), (StatusCode::NOT_MODIFIED, 0));
    assert!(again.headers().get_all(header::VARY).iter().any(|v| v == "Accept"));
}

#[tokio::test]
async fn a_new_snapshot_of_the_stream_replaces_everything() {
    let w = test_catalog();
    w.update([route("old/v1", (1, 1), true)]);
    assert_eq!(w.order("").await, "apiregistration.k8s.io old");
    w.reset([route("new/v1", (1, 1), true)]);
    assert_eq!(w.order("").await, "apiregistration.k8s.io new");
    assert!(w.apis().documents().is_empty());
}
