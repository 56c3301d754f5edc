//! Authorization and execution parse a query in the same way: permission for one object never grants another
//! through a malformed query.

use http::{Method, Request};
use http_body_util::Full;
use portico_tests::{Backend, Launch, Portico, eventually};
use serde_json::{Value, json};

use crate::proxying::register;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Query, and the response of a real kube-apiserver 1.36.3 to `GET /api/v1/secrets` of a user who may list and watch only
/// the Secret `allowed`.
const ROWS: &[(&str, u16)] = &[
    ("", 403),
    ("fieldSelector=metadata.name%3Dallowed", 200),
    ("fieldSelector=metadata.name=allowed", 200),
    ("fieldSelector=metadata.name%3D%3Dallowed", 200),
    ("fieldSelector=metadata.name%3Dother", 403),
    ("fieldSelector=metadata.name%21%3Dallowed", 403),
    ("fieldSelector=metadata.name%3Dallowed,x%3D;", 403),
    ("fieldSelector=metadata.name%3Dallowed,x%3D%zz", 403),
    ("fieldSelector=metadata.name%3Dallowed,x%3D%", 403),
    ("fieldSelector=metadata.name%3Dallowed;", 403),
    ("fieldSelector=metadata.name%3Dallowed&x=;", 200),
    ("fieldSelector=metadata.name%3Dallowed&x=%zz", 200),
    ("x=1;fieldSelector=metadata.name%3Dallowed", 403),
    ("fieldSelector=&fieldSelector=metadata.name%3Dallowed", 403),
    ("fieldSelector=metadata.name%3Dallowed&fieldSelector=", 200),
    ("field%53elector=metadata.name%3Dallowed", 200),
    ("fieldselector=metadata.name%3Dallowed", 403),
    ("fieldSelector=metadata.name%3Dallowed&limit=abc", 403),
    ("fieldSelector=metadata.name%3Dallowed&timeoutSeconds=1.5", 403),
    ("fieldSelector=metadata.name%3Dallowed&labelSelector=%21%21", 403),
    ("fieldSelector=metadata.name%3Dallowed&limit=1", 200),
    ("fieldSelector=metadata.name%3Dallowed,metadata.name%3Dother", 200),
    ("fieldSelector=metadata.name%3Dother,metadata.name%3Dallowed", 200),
    ("fieldSelector=metadata.name%3Dallowed,metadata.name%3Da", 403),
    ("fieldSelector=metadata.name%21x%3Dallowed", 403),
    ("watch=1;", 403),
    ("watch=1;&fieldSelector=metadata.name%3Dallowed", 200),
];

/// Creates a role for carol: list and watch the objects `allowed` of this resource.
async fn allow_one(portico: &Portico, group: &str, resource: &str) {
    let name = format!("one-of-{resource}");
    let rules = json!([{"apiGroups": [group], "resources": [resource], "resourceNames": ["allowed"],
        "verbs": ["list", "watch"]}]);
    let role = json!({"metadata": {"name": name}, "rules": rules});
    let binding = json!({"metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "carol"}]});
    for (kind, body) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let answer = portico.admin().post(&format!("{RBAC}/{kind}"), &body).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
}

async fn started() -> Portico {
    Launch::new().args(&["--authorization-mode", "RBAC"]).start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn permission_for_one_secret_grants_no_other() {
    let portico = started().await;
    for name in ["allowed", "other"] {
        let secret = json!({"metadata": {"name": name}, "stringData": {"password": name}});
        let answer = portico.admin().post("/api/v1/namespaces/default/secrets", &secret).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    allow_one(&portico, "", "secrets").await;
    let carol = portico.anonymous().as_user("carol");
    for (query, code) in ROWS {
        let answer = carol.get(&format!("/api/v1/secrets?{query}")).await;
        assert_eq!(answer.status, *code, "{query}: {}", answer.text());
        if *code == 200 {
            let list: Value = answer.json();
            let strangers: Vec<_> = list["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|s| &s["metadata"]["name"])
                .filter(|name| **name != "allowed")
                .collect();
            assert!(strangers.is_empty(), "{query}: {strangers:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_is_authorized_as_a_watch() {
    let portico = started().await;
    allow_one(&portico, "", "secrets").await;
    let carol = portico.anonymous().as_user("carol");
    for (query, code) in ROWS.iter().filter(|(query, _)| !query.contains("watch")) {
        // `watch` is first: the rest of the row must not hide it, nor be hidden by it.
        let path = format!("/api/v1/secrets?watch=1&{query}");
        let response = carol.send(Request::get(path).body(Full::default()).unwrap()).await.unwrap();
        assert_eq!(response.status().as_u16(), *code, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_gets_the_query_that_was_authorized() {
    let backend = Backend::start("odd.example.com").await;
    let portico = started().await;
    register(&portico, &backend).await;
    allow_one(&portico, "odd.example.com", "flunders").await;
    let carol = portico.anonymous().as_user("carol");
    eventually("carol may list the permitted object", || async {
        let path = backend.path("/flunders?fieldSelector=metadata.name%3Dallowed");
        let answer = carol.get(&path).await;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    for (query, code) in ROWS.iter().filter(|(_, code)| *code == 200 || *code == 403) {
        let path = backend.path(&format!("/flunders?{query}"));
        let answer = carol.request(Method::GET, &path, "application/json", "").await;
        assert_eq!(answer.status, *code, "{query}: {}", answer.text());
        if *code == 200 {
            let target = backend.last_request().target;
            assert!(target.contains("fieldSelector=metadata.name"), "{query} became {target}");
            assert!(target.contains("allowed") && !target.contains("%21%3D"), "{query} became {target}");
        }
    }
    let unexpected: Vec<_> = backend
        .requests()
        .into_iter()
        .map(|seen| seen.target)
        .filter(|target| target.contains("/flunders") && !target.contains("allowed"))
        .collect();
    assert!(unexpected.is_empty(), "the backend received {unexpected:?}");
}
