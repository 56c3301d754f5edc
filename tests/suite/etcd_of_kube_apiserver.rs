//! The data of a real kube-apiserver: served and written in its format, while both servers run, and after one of them
//! has stopped.

use std::collections::BTreeMap;

use http::{Method, Request};
use http_body_util::Full;
use portico_tests::http::{Http, JsonLines};
use portico_tests::{EtcdServer, KubeApiserver, Launch, Portico, wait_until};
use serde_json::{Value, json};

/// An object of every writable kind, except for those that the test creates itself.
const SAMPLES: &str = include_str!("../go/samples.yaml");
/// Service CIDR of both servers.
const RANGE: &str = "--service-cluster-ip-range=10.0.0.0/24";

/// Returns the collections of all resources that can be listed, by version and kind: the paths of objects in `default`.
async fn collections(kube: &Http) -> BTreeMap<(String, String), (String, String)> {
    let mut versions = vec!["/api/v1".to_owned()];
    let groups = kube.get("/apis").await.json();
    for group in groups["groups"].as_array().unwrap() {
        let all = group["versions"].as_array().unwrap().iter();
        versions.extend(all.map(|version| format!("/apis/{}", version["groupVersion"].as_str().unwrap())));
    }
    let mut found = BTreeMap::new();
    for base in versions {
        let listed = kube.get(&base).await.json();
        let version = listed["groupVersion"].as_str().unwrap_or_default().to_owned();
        for resource in listed["resources"].as_array().into_iter().flatten() {
            let name = resource["name"].as_str().unwrap();
            let can_be = |verb: &str| resource["verbs"].as_array().unwrap().contains(&json!(verb));
            if name.contains('/') || !can_be("list") {
                continue;
            }
            let written = match resource["namespaced"].as_bool().unwrap() {
                true => format!("{base}/namespaces/default/{name}"),
                false => format!("{base}/{name}"),
            };
            let kind = resource["kind"].as_str().unwrap().to_owned();
            found.insert((version.clone(), kind), (format!("{base}/{name}"), written));
        }
    }
    found
}

/// Writes every sample, and one object of each kind that is not built in.
async fn write_all(
    server: &Http,
    collections: &BTreeMap<(String, String), (String, String)>,
    writer: &str,
) -> usize {
    let field_of = |sample: &str, field: &str| {
        let (_, rest) = sample.split_once(&format!("{field}: ")).unwrap();
        rest.split(',').next().unwrap().to_owned()
    };
    let mut written = 0;
    let samples = SAMPLES.split("---\n").map(str::trim).filter(|sample| !sample.is_empty());
    for sample in samples {
        let kind = (field_of(sample, "apiVersion"), field_of(sample, "kind"));
        let Some((_, path)) = collections.get(&kind) else { continue };
        let answer = server.request(Method::POST, path, "application/yaml", sample).await;
        assert_eq!(answer.status.as_u16(), 201, "{writer}: {sample}: {}", answer.text());
        written += 1;
    }
    let service = json!({"kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1", "metadata": {"name": format!("v1.{writer}.example.org")},
        "spec": {"group": format!("{writer}.example.org"), "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 1,
            "insecureSkipTLSVerify": true, "service": {"namespace": "default", "name": "nothing"}}});
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": writer, "labels": {"a": "b"}}, "spec": {"n": 1}});
    let definition = definition(&format!("{writer}s"));
    for (path, object) in [
        ("/apis/apiregistration.k8s.io/v1/apiservices", service),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition),
        ("/apis/example.com/v1/namespaces/default/things", thing),
    ] {
        let answer = server.post(path, &object).await;
        assert_eq!(answer.status.as_u16(), 201, "{writer}: {}", answer.text());
        written += 1;
    }
    written
}

/// Returns a definition with many features whose stored form differs from the served one.
fn definition(plural: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string", "default": "x"}, "n": {"type": "integer"}}}}});
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
            "selectableFields": [{"jsonPath": ".spec.a"}], "additionalPrinterColumns": [{"name": name, "type": "string", "jsonPath": ".spec.a"}]})
    };
    let group = if plural == "things" { "example.com" } else { "example.net" };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": plural, "kind": if plural == "things" { "Thing" } else { plural }},
            "versions": [version("v1", true), version("v2", false)]}})
}

/// Returns all objects that a server shows, by collection and name.
async fn all_objects(
    server: &Http,
    collections: &BTreeMap<(String, String), (String, String)>,
) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for (collection, _) in collections.values() {
        let answer = server.get(collection).await;
        assert_eq!(answer.status.as_u16(), 200, "{collection}: {}", answer.text());
        for item in answer.json()["items"].as_array().unwrap() {
            let name = |field: &str| item["metadata"][field].as_str().unwrap_or_default().to_owned();
            found.insert(format!("{collection} {}/{}", name("namespace"), name("name")), item.clone());
        }
    }
    found
}

