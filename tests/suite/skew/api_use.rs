//! Uses of the API that must give the same results with both builds.

use std::collections::BTreeMap;

use http::Request;
use http_body_util::Full;
use portico_tests::http::{Http, JsonLines};
use portico_tests::objects::{CONFIG_MAPS, DEFINITIONS};
use portico_tests::{eventually, wait_until};
use serde_json::{Value, json};

pub(super) const SECRETS: &str = "/api/v1/namespaces/default/secrets";
pub(super) const SERVICES: &str = "/api/v1/namespaces/default/services";

pub(super) async fn created(http: &Http, path: &str, object: &Value) -> Value {
    let answer = http.post(path, object).await;
    assert_eq!(answer.status.as_u16(), 201, "{path}: {}", answer.text());
    answer.json()
}

pub(super) fn config_map(name: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"of": name}})
}

/// Returns the collection of a definition that [`define`] has created.
pub(super) fn things(group: &str) -> String {
    format!("/apis/{group}/v1/namespaces/default/things")
}

pub(super) fn thing(group: &str, name: &str) -> Value {
    json!({"kind": "Thing", "apiVersion": format!("{group}/v1"), "metadata": {"name": name}, "spec": {"n": 1}})
}

/// Defines Things of a group, with a schema that has defaults and a rule.
pub(super) async fn define(http: &Http, group: &str) {
    let n = json!({"type": "integer", "maximum": 9});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"n": n, "text": {"type": "string", "default": "d"}},
        "x-kubernetes-validations": [{"rule": "self.n != 7", "message": "not seven"}]}}});
    let definition = json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": format!("things.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    created(http, DEFINITIONS, &definition).await;
}

/// Waits until Things are served, and checks that schema and rule apply.
pub(super) async fn things_are_served(http: &Http, group: &str) {
    let path = things(group);
    wait_until("the definition is served", async || http.get(&path).await.status == 200).await;
    let mut wrong = thing(group, "wrong");
    wrong["spec"]["n"] = json!(7);
    let refused = http.post(&path, &wrong).await;
    assert!(refused.status.as_u16() == 422 && refused.text().contains("not seven"), "{}", refused.text());
    // Discovery and OpenAPI of a facade are updated after the API itself.
    for document in [format!("/apis/{group}/v1"), format!("/openapi/v3/apis/{group}/v1")] {
        eventually(&format!("{document} contains the resource"), async || {
            let text = http.get(&document).await.text();
            if text.contains("things") { Ok(()) } else { Err(text) }
        })
        .await;
    }
}

/// A watch that resumes after its last event when it ends.
pub(super) struct Watch {
    path: String,
    from: String,
    lines: Option<JsonLines>,
}

impl Watch {
    /// Creates a watch of a collection from a version.
    pub(super) fn from_version(path: &str, from: &str) -> Self {
        Self { path: path.to_owned(), from: from.to_owned(), lines: None }
    }

    /// Returns the name of the object of the next event; no event may be missed.
    pub(super) async fn next(&mut self, http: &Http) -> String {
        loop {
            let lines = match &mut self.lines {
                Some(lines) => lines,
                lines => match begin(http, &self.path, &self.from).await {
                    Some(begun) => lines.insert(begun),
                    None => continue,
                },
            };
            let Some(event) = lines.next().await else {
                self.lines = None;
                continue;
            };
            assert_ne!(event["type"], "ERROR", "{event}");
            self.from = version(&event["object"]);
            return event["object"]["metadata"]["name"].as_str().unwrap().to_owned();
        }
    }

    /// Waits for an event of an object with this name.
    pub(super) async fn wait_for(&mut self, http: &Http, name: &str) {
        while self.next(http).await != name {}
    }
}

/// Starts a watch; `None` if the server asks to retry later.
async fn begin(http: &Http, path: &str, from: &str) -> Option<JsonLines> {
    let uri = format!("{path}?watch=1&resourceVersion={from}");
    let answer = http.send(Request::get(uri).body(Full::default()).unwrap()).await.unwrap();
    match answer.status().as_u16() {
        200 => Some(JsonLines::new(answer.into_body())),
        code => {
            assert!(matches!(code, 429 | 503), "{path}: {code}");
            tokio::task::yield_now().await;
            None
        }
    }
}

pub(super) fn version(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

/// Creates objects of various kinds: built-in, custom, encrypted, with an address, with an owner, and with a finalizer.
pub(super) async fn make(http: &Http) {
    let owner = created(http, CONFIG_MAPS, &config_map("owner")).await;
    let mut owned = config_map("owned");
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner["metadata"]["uid"]}]);
    created(http, CONFIG_MAPS, &owned).await;
    let mut leaving = config_map("leaving");
    leaving["metadata"]["finalizers"] = json!(["example.com/wait"]);
    created(http, CONFIG_MAPS, &leaving).await;
    assert_eq!(http.delete(&format!("{CONFIG_MAPS}/leaving")).await.status.as_u16(), 200);
    let secret =
        json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}, "data": {"a": "Yg=="}});
    created(http, SECRETS, &secret).await;
    let service = json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "made"},
        "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    created(http, SERVICES, &service).await;
    define(http, "made.example.com").await;
    things_are_served(http, "made.example.com").await;
    created(http, &things("made.example.com"), &thing("made.example.com", "t")).await;
}

/// Returns the objects that [`make`] has created, with their versions.
pub(super) async fn created_objects(http: &Http) -> BTreeMap<String, Value> {
    things_are_served(http, "made.example.com").await;
    let mut found = BTreeMap::new();
    let things = things("made.example.com");
    for path in [CONFIG_MAPS, SECRETS, SERVICES, &things] {
        for item in http.get(path).await.json()["items"].as_array().unwrap() {
            let name = item["metadata"]["name"].as_str().unwrap();
            // The server maintains these two.
            if !matches!(name, "kubernetes" | "kube-root-ca.crt") {
                found.insert(format!("{path}/{name}"), item.clone());
            }
        }
    }
    found
}

/// Checks that removing a finalizer completes a deletion, and that dependents are deleted with their owner.
pub(super) async fn check_deletions(one: &Http, other: &Http) {
    let leaving = format!("{CONFIG_MAPS}/leaving");
    let done = one.merge(&leaving, &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(done.status.as_u16(), 200, "{}", done.text());
    assert_eq!(other.get(&leaving).await.status.as_u16(), 404);
    assert_eq!(other.delete(&format!("{CONFIG_MAPS}/owner")).await.status.as_u16(), 200);
    wait_until("the dependent is deleted with its owner", async || {
        one.get(&format!("{CONFIG_MAPS}/owned")).await.status.as_u16() == 404
    })
    .await;
}
