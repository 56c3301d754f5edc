//! Discovery and OpenAPI of custom resources, and kubectl, which uses both.

use http::Method;
use portico_tests::http::Http;
use portico_tests::objects::DEFINITIONS;
use portico_tests::tools::is_installed;
use portico_tests::{Portico, wait_until};
use serde_json::{Value, json};

use crate::kubectl::prints;

const GROUP: &str = "told.example.com";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Returns a definition of two served versions and one that is not served.
fn gauges() -> Value {
    let spec = json!({"type": "object", "description": "What is measured.", "properties": {
        "limit": {"x-kubernetes-int-or-string": true, "description": "Where it ends."},
        "unit": {"type": "string", "default": "m", "nullable": true}}});
    let version = |name: &str, served: bool, storage: bool| {
        let about = format!("A gauge of {name}.");
        let root = json!({"type": "object", "description": about, "properties": {"spec": spec}});
        json!({"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": root}})
    };
    let mut versions =
        vec![version("v1beta1", true, false), version("v1", true, true), version("v2", false, false)];
    versions[1]["subresources"] = json!({"status": {}});
    versions[1]["selectableFields"] = json!([{"jsonPath": ".spec.unit"}]);
    let names = json!({"plural": "gauges", "kind": "Gauge", "shortNames": ["gg"], "categories": ["meters"]});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gauges.{GROUP}")},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": versions}})
}

/// Waits until a document of a group version exists.
async fn wait_document(admin: &Http, path: &str) {
    wait_until("the document of the group version is served", || async {
        admin.get(path).await.status == 200
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_lists_a_definition_as_long_as_it_is_established() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    assert_eq!(admin.get(&format!("/apis/{GROUP}/v1")).await.status, 404);
    assert_eq!(admin.post(DEFINITIONS, &gauges()).await.status, 201);
    wait_document(&admin, &format!("/apis/{GROUP}/v1beta1")).await;
    wait_document(&admin, &format!("/apis/{GROUP}")).await;
    let group = admin.get(&format!("/apis/{GROUP}")).await.json();
    let versions = group["versions"].as_array().unwrap().iter().map(|v| v["version"].as_str().unwrap());
    assert_eq!(versions.collect::<Vec<_>>(), ["v1", "v1beta1"]);
    assert_eq!(admin.get(&format!("/apis/{GROUP}/v2")).await.status, 404);
    let list = admin.get(&format!("/apis/{GROUP}/v1")).await.json();
    let names = list["resources"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["gauges", "gauges/status"]);
    let all = admin.get_as("/apis", AGGREGATED).await.json();
    let items = all["items"].as_array().unwrap();
    let aggregated = items.iter().find(|item| item["metadata"]["name"] == GROUP).unwrap();
    assert_eq!(aggregated["versions"][0]["resources"][0]["responseKind"]["group"], GROUP);
    assert_eq!(admin.delete(&format!("{DEFINITIONS}/gauges.{GROUP}")).await.status, 200);
    wait_until("the version is no longer served", || async {
        admin.get(&format!("/apis/{GROUP}/v1")).await.status == 404
    })
    .await;
    let is_removed =
        |all: &Value| all["items"].as_array().unwrap().iter().all(|item| item["metadata"]["name"] != GROUP);
    wait_until("the group is no longer listed", || async {
        is_removed(&admin.get_as("/apis", AGGREGATED).await.json())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_follows_a_definition() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    assert_eq!(admin.post(DEFINITIONS, &gauges()).await.status, 201);
    let path = format!("/openapi/v3/apis/{GROUP}/v1");
    wait_document(&admin, &path).await;
    let document = admin.get(&path).await.json();
    let gauge = &document["components"]["schemas"]["com.example.told.v1.Gauge"];
    assert_eq!(gauge["x-kubernetes-selectable-fields"], json!([{"fieldPath": "spec.unit"}]));
    assert_eq!(gauge["properties"]["spec"]["properties"]["limit"]["anyOf"].as_array().unwrap().len(), 2);
    let index = admin.get("/openapi/v3").await.json();
    let address =
        |index: &Value| index["paths"][&path["/openapi/v3/".len()..]]["serverRelativeURL"].to_string();
    let v2 = admin.get("/openapi/v2").await.json();
    let fields = &v2["definitions"]["com.example.told.v1.Gauge"]["properties"]["spec"]["properties"];
    assert_eq!(fields["unit"], json!({}), "version 2 cannot say nullable");
    let change = json!([{"op": "add", "value": {"type": "string"},
        "path": "/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/colour"}]);
    let definition = format!("{DEFINITIONS}/gauges.{GROUP}");
    let patched =
        admin.request(Method::PATCH, &definition, "application/json-patch+json", change.to_string()).await;
    assert_eq!(patched.status, 200, "{}", patched.text());
    let colour = |document: &Value| {
        document["components"]["schemas"]["com.example.told.v1.Gauge"]["properties"]["spec"]["properties"]["colour"]
            .is_object()
    };
    wait_until("the changed schema is published", || async { colour(&admin.get(&path).await.json()) }).await;
    assert_ne!(address(&admin.get("/openapi/v3").await.json()), address(&index));
    assert_eq!(admin.delete(&definition).await.status, 200);
    wait_until("the document is removed", || async { admin.get(&path).await.status == 404 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_finds_and_explains_custom_resources() {
    if !is_installed("kubectl") {
        return;
    }
    let portico = Portico::start().await;
    let file = portico.folder().join("definition.json");
    std::fs::write(&file, gauges().to_string()).unwrap();
    prints(&portico, &["create", "-f", file.to_str().unwrap()]);
    let name = format!("crd/gauges.{GROUP}");
    prints(&portico, &["wait", "--for=condition=Established", "--timeout=20s", &name]);
    wait_document(&portico.admin(), &format!("/openapi/v3/apis/{GROUP}/v1")).await;
    let resources = prints(&portico, &["api-resources", "--api-group", GROUP]);
    assert!(resources.contains("gauges") && resources.contains("gg"), "{resources}");
    let explained = prints(&portico, &["explain", "gauge.spec"]);
    for words in ["What is measured.", "limit", "Where it ends.", "unit"] {
        assert!(explained.contains(words), "{words} is not in:\n{explained}");
    }
    let metadata =
        prints(&portico, &["explain", "gauges.metadata.name", "--api-version", &format!("{GROUP}/v1beta1")]);
    assert!(metadata.contains("unique within a namespace"), "{metadata}");
}
