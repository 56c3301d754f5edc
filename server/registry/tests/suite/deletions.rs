//! Deletions: preconditions, finalizers, propagation, collections.

use std::sync::Arc;

use portico_auth::authz::AlwaysAllow;

use crate::harness::{Harness, JSON, MERGE, object};
use crate::test_doubles::Recorder;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn object_with_finalizer(name: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","finalizers":["example.com/hold"]}}}}"#)
}

#[tokio::test]
async fn a_deletion_returns_a_status_and_404_for_a_missing_object() {
    let harness = Harness::open().await;
    let created = harness.post(MAPS, &object("ConfigMap", "a", "")).await;
    let dry = harness.delete(&format!("{MAPS}/a?dryRun=All")).await;
    let reply = harness.delete(&format!("{MAPS}/a")).await;
    assert_eq!(reply.text, dry.text);
    assert_eq!((reply.at("status").as_str(), reply.at("details.kind").as_str()), ("Success", "configmaps"));
    assert_eq!(reply.at("details.uid"), created.at("metadata.uid"));
    assert_eq!(harness.delete(&format!("{MAPS}/a")).await.code, 404);
}

#[tokio::test]
async fn preconditions_are_checked_and_reported() {
    let harness = Harness::open().await;
    harness.post(MAPS, &object("ConfigMap", "a", "")).await;
    for body in [r#"{"preconditions":{"uid":"x"}}"#, r#"{"preconditions":{"resourceVersion":"1"}}"#] {
        let reply = harness.request("DELETE", &format!("{MAPS}/a"), JSON, JSON, body).await;
        assert_eq!((reply.code, reply.at("details.kind").as_str()), (409, "ConfigMap"), "{reply:?}");
        assert!(reply.at("message").contains("in the precondition ("), "{reply:?}");
    }
    assert_eq!(harness.get(&format!("{MAPS}/a")).await.code, 200);
}

