//! Health, version, index, metrics, discovery and OpenAPI.

use http::{Method, Request};
use http_body_util::Full;
use portico_tests::objects::{API_SERVICES, local_api_service};
use portico_tests::{Backend, Launch, Portico, eventually, pki};
use serde_json::{Value, json};

use crate::availability::trigger_probe;
use crate::proxying::routed;

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

#[tokio::test(flavor = "multi_thread")]
async fn health_checks_are_public_and_named() {
    let (launch, folder) = Launch::new().prepare_folder();
    let pair = pki::Authority::new("front-proxy-ca").client("front-proxy", &[]);
    let (cert, key) = (folder.join("proxy.crt"), folder.join("proxy.key"));
    std::fs::write(&cert, pair.cert).unwrap();
    std::fs::write(&key, pair.key).unwrap();
    // Enables the reload hook, which exists only if there are files to reload.
    let files = [
        "--proxy-client-cert-file",
        cert.to_str().unwrap(),
        "--proxy-client-key-file",
        key.to_str().unwrap(),
    ];
    let portico = launch.args(&files).start().await;
    let anyone = portico.anonymous();
    for path in ["/healthz", "/livez", "/readyz"] {
        let answer = anyone.get(path).await;
        assert_eq!((answer.status.as_u16(), answer.text().as_str()), (200, "ok"), "{path}");
    }
    let admin = portico.admin();
    let verbose = admin.get("/readyz?verbose").await.text();
    for check in [
        "ping",
        "etcd",
        "etcd-readiness",
        "informer-sync",
        "shutdown",
        "autoregister-completion",
        "poststarthook/apiservice-registration-controller",
        "poststarthook/apiservice-status-remote-available-controller",
        "poststarthook/apiservice-status-local-available-controller",
        "poststarthook/apiservice-discovery-controller",
        "poststarthook/kube-apiserver-autoregistration",
        "poststarthook/aggregator-reload-proxy-client-cert",
        "poststarthook/start-kube-aggregator-informers",
    ] {
        assert!(verbose.contains(&format!("[+]{check} ok\n")), "{check} is not in:\n{verbose}");
        let own = admin.get(&format!("/readyz/{check}")).await;
        assert_eq!((own.status.as_u16(), own.text().as_str()), (200, "ok"), "{check}");
    }
    assert!(verbose.ends_with("readyz check passed\n"), "{verbose}");
    let excluded = admin.get("/readyz?verbose&exclude=etcd&exclude=nothing").await.text();
    assert!(excluded.contains("[+]etcd excluded: ok"), "{excluded}");
    assert!(excluded.contains("nothing"), "an unknown exclude is reported: {excluded}");
    assert_eq!(anyone.get("/readyz/ping").await.status, 403, "single checks require permission");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_is_public_and_the_index_lists_all_paths() {
    let portico = Portico::start().await;
    let version = portico.anonymous().get("/version").await.json();
    assert_eq!(version["major"], "1", "{version}");
    assert!(version["gitVersion"].as_str().unwrap().starts_with('v'), "{version}");
    let index = portico.admin().get("/").await.json();
    let paths: Vec<&str> = index["paths"].as_array().unwrap().iter().map(|p| p.as_str().unwrap()).collect();
    for path in [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apiregistration.k8s.io/v1",
        "/healthz",
        "/metrics",
        "/openapi/v3",
        "/version",
    ] {
        assert!(paths.contains(&path), "{path} is not in {paths:?}");
    }
    portico.admin().get("/nowhere").await;
    assert_eq!(portico.admin().get("/nowhere").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_upstreams_names_and_need_permission() {
    let portico = Portico::start().await;
    portico.admin().get(API_SERVICES).await;
    let text = portico.admin().get("/metrics").await.text();
    for name in [
        "apiserver_request_total",
        "apiserver_request_duration_seconds",
        "aggregator_unavailable_apiservice",
        "process_resident_memory_bytes",
    ] {
        assert!(text.contains(&format!("# TYPE {name}")), "{name} is missing");
    }
    portico.anonymous().as_user("alice").get("/metrics").await.status_body(403, "Forbidden");
    let control = portico.control().admin().metrics(portico_proto::admin::MetricsRequest {}).await.unwrap();
    assert!(control.into_inner().text.contains("# TYPE"));
}

fn group_names(list: &Value) -> Vec<String> {
    list["groups"].as_array().unwrap().iter().map(|g| g["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_lists_local_groups_and_backends_in_both_forms() {
    let backend = Backend::start("discovered.example.com").await;
    let portico = routed(&backend).await;
    let admin = portico.admin();
    let names = group_names(&admin.get("/apis").await.json());
    assert_eq!(names[0], "apiregistration.k8s.io");
    assert!(names.contains(&"discovered.example.com".to_owned()), "{names:?}");
    let group = admin.get("/apis/discovered.example.com").await.json();
    assert_eq!(group["preferredVersion"]["groupVersion"], "discovered.example.com/v1");
    assert_eq!(admin.get(&backend.path("")).await.json()["resources"][0]["name"], "flunders");
    let core = admin.get("/api/v1").await.json();
    assert!(core["resources"].as_array().unwrap().iter().any(|r| r["name"] == "configmaps"));

    let document = eventually("the backend is in the aggregated document", || async {
        let answer = admin.get_as("/apis", AGGREGATED).await;
        let items = answer.json()["items"].as_array().cloned().unwrap_or_default();
        let item = items.into_iter().find(|item| item["metadata"]["name"] == "discovered.example.com");
        match item {
            Some(item) if item["versions"][0]["freshness"] == "Current" => Ok((answer, item)),
            other => Err(other),
        }
    })
    .await;
    let (answer, item) = document;
    assert_eq!(
        answer.header("content-type"),
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    assert_eq!(item["versions"][0]["resources"][0]["resource"], "flunders");
    assert_eq!(item["versions"][0]["resources"][0]["shortNames"], json!(["fl"]));
    let etag = answer.header("etag").to_owned();
    assert!(!etag.is_empty());
    let request = Request::get("/apis").header("accept", AGGREGATED).header("if-none-match", &etag);
    let again = admin.fetch(request.body(Full::default()).unwrap()).await.unwrap();
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    assert_eq!(again.header("etag"), etag);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_discovery_of_a_dead_backend_is_marked_stale() {
    let mut backend = Backend::start("stale.example.com").await;
    let portico = routed(&backend).await;
    let admin = portico.admin();
    let freshness = |wanted: &'static str| {
        let admin = admin.clone();
        eventually(wanted, move || {
            let admin = admin.clone();
            async move {
                let document = admin.get_as("/apis", AGGREGATED).await.json();
                let items = document["items"].as_array().cloned().unwrap_or_default();
                let item = items
                    .into_iter()
                    .find(|i| i["metadata"]["name"] == "stale.example.com")
                    .ok_or("no entry")?;
                let version = item["versions"][0].clone();
                if version["freshness"] == wanted { Ok(version) } else { Err("another freshness") }
            }
        })
    };
    freshness("Current").await;
    backend.stop().await;
    trigger_probe(&portico, &backend).await;
    let version = freshness("Stale").await;
    assert_eq!(version["resources"][0]["resource"], "flunders", "the last good document is served");
    backend.resume().await;
    freshness("Current").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registered_group_appears_and_disappears() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let etag = admin.get_as("/apis", AGGREGATED).await.header("etag").to_owned();
    admin.post(API_SERVICES, &local_api_service("appears.example.com")).await;
    let listed = |wanted: bool| {
        let admin = admin.clone();
        eventually("the group list is updated", move || {
            let admin = admin.clone();
            async move {
                let names = group_names(&admin.get("/apis").await.json());
                if names.contains(&"appears.example.com".to_owned()) == wanted { Ok(()) } else { Err(names) }
            }
        })
    };
    listed(true).await;
    admin.delete(&format!("{API_SERVICES}/v1.appears.example.com")).await;
    listed(false).await;
    assert_eq!(
        admin.get_as("/apis", AGGREGATED).await.header("etag"),
        etag,
        "the same content has the same ETag"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_is_indexed_by_hash_and_answers_304() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    // Documents are created after the start, which does not wait for them.
    let url = eventually("the document is in the index", || async {
        let index = admin.get("/openapi/v3").await.json();
        let url = &index["paths"]["apis/apiregistration.k8s.io/v1"]["serverRelativeURL"];
        url.as_str().map(str::to_owned).ok_or(index)
    })
    .await;
    assert!(url.contains("hash="), "{url}");
    let document = admin.get(&url).await;
    assert_eq!(document.status, 200);
    assert!(
        document.json()["components"]["schemas"]
            .as_object()
            .unwrap()
            .keys()
            .any(|k| k.ends_with(".APIService"))
    );
    assert!(document.header("cache-control").contains("immutable"), "{:?}", document.headers);
    assert_eq!(admin.get("/openapi/v2").await.json()["swagger"], "2.0");
    eventually("an unchanged document gets 304", || async {
        let first = admin.get("/openapi/v2").await;
        let request = Request::get("/openapi/v2").header("if-none-match", first.header("etag"));
        let again = admin.fetch(request.body(Full::default()).unwrap()).await.unwrap();
        if again.status == 304 { Ok(()) } else { Err(again.status) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_have_audit_ids_and_are_not_cacheable() {
    let portico = Portico::start().await;
    let request = Request::get("/apis").header("audit-id", "mine-1").body(Full::default()).unwrap();
    let answer = portico.admin().fetch(request).await.unwrap();
    assert_eq!(answer.header("audit-id"), "mine-1");
    assert!(!portico.admin().get("/apis").await.header("audit-id").is_empty());
    assert!(answer.header("cache-control").contains("no-cache"), "{:?}", answer.headers);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_level_changes_while_the_server_runs() {
    let portico = Portico::start().await;
    let control = portico.control();
    let request = |filter: &str| portico_proto::admin::SetLogLevelRequest { filter: filter.into() };
    let before = control.admin().set_log_level(request("debug")).await.unwrap().into_inner().previous;
    let after = control.admin().set_log_level(request(&before)).await.unwrap().into_inner().previous;
    assert_ne!(before, after);
    for filter in ["a=b=c[", "", " "] {
        let refused = control.admin().set_log_level(request(filter)).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{filter:?}");
    }
    let over_http = portico.admin().request(Method::PUT, "/debug/flags/v", "text/plain", "4").await;
    assert_eq!(over_http.status, 200, "{}", over_http.text());
    portico
        .anonymous()
        .as_user("alice")
        .request(Method::PUT, "/debug/flags/v", "text/plain", "9")
        .await
        .status_body(403, "Forbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_all_requests_names_paths_and_agents_and_keeps_queries_out() {
    let portico = Launch::new().args(&["--v", "debug"]).start().await;
    let request = Request::get("/version?access_token=s3cret").header("user-agent", "probe/1.0");
    let request = request.body(Full::default()).unwrap();
    assert_eq!(portico.admin().fetch(request).await.unwrap().status, 200);
    let line = eventually("the request is in the log", || async {
        let log = portico.log();
        log.lines().find(|line| line.contains("probe/1.0")).map(str::to_owned).ok_or(log.len())
    })
    .await;
    assert!(line.contains("path=\"/version\"") && line.contains("agent=\"probe/1.0\""), "{line}");
    assert!(!line.contains("Some("), "{line}");
    assert!(!portico.log().contains("s3cret"));
}