/// Waits until both servers show the same objects; objects that the servers maintain may change in the meantime.
async fn wait_equal(
    kube: &Http,
    portico: &Http,
    collections: &BTreeMap<(String, String), (String, String)>,
) -> usize {
    let mut last = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..20 {
        last = (all_objects(kube, collections).await, all_objects(portico, collections).await);
        if last.0 == last.1 {
            return last.0.len();
        }
    }
    let (kube, portico) = last;
    let names: std::collections::BTreeSet<&String> = kube.keys().chain(portico.keys()).collect();
    let describe = |object: Option<&Value>| object.map_or("nothing".to_owned(), ToString::to_string);
    let differences: Vec<String> = names
        .into_iter()
        .filter(|name| kube.get(*name) != portico.get(*name))
        .map(|name| {
            format!(
                "{name}\n  kube-apiserver: {}\n  Portico: {}",
                describe(kube.get(name)),
                describe(portico.get(name))
            )
        })
        .collect();
    panic!("{} objects differ:\n{}", differences.len(), differences.join("\n"));
}

async fn watch(server: &Http, revision: &str) -> JsonLines {
    let path = format!("/api/v1/namespaces/default/configmaps?watch=1&resourceVersion={revision}");
    let answer = server.send(Request::get(path).body(Full::default()).unwrap()).await.unwrap();
    JsonLines::new(answer.into_body())
}

/// Writes through each server alternately; the other one reads each write at once, and both watches report the same events.
async fn write_in_turns(kube: &Http, portico: &Http) {
    let maps = "/api/v1/namespaces/default/configmaps";
    let listed = kube.get(maps).await.json();
    let revision = listed["metadata"]["resourceVersion"].as_str().unwrap();
    let (mut of_kube, mut of_portico) = (watch(kube, revision).await, watch(portico, revision).await);
    for round in 0..10 {
        let (one, other) = if round % 2 == 0 { (kube, portico) } else { (portico, kube) };
        let path = format!("{maps}/turn-{round}");
        let new_object =
            json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": format!("turn-{round}")}});
        let mut object = one.post(maps, &new_object).await.json();
        assert_eq!(other.get(&path).await.json(), object);
        object["data"] = json!({"round": round.to_string()});
        let changed = other.put(&path, &object).await;
        assert_eq!(changed.status.as_u16(), 200, "{}", changed.text());
        // The other server refuses an update of the earlier state as well.
        assert_eq!(one.put(&path, &object).await.status.as_u16(), 409);
        assert_eq!(one.get(&path).await.json(), changed.json());
        assert_eq!(one.delete(&path).await.status.as_u16(), 200);
        assert_eq!(other.get(&path).await.status.as_u16(), 404);
    }
    for _ in 0..30 {
        assert_eq!(of_kube.next().await.unwrap(), of_portico.next().await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_of_a_kube_apiserver_are_served_and_stay_compatible() {
    let Some(etcd) = EtcdServer::start() else { return };
    let configuration = json!({"kind": "EncryptionConfiguration", "apiVersion": "apiserver.config.k8s.io/v1",
        "resources": [{"resources": ["secrets"], "providers": [
            {"aescbc": {"keys": [{"name": "k", "secret": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}]}},
            {"identity": {}}]}]});
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), configuration.to_string()).unwrap();
    let encryption = format!("--encryption-provider-config={}", file.path().display());
    let Some(server) = KubeApiserver::start(&etcd, &[&encryption]).await else { return };
    let kube = server.admin();
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(kube.post(crds, &definition("things")).await.status.as_u16(), 201);
    wait_until("the definition is served", async || {
        kube.get("/apis/example.com/v1/things").await.status.as_u16() == 200
    })
    .await;
    // Pods need a service account, which kube-controller-manager would create.
    let account = json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}});
    kube.post("/api/v1/namespaces/default/serviceaccounts", &account).await;
    let all = collections(&kube).await;
    let written = write_all(&kube, &all, "kube").await;
    let launch = Launch::new().args(&["--etcd-servers", &etcd.url(), RANGE, &encryption]);
    let mut beside: Portico = launch.start().await;
    let portico = beside.admin();
    wait_until("Portico serves the definition", async || {
        portico.get("/apis/example.com/v1/things").await.status.as_u16() == 200
    })
    .await;
    assert!(wait_equal(&kube, &portico, &all).await > written);
    write_in_turns(&kube, &portico).await;
    write_all(&portico, &all, "portico").await;
    // The real server reads, changes and deletes objects that Portico has written.
    let count = wait_equal(&kube, &portico, &all).await;
    for path in [
        "/apis/example.com/v1/namespaces/default/things/portico",
        "/apis/example.com/v2/namespaces/default/things/portico",
    ] {
        assert_eq!(kube.merge(path, &json!({"spec": {"a": path}})).await.status.as_u16(), 200);
        assert_eq!(portico.get(path).await.json(), kube.get(path).await.json());
    }
    let before = all_objects(&portico, &all).await;
    assert_eq!(before.len(), count);
    beside.stop().await;
    // A restarted server has an empty cache.
    drop(server);
    let again = KubeApiserver::start(&etcd, &[&encryption]).await.unwrap();
    let kube = again.admin();
    wait_until("kube-apiserver serves the definition again", async || {
        kube.get("/apis/example.com/v1/things").await.status.as_u16() == 200
    })
    .await;
    let after = all_objects(&kube, &all).await;
    // Objects that servers maintain about themselves differ.
    let of_itself = |name: &str| ["leases ", "apiservices ", "events "].iter().any(|own| name.contains(own));
    for (name, object) in before.iter().filter(|(name, _)| !of_itself(name)) {
        assert_eq!(after.get(name), Some(object), "{name}");
    }
    let answer = kube.delete("/api/v1/namespaces/default/secrets").await;
    assert_eq!(answer.status.as_u16(), 200, "{}", answer.text());
}