#[tokio::test]
async fn a_finalizer_keeps_the_object_until_it_is_removed() {
    let harness = Harness::open().await;
    let url = format!("{MAPS}/a");
    harness.post(MAPS, &object_with_finalizer("a")).await;
    let marked = harness.delete(&url).await;
    assert_eq!(
        (marked.at("kind").as_str(), marked.at("metadata.deletionGracePeriodSeconds").as_str()),
        ("ConfigMap", "0")
    );
    assert_eq!(harness.delete(&url).await.text, marked.text);
    let again = harness.post(MAPS, &object("ConfigMap", "a", "")).await;
    assert_eq!(again.at("message"), "object is being deleted: configmaps \"a\" already exists");
    let more = harness
        .patch(&url, MERGE, r#"{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}"#)
        .await;
    assert_eq!((more.code, more.at("details.causes.0.reason").as_str()), (422, "FieldValueForbidden"));
    let unmark = harness.patch(&url, MERGE, r#"{"metadata":{"deletionTimestamp":null}}"#).await;
    assert_eq!(unmark.at("metadata.deletionTimestamp"), marked.at("metadata.deletionTimestamp"));
    let last = harness.patch(&url, MERGE, r#"{"metadata":{"finalizers":null},"data":{"k":"v"}}"#).await;
    assert_eq!((last.code, last.at("data.k").as_str()), (200, "v"));
    assert_eq!(harness.get(&url).await.code, 404);
}

#[tokio::test]
async fn a_body_overrides_the_query_and_propagation_policies_replace_finalizers() {
    let harness = Harness::open().await;
    let url = format!("{MAPS}/a");
    harness.post(MAPS, &object("ConfigMap", "a", "")).await;
    let body = r#"{"propagationPolicy":"Orphan"}"#;
    let reply = harness.request("DELETE", &format!("{url}?dryRun=All"), JSON, JSON, body).await;
    assert_eq!(reply.at("metadata.finalizers"), r#"["orphan"]"#);
    let reply = harness.delete(&format!("{url}?propagationPolicy=Foreground")).await;
    assert_eq!(reply.at("metadata.finalizers"), r#"["foregroundDeletion"]"#);
    let reply = harness.delete(&format!("{url}?propagationPolicy=Background")).await;
    assert_eq!(reply.at("status"), "Success");
}

#[tokio::test]
async fn options_that_contradict_each_other_are_refused() {
    let harness = Harness::open().await;
    harness.post(MAPS, &object("ConfigMap", "a", "")).await;
    for (query, code) in [
        ("propagationPolicy=Upwards", 422),
        ("propagationPolicy=Orphan&orphanDependents=true", 422),
        ("dryRun=Some", 422),
        ("gracePeriodSeconds=soon", 400),
    ] {
        assert_eq!(harness.delete(&format!("{MAPS}/a?{query}")).await.code, code, "{query}");
    }
    for body in ["{", r#"{"kind":"ConfigMap","apiVersion":"v1"}"#] {
        assert_eq!(harness.request("DELETE", &format!("{MAPS}/a"), JSON, JSON, body).await.code, 400);
    }
}

#[tokio::test]
async fn a_collection_delete_uses_the_selector_and_respects_finalizers() {
    let harness = Harness::open().await;
    harness.post(MAPS, &object("ConfigMap", "other", "")).await;
    for n in 0..150 {
        harness.post(MAPS, &format!(r#"{{"metadata":{{"name":"m{n:03}","labels":{{"g":"1"}}}}}}"#)).await;
    }
    harness
        .post(MAPS, &object_with_finalizer("stays").replace("\"name\"", "\"labels\":{\"g\":\"1\"},\"name\""))
        .await;
    let deleted = harness.delete(&format!("{MAPS}?labelSelector=g%3D1")).await;
    assert_eq!(
        (deleted.code, deleted.at("kind").as_str(), deleted.names().len()),
        (200, "ConfigMapList", 151)
    );
    assert_eq!(harness.get(MAPS).await.names(), ["other", "stays"]);
}

#[tokio::test]
async fn deletion_of_a_service_returns_the_service_and_deletes_its_endpoints() {
    let harness = Harness::open().await;
    let services = "/api/v1/namespaces/default/services";
    harness.post(services, &object("Service", "s", r#","spec":{"ports":[{"port":80}]}"#)).await;
    let endpoints = "/api/v1/namespaces/default/endpoints";
    for name in ["s", "other"] {
        harness.post(endpoints, &object("Endpoints", name, "")).await;
    }
    let deleted = harness.delete(&format!("{services}/s")).await;
    assert_eq!(harness.get(endpoints).await.names(), ["other"]);
    assert_eq!((deleted.code, deleted.at("kind").as_str()), (200, "Service"));
}

#[tokio::test]
async fn a_second_delete_of_a_pod_after_its_grace_period_changes_nothing() {
    let harness = Harness::open().await;
    harness
        .post("/api/v1/namespaces/default/serviceaccounts", &object("ServiceAccount", "default", ""))
        .await;
    let pods = "/api/v1/namespaces/default/pods";
    let spec = r#"{"nodeName":"n","containers":[{"name":"c","image":"i"}]}"#;
    let pod = format!(r#"{{"metadata":{{"name":"a","finalizers":["example.com/hold"]}},"spec":{spec}}}"#);
    assert_eq!(harness.post(pods, &pod).await.code, 201);
    let url = format!("{pods}/a?gracePeriodSeconds=0");
    let marked = harness.delete(&url).await;
    assert_eq!(marked.at("metadata.deletionGracePeriodSeconds"), "0");
    assert_eq!(harness.delete(&url).await.text, marked.text);
}

#[tokio::test]
async fn a_refused_deletion_of_a_collection_cancels_none_in_flight() {
    let admission = Arc::new(Recorder::refusing_deletion("b"));
    let harness = Harness::open_with_admission(admission, Arc::new(AlwaysAllow)).await;
    for name in ["a", "b", "c", "d"] {
        assert_eq!(harness.post(MAPS, &object("ConfigMap", name, "")).await.code, 201);
    }
    assert_eq!(harness.delete(MAPS).await.code, 403);
    assert_eq!(harness.get(MAPS).await.names(), ["b"]);
}
