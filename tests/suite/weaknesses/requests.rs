//! Requests that exceeded their permissions.

use http::Method;
use portico_tests::http::Http;
use portico_tests::objects::DEFINITIONS;
use portico_tests::{Launch, Portico, eventually};
use serde_json::{Value, json};

const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1";

async fn define(admin: &Http, group: &str, plural: &str, scope: &str) {
    let kind = "Widget";
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let body = json!({"metadata": {"name": format!("{plural}.{group}")}, "spec": {
        "group": group, "scope": scope, "names": {"plural": plural, "kind": kind},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    let created = admin.post(DEFINITIONS, &body).await;
    assert_eq!(created.status, 201, "{}", created.text());
    eventually("the definition is served", || async {
        let answer = admin.get(&format!("/apis/{group}/v1/{plural}")).await;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
}

/// CVE-2019-11247: a cluster-scoped object under the path of a namespace, with the permissions of that namespace.
#[tokio::test(flavor = "multi_thread")]
async fn namespaced_paths_serve_no_cluster_scoped_objects() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    define(&admin, "scope.example.com", "widgets", "Cluster").await;
    let widget = json!({"apiVersion": "scope.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    assert_eq!(admin.post("/apis/scope.example.com/v1/widgets", &widget).await.status, 201);
    let role = json!({"metadata": {"name": "all"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let in_default = format!("{BINDINGS}/namespaces/default");
    assert_eq!(admin.post(&format!("{in_default}/roles"), &role).await.status, 201);
    let binding = json!({"metadata": {"name": "all"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "all"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    assert_eq!(admin.post(&format!("{in_default}/rolebindings"), &binding).await.status, 201);
    let alice = portico.anonymous().as_user("alice");
    let namespaced = "/apis/scope.example.com/v1/namespaces/default/widgets";
    for path in [namespaced.to_owned(), format!("{namespaced}/w")] {
        for method in [Method::GET, Method::DELETE] {
            let answer = alice.request(method.clone(), &path, "", "").await;
            assert_eq!(answer.status, 404, "{method} {path}: {}", answer.text());
        }
    }
    assert_eq!(alice.get("/apis/scope.example.com/v1/widgets/w").await.status, 403);
    assert_eq!(admin.get("/apis/scope.example.com/v1/widgets/w").await.status, 200);
}

/// CVE-2022-3162: a list that reads objects of another resource.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_never_contains_other_resources() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    define(&admin, "one.example.com", "widgets", "Namespaced").await;
    define(&admin, "two.example.com", "widgets", "Namespaced").await;
    for group in ["one.example.com", "two.example.com"] {
        for name in ["a", "b"] {
            let body = json!({"apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": name}, "from": group});
            let path = format!("/apis/{group}/v1/namespaces/default/widgets");
            assert_eq!(admin.post(&path, &body).await.status, 201);
        }
    }
    let own = "/apis/one.example.com/v1/widgets";
    let first = admin.get(&format!("{own}?limit=1")).await.json();
    let token = first["metadata"]["continue"].as_str().expect("a second page").to_owned();
    let foreign = admin.get(&format!("/apis/two.example.com/v1/widgets?limit=1&continue={token}")).await;
    assert!(only(&foreign.json(), "two.example.com"), "{}", foreign.text());
    for start in [
        "../two.example.com/widgets/default/a",
        "default/../../two.example.com/widgets",
        "/",
        "..",
        "default/a\u{0}/x",
    ] {
        let decoded = json!({"v": "meta.k8s.io/v1", "rv": 1, "start": start}).to_string();
        let crafted = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, decoded);
        let answer = admin.get(&format!("{own}?limit=9&continue={crafted}")).await;
        assert!(only(&answer.json(), "one.example.com"), "{start:?}: {}", answer.text());
    }
    for path in [
        "/apis/one.example.com/v1/namespaces/../../two.example.com/v1/widgets",
        "/apis/one.example.com/v1/namespaces/..%2f..%2ftwo.example.com/widgets",
        "/apis/one.example.com/v1/namespaces/default/widgets/..%2f..%2fa",
    ] {
        let answer = admin.get(path).await;
        assert!(!answer.status.is_success(), "{path}: {}", answer.text());
    }
}

/// Returns true if a list contains no object of another group.
fn only(list: &Value, group: &str) -> bool {
    let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    items.iter().all(|item| item["from"] == group)
}

/// CVE-2019-16276: a header whose name ends in a space, which one parser ignores and another accepts.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_of_a_header_with_a_space_is_refused() {
    let portico = Portico::start().await;
    for header in [
        "X-Remote-User : admin",
        "Authorization : Bearer admin-token",
        "Transfer-Encoding : chunked",
        " Host: b",
    ] {
        let request =
            format!("GET /api/v1/nodes HTTP/1.1\r\nHost: a\r\n{header}\r\nConnection: close\r\n\r\n");
        let answer = portico.anonymous().send_raw(request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{header:?}: {answer}");
    }
}

/// CVE-2020-8552: a series of metrics for every value that clients send.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_do_not_grow_with_client_input() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let series = || async { portico.admin().get("/metrics").await.text().lines().count() };
    let made_up = |n: usize| {
        [
            (Method::GET, format!("/made-up-{n}/x")),
            (Method::GET, format!("/api/v1/namespaces/n{n}/pods/p{n}")),
            (Method::GET, format!("/apis/g{n}.example.com/v{n}/things")),
            (Method::GET, format!("/api/v1/namespaces/default/configmaps?labelSelector=l{n}=x")),
            (Method::from_bytes(format!("VERB{n}").as_bytes()).unwrap(), "/version".to_owned()),
            (Method::POST, format!("/api/v1/namespaces/default/pods/p/sub{n}")),
        ]
    };
    let send = |n: usize| {
        let admin = &admin;
        async move {
            for (method, path) in made_up(n) {
                admin.request(method, &path, "", "").await;
                portico_tests::http::Http::clone(admin).with_token(&format!("token-{n}")).get("/api").await;
            }
        }
    };
    for n in 0..5 {
        send(n).await;
    }
    let before = series().await;
    for n in 5..60 {
        send(n).await;
    }
    let after = series().await;
    assert!(after < before + 50, "{before} series before, {after} after");
}

/// CVE-2022-1996: an origin that only contains a permitted one.
#[tokio::test(flavor = "multi_thread")]
async fn an_origin_that_only_contains_an_allowed_one_is_not_allowed() {
    let flag = r"--cors-allowed-origins=//example\.com(:|$)";
    let portico = Launch::new().arg(flag).start().await;
    for (origin, allowed) in [
        ("https://example.com", true),
        ("https://example.com:8443", true),
        ("https://evil-example.com", false),
        ("https://example.com.evil.org", false),
        ("https://example.community", false),
        ("null", false),
    ] {
        let request =
            http::Request::get("/version").header("origin", origin).body(Default::default()).unwrap();
        let answer = portico.admin().fetch(request).await.unwrap();
        let allowed_origin = answer.header("access-control-allow-origin");
        assert_eq!(allowed_origin == origin, allowed, "{origin}: {allowed_origin:?}");
    }
    for unanchored in ["example.com", "*", "//example.com", ".*"] {
        let launch = Launch::new().arg(&format!("--cors-allowed-origins={unanchored}"));
        let (code, _, error) = launch.run().await;
        assert_eq!(code, Some(2), "{unanchored}: {error}");
    }
}
