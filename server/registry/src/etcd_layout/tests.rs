//! Paths, encodings, and round trips of stored objects.

use serde_json::{Value, json};

use super::*;

fn layout() -> EtcdLayout {
    EtcdLayout::new(&StrategyTable::default(), Duration::from_secs(3600)).unwrap()
}

fn resource(group: &str, name: &str) -> GroupResource {
    GroupResource::new(group, name)
}

#[test]
fn every_resource_has_the_path_of_kube_apiserver() {
    let layout = layout();
    let expected = [
        ("", "services", "services/specs"),
        ("", "endpoints", "services/endpoints"),
        ("", "nodes", "minions"),
        ("", "replicationcontrollers", "controllers"),
        ("", "events", "events"),
        ("apps", "deployments", "deployments"),
        ("networking.k8s.io", "ingresses", "ingress"),
        (
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "apiextensions.k8s.io/customresourcedefinitions",
        ),
        ("apiregistration.k8s.io", "apiservices", "apiregistration.k8s.io/apiservices"),
        ("example.com", "things", "example.com/things"),
    ];
    for (group, name, path) in expected {
        assert_eq!(layout.path(&resource(group, name)), path);
        let object_path = format!("{path}/default/x");
        assert_eq!(layout.locate(&object_path), Some((Resource::new(group, name), "default/x")));
    }
    for foreign in ["ranges/servicenodeports", "masterleases/10.0.0.1", "peerserverleases/x", "pods"] {
        assert_eq!(layout.locate(foreign), None, "{foreign}");
    }
}

#[test]
fn paths_of_all_kinds_differ() {
    let layout = layout();
    assert_eq!(layout.by_path.len(), layout.builtin.len());
}

#[test]
fn built_in_kinds_survive_a_round_trip_as_protobuf() {
    let layout = layout();
    let json = br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"u"},"data":{"k":"v"}}"#;
    let stored = layout.to_stored(&resource("", "configmaps"), json).unwrap();
    assert!(stored.starts_with(b"k8s\0\n\x0f\n\x02v1\x12\x09ConfigMap\x12"), "{stored:?}");
    let decoded = layout.to_json(&resource("", "configmaps"), &stored).unwrap();
    let to_text = |json: &[u8]| String::from_utf8_lossy(json).into_owned();
    assert_eq!(to_text(&decoded), to_text(json));
}

#[test]
fn objects_of_other_versions_are_read_in_the_storage_version() {
    let layout = layout();
    let json = br#"{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v1","metadata":{"name":"a","namespace":"b"},
        "spec":{"scaleTargetRef":{"kind":"Deployment","name":"d"},"maxReplicas":3}}"#;
    let decoded = layout.to_json(&resource("autoscaling", "horizontalpodautoscalers"), json).unwrap();
    let decoded: Value = serde_json::from_slice(&decoded).unwrap();
    assert_eq!(decoded["apiVersion"], "autoscaling/v2");
    assert_eq!(decoded["spec"]["maxReplicas"], 3);
}

#[test]
fn definitions_survive_a_round_trip_in_v1beta1() {
    let column = json!({"name": "A", "type": "string", "jsonPath": ".spec.a"});
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object"}}})
    };
    let mut second = version("v2", false);
    second["additionalPrinterColumns"] = json!([column]);
    let webhook = json!({"clientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v1"]});
    let v1 = json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "a"},
        "spec": {"group": "b.c", "conversion": {"strategy": "Webhook", "webhook": webhook},
            "versions": [version("v1", true), second]}});
    let object = |value: &Value| Object::from_json(value.to_string().as_bytes()).unwrap();
    let stored: Value = serde_json::from_slice(&definition_to_v1beta1(object(&v1)).to_json()).unwrap();
    let expected = json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1beta1", "metadata": {"name": "a"},
        "spec": {"group": "b.c", "version": "v1", "preserveUnknownFields": false,
            "validation": {"openAPIV3Schema": {"type": "object"}}, "subresources": {"status": {}},
            "conversion": {"strategy": "Webhook", "webhookClientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v1"]},
            "versions": [{"name": "v1", "served": true, "storage": true}, {"name": "v2", "served": true, "storage": false,
                "additionalPrinterColumns": [{"name": "A", "type": "string", "JSONPath": ".spec.a"}]}]}});
    assert_eq!(stored, expected);
    let mut decoded: Value =
        serde_json::from_slice(&definition_from_v1beta1(object(&stored)).unwrap().to_json()).unwrap();
    assert_eq!(decoded["spec"].as_object_mut().unwrap().remove("preserveUnknownFields"), Some(json!(false)));
    assert_eq!(decoded, v1);
    // Form of `v1beta1` definitions before there were several versions.
    let old = json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1beta1",
        "spec": {"version": "v1", "validation": {}}});
    let old: Value =
        serde_json::from_slice(&definition_from_v1beta1(object(&old)).unwrap().to_json()).unwrap();
    let only = json!([{"name": "v1", "served": true, "storage": true, "schema": {}}]);
    assert_eq!((&old["spec"]["versions"], &old["spec"]["preserveUnknownFields"]), (&only, &json!(true)));
}
