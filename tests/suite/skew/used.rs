//! What users do with the API, in the way in which both builds must answer alike.

use std::collections::BTreeMap;

use http::Request;
use http_body_util::Full;
use portico_tests::http::{Http, Lines};
use portico_tests::objects::{CONFIG_MAPS, DEFINITIONS};
use portico_tests::{eventually, until};
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

/// Where the objects of a definition that was made by [`define`] are.
pub(super) fn things(group: &str) -> String {
    format!("/apis/{group}/v1/namespaces/default/things")
}

pub(super) fn thing(group: &str, name: &str) -> Value {
    json!({"kind": "Thing", "apiVersion": format!("{group}/v1"), "metadata": {"name": name}, "spec": {"n": 1}})
}

/// Defines Things of a group, with a schema that defaults and a rule.
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

/// Waits until Things are served, and checks that schema and rule are in force.
pub(super) async fn things_are_served(http: &Http, group: &str) {
    let path = things(group);
    until("the definition is served", async || http.get(&path).await.status == 200).await;
    let mut wrong = thing(group, "wrong");
    wrong["spec"]["n"] = json!(7);
    let refused = http.post(&path, &wrong).await;
    assert!(refused.status.as_u16() == 422 && refused.text().contains("not seven"), "{}", refused.text());
    // What a facade shows of what there is follows behind what it serves.
    for document in [format!("/apis/{group}/v1"), format!("/openapi/v3/apis/{group}/v1")] {
        eventually(&format!("{document} mentions it"), async || {
            let text = http.get(&document).await.text();
            if text.contains("things") { Ok(()) } else { Err(text) }
        })
        .await;
    }
}

/// A watch that its client begins again behind what it has seen when it ends.
pub(super) struct Watch {
    path: String,
    from: String,
    lines: Option<Lines>,
}

impl Watch {
    /// Of a collection, from a version.
    pub(super) fn behind(path: &str, from: &str) -> Self {
        Self { path: path.to_owned(), from: from.to_owned(), lines: None }
    }

    /// The name of the object of the next event. Nothing may have been missed.
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

    /// Waits until an object of this name comes.
    pub(super) async fn wait_for(&mut self, http: &Http, name: &str) {
        while self.next(http).await != name {}
    }
}

/// Begins a watch; nothing while the server asks for patience.
async fn begin(http: &Http, path: &str, from: &str) -> Option<Lines> {
    let uri = format!("{path}?watch=1&resourceVersion={from}");
    let answer = http.send(Request::get(uri).body(Full::default()).unwrap()).await.unwrap();
    match answer.status().as_u16() {
        200 => Some(Lines::new(answer.into_body())),
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

/// Something of each sort: of built-in and custom kinds, sealed, with an address, owned, and one that waits for its finalizer.
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

/// What [`make`] has made, and the versions at which it stands.
pub(super) async fn made(http: &Http) -> BTreeMap<String, Value> {
    things_are_served(http, "made.example.com").await;
    let mut found = BTreeMap::new();
    let things = things("made.example.com");
    for path in [CONFIG_MAPS, SECRETS, SERVICES, &things] {
        for item in http.get(path).await.json()["items"].as_array().unwrap() {
            let name = item["metadata"]["name"].as_str().unwrap();
            // The server itself keeps these two.
            if !matches!(name, "kubernetes" | "kube-root-ca.crt") {
                found.insert(format!("{path}/{name}"), item.clone());
            }
        }
    }
    found
}

/// What waits for its finalizer goes when that is taken away; what is owned goes with its owner, by the controllers.
pub(super) async fn end(one: &Http, other: &Http) {
    let leaving = format!("{CONFIG_MAPS}/leaving");
    let done = one.merge(&leaving, &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(done.status.as_u16(), 200, "{}", done.text());
    assert_eq!(other.get(&leaving).await.status.as_u16(), 404);
    assert_eq!(other.delete(&format!("{CONFIG_MAPS}/owner")).await.status.as_u16(), 200);
    until("what it owned goes with it", async || {
        one.get(&format!("{CONFIG_MAPS}/owned")).await.status.as_u16() == 404
    })
    .await;
}
