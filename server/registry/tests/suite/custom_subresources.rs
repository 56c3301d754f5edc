//! The status and the scale of custom resources.

use crate::custom_resources::{CRDS, TABS, open_with_definition, tab};
use crate::harness::{Harness, JSON, JSON_PATCH, MERGE, TABLE};

const APPLY: &str = "application/apply-patch+yaml";

/// Versions of CronTabs: one with a status and a scale, and one without either.
fn versions() -> String {
    let schema = r#""schema":{"openAPIV3Schema":{"type":"object","properties":{
        "spec":{"type":"object","properties":{"pods":{"type":"object","properties":{"wanted":{"type":"integer","maximum":50}}},"text":{"type":"string"}}},
        "status":{"type":"object","properties":{"pods":{"type":"integer"},"chosen":{"type":"string"},"text":{"type":"string"}}}}}}"#;
    format!(
        r#"{{"name":"v1","served":true,"storage":true,{schema},"subresources":{{"status":{{}},
        "scale":{{"specReplicasPath":".spec.pods.wanted","statusReplicasPath":".status.pods","labelSelectorPath":".status.chosen"}}}}}},
        {{"name":"v2","served":true,"storage":false,"schema":{{"openAPIV3Schema":{{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}"#
    )
}

/// Harness with one CronTab, `t`, with two desired replicas.
async fn with_tab() -> Harness {
    let harness = open_with_definition(&versions()).await;
    let created = harness.post(TABS, &tab("v1", r#""pods":{"wanted":2},"text":"x""#)).await;
    assert_eq!(created.code, 201, "{}", created.text);
    harness
}

fn scale(rest: &str) -> String {
    format!(
        r#"{{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{{"name":"t","namespace":"default"}}{rest}}}"#
    )
}

#[tokio::test]
async fn a_scale_shows_the_fields_that_its_paths_name() {
    let harness = with_tab().await;
    let (one, url) = (format!("{TABS}/t"), format!("{TABS}/t/scale"));
    let shown = harness.get(&url).await;
    assert_eq!((shown.at("kind").as_str(), shown.at("spec.replicas").as_str()), ("Scale", "2"));
    assert_eq!(shown.at("status"), r#"{"replicas":0}"#);
    harness.patch(&format!("{one}/status"), MERGE, r#"{"status":{"pods":1,"chosen":"a=b"}}"#).await;
    assert_eq!(harness.get(&url).await.at("status"), r#"{"replicas":1,"selector":"a=b"}"#);
    let table = harness.request("GET", &url, TABLE, "", "").await;
    assert_eq!(table.at("rows.0.cells.1"), "2");
    assert_eq!(harness.answer("GET", &url, "application/vnd.kubernetes.protobuf", "", "").await.code, 406);
    assert_eq!(harness.get(&format!("{}/t/scale", TABS.replace("/v1/", "/v2/"))).await.code, 404);
}

#[tokio::test]
async fn a_write_of_the_scale_updates_the_object() {
    let harness = with_tab().await;
    let url = format!("{TABS}/t/scale");
    let put = harness.put(&url, &scale(r#","spec":{"replicas":4}"#)).await;
    assert_eq!((put.code, put.at("spec.replicas").as_str()), (200, "4"), "{}", put.text);
    let object = harness.get(&format!("{TABS}/t")).await;
    assert_eq!(
        (object.at("spec.pods.wanted").as_str(), object.at("metadata.generation").as_str()),
        ("4", "2")
    );
    assert_eq!(harness.put(&url, &scale(r#","spec":{}"#)).await.at("spec"), "{}");
    assert_eq!(harness.get(&format!("{TABS}/t")).await.at("spec.pods.wanted"), "0");
    let patched =
        harness.patch(&url, JSON_PATCH, r#"[{"op":"add","path":"/spec/replicas","value":7}]"#).await;
    assert_eq!(patched.at("spec.replicas"), "7");
    for (body, field) in [("-1", ".spec.pods.wanted"), ("51", "spec.pods.wanted")] {
        let refused = harness.patch(&url, MERGE, &format!(r#"{{"spec":{{"replicas":{body}}}}}"#)).await;
        assert_eq!(
            (refused.code, refused.at("details.causes.0.field").as_str()),
            (422, field),
            "{}",
            refused.text
        );
        assert_eq!(refused.at("details.kind"), "CronTab");
    }
    let stale = scale(r#","spec":{"replicas":5}"#).replace(r#""t","#, r#""t","resourceVersion":"1","#);
    assert_eq!(harness.put(&url, &stale).await.code, 409);
    assert_eq!(harness.put(&url, &scale("").replace("autoscaling/v1", "autoscaling/v2")).await.code, 400);
    assert_eq!(harness.patch(&url, "application/strategic-merge-patch+json", "{}").await.code, 415);
}

#[tokio::test]
async fn the_field_of_a_scale_may_be_absent() {
    let harness = open_with_definition(&versions()).await;
    harness.post(TABS, &tab("v1", "")).await;
    let url = format!("{TABS}/t/scale");
    let missing = harness.get(&url).await;
    assert_eq!(missing.code, 500);
    assert!(missing.at("message").ends_with(r#"the spec replicas field ".spec.pods.wanted" does not exist"#));
    let silent = harness.patch(&url, MERGE, r#"{"status":{"replicas":3}}"#).await;
    assert_eq!(
        (silent.code, silent.at("message").as_str()),
        (400, r#"the spec replicas field ".spec.pods.wanted" cannot be empty"#)
    );
    let written = harness.patch(&url, MERGE, r#"{"spec":{"replicas":0}}"#).await;
    assert_eq!((written.code, harness.get(&url).await.code), (200, 200), "{}", written.text);
}

#[tokio::test]
async fn another_version_may_have_a_different_type_in_the_field_of_a_scale() {
    let harness = with_tab().await;
    let v2 = format!("{}/t", TABS.replace("/v1/", "/v2/"));
    let written = harness.patch(&v2, MERGE, r#"{"spec":{"pods":{"wanted":"many"}}}"#).await;
    assert_eq!(written.code, 200, "{}", written.text);
    let url = format!("{TABS}/t/scale");
    for answer in [harness.get(&url).await, harness.put(&url, &scale(r#","spec":{"replicas":4}"#)).await] {
        let message = answer.at("message");
        assert_eq!(message, ".spec.pods.wanted accessor error: many is of the type string, expected int64");
        assert_eq!(answer.code, 500);
    }
}

#[tokio::test]
async fn field_owners_are_the_same_in_the_scale_and_in_the_object() {
    let harness = with_tab().await;
    let (one, url) = (format!("{TABS}/t"), format!("{TABS}/t/scale"));
    let applied = tab("v1", r#""pods":{"wanted":6}"#);
    assert_eq!(harness.patch(&format!("{one}?fieldManager=app&force=true"), APPLY, &applied).await.code, 200);
    let owned = |text: String| text.contains(r#""manager":"app","operation":"Apply""#);
    let applied_scale = scale(r#","spec":{"replicas":7}"#);
    let refused = harness.patch(&format!("{url}?fieldManager=hpa"), APPLY, &applied_scale).await;
    assert_eq!((refused.code, refused.at("reason").as_str()), (409, "Conflict"), "{}", refused.text);
    assert!(owned(harness.get(&one).await.text));
    let other = harness
        .patch(
            &format!("{}/t?fieldManager=two", TABS.replace("/v1/", "/v2/")),
            MERGE,
            r#"{"spec":{"text":"y"}}"#,
        )
        .await;
    assert_eq!(other.code, 200);
    let scaled = harness.patch(&format!("{url}?fieldManager=hpa"), MERGE, r#"{"spec":{"replicas":7}}"#).await;
    assert_eq!(scaled.code, 200);
    let object = harness.get(&one).await;
    assert!(!owned(object.text.clone()), "a manager without fields is removed: {}", object.text);
    assert!(object.text.contains(r#""manager":"two""#), "managers of other versions stay: {}", object.text);
    assert!(object.text.contains(r#""subresource":"scale""#), "{}", object.text);
}

#[tokio::test]
async fn a_status_update_changes_only_the_status() {
    let harness = with_tab().await;
    let url = format!("{TABS}/t/status");
    let body = r#"{"metadata":{"uid":"u","generation":9,"labels":{"a":"b"},"finalizers":["x.io/y"],"deletionTimestamp":"2001-01-01T00:00:00Z"},
        "spec":{"text":"no"},"status":{"text":"up"}}"#;
    let before = harness.get(&format!("{TABS}/t")).await;
    let written = harness.patch(&url, MERGE, body).await;
    assert_eq!((written.code, written.at("status.text").as_str()), (200, "up"), "{}", written.text);
    for field in ["metadata.uid", "metadata.generation", "metadata.labels", "metadata.finalizers", "spec"] {
        assert_eq!(written.at(field), before.at(field), "{field}");
    }
    let ignored =
        harness.patch(&format!("{TABS}/t"), MERGE, r#"{"status":{"text":"down"},"spec":{"text":"y"}}"#).await;
    assert_eq!((ignored.at("status.text").as_str(), ignored.at("metadata.generation").as_str()), ("up", "2"));
    let gone = harness.patch(&url, JSON_PATCH, r#"[{"op":"remove","path":"/status"}]"#).await;
    assert!(!gone.object().at(&["status"]).is_present(), "{}", gone.text);
    let applied = harness
        .patch(
            &format!("{TABS}/none/status?fieldManager=m"),
            APPLY,
            &tab("v1", "").replace("\"t\"", "\"none\""),
        )
        .await;
    assert_eq!(applied.code, 404);
    assert_eq!(
        harness.put(&url, &tab("v1", "")).await.at("details.causes.0.field"),
        "metadata.resourceVersion"
    );
}

#[tokio::test]
async fn a_patch_that_removes_the_version_of_an_object_or_its_status_is_refused() {
    let harness = with_tab().await;
    for url in [format!("{TABS}/t"), format!("{TABS}/t/status")] {
        for (kind, patch) in [
            (JSON_PATCH, r#"[{"op":"remove","path":"/apiVersion"}]"#),
            (MERGE, r#"{"apiVersion":null}"#),
            (MERGE, r#"{"apiVersion":""}"#),
        ] {
            let patched = harness.patch(&url, kind, patch).await;
            assert_eq!(patched.code, 422, "{url} {patch}: {}", patched.text);
            assert_eq!(patched.at("details.causes.0.field"), "apiVersion", "{url} {patch}");
        }
    }
    // A scale has a separate version, which is not stored.
    let scaled = harness.patch(&format!("{TABS}/t/scale"), MERGE, r#"{"apiVersion":null}"#).await;
    assert_eq!(scaled.code, 200, "{}", scaled.text);
    let scaled = harness.patch(&format!("{TABS}/t/scale"), MERGE, r#"{"metadata":{"namespace":null}}"#).await;
    assert_eq!(scaled.code, 200, "{}", scaled.text);
}

#[tokio::test]
async fn objects_of_a_terminating_definition_cannot_be_created() {
    let harness = with_tab().await;
    harness.patch(&format!("{TABS}/t"), MERGE, r#"{"metadata":{"finalizers":["x.io/y"]}}"#).await;
    let crd = format!("{CRDS}/crontabs.stable.example.com");
    harness
        .patch(&crd, MERGE, r#"{"metadata":{"finalizers":["customresourcecleanup.apiextensions.k8s.io"]}}"#)
        .await;
    assert_eq!(harness.delete(&crd).await.code, 200);
    let new = tab("v1", "").replace("\"t\"", "\"new\"");
    let reason = r#"crontabs.stable.example.com "new" is forbidden: create not allowed while custom resource definition is terminating"#;
    let created = harness.request("POST", TABS, JSON, JSON, &new).await;
    assert_eq!((created.code, created.at("message").as_str()), (403, reason));
    let applied = harness.patch(&format!("{TABS}/new?fieldManager=m"), APPLY, &new).await;
    assert_eq!((applied.code, applied.at("message").as_str()), (403, reason));
    assert_eq!(harness.patch(&format!("{TABS}/t"), MERGE, r#"{"spec":{"text":"z"}}"#).await.code, 200);
}

#[tokio::test]
async fn defaults_of_the_status_apply_although_the_sent_status_is_dropped() {
    let schema = r#"{"type":"object","properties":{"status":{"type":"object","default":{"seen":-1},
        "properties":{"seen":{"type":"integer"}}}}}"#;
    let version = format!(
        r#"{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{schema}}},"subresources":{{"status":{{}}}}}}"#
    );
    let harness = open_with_definition(&version).await;
    let url = format!("{TABS}/t");
    let body = r#"{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"t"},"status":{"seen":4}}"#;
    let created = harness.post(TABS, body).await;
    assert_eq!((created.code, created.at("status").as_str()), (201, r#"{"seen":-1}"#), "{}", created.text);
    let patched =
        harness.patch(&url, MERGE, r#"{"metadata":{"labels":{"a":"b"}},"status":{"seen":5}}"#).await;
    assert_eq!((patched.code, patched.at("status").as_str()), (200, r#"{"seen":-1}"#));
    assert_eq!(harness.get(&url).await.at("status"), r#"{"seen":-1}"#);
    let applied = body.replace("\"t\"", "\"u\"");
    let made = harness.patch(&format!("{TABS}/u?fieldManager=m"), APPLY, &applied).await;
    assert_eq!((made.code, made.at("status").as_str()), (201, r#"{"seen":-1}"#), "{}", made.text);
}
