//! Details of responses of kube-apiserver 1.36.3, recorded in a table: field owners, and the order of errors.

use crate::harness::{Harness, JSON, MERGE, object};

const NAMESPACE: &str = "/api/v1/namespaces/default";
const APPLY: &str = "application/apply-patch+yaml";

/// Causes of an invalid object, as `field: message`.
fn causes(reply: &crate::harness::Reply) -> Vec<String> {
    let causes = reply.object();
    let causes = causes.at(&["details", "causes"]);
    causes.items().map(|at| format!("{}: {}", at.field("field").str(), at.field("message").str())).collect()
}

#[tokio::test]
async fn string_data_of_a_secret_is_owned_as_data_unless_it_is_applied() {
    let harness = Harness::open().await;
    let secrets = format!("{NAMESPACE}/secrets");
    let body = object("Secret", "s1", r#","stringData":{"a":"b"},"data":{"c":"ZA=="}"#);
    let created = harness.post(&secrets, &body).await;
    assert!(created.text.contains(r#""f:data":{".":{},"f:a":{},"f:c":{}}"#), "{created:?}");
    let url = format!("{secrets}/s1");
    let merged = harness.patch(&url, MERGE, r#"{"stringData":{"e":"f"}}"#).await;
    assert!(merged.text.contains(r#""f:data":{".":{},"f:a":{},"f:c":{},"f:e":{}}"#), "{merged:?}");
    let put = harness.put(&url, &object("Secret", "s1", r#","stringData":{"z":"b"}"#)).await;
    assert!(put.text.contains(r#""f:data":{".":{},"f:z":{}}"#), "{put:?}");
    let url = format!("{secrets}/s2?fieldManager=m");
    let applied = harness.patch(&url, APPLY, &object("Secret", "s2", r#","stringData":{"a":"b"}"#)).await;
    assert!(applied.text.contains(r#""f:stringData":{"f:a":{}}"#), "{applied:?}");
    let applied = harness.patch(&url, APPLY, &object("Secret", "s2", r#","stringData":{"q":"b"}"#)).await;
    assert!(applied.text.contains(r#""data":{"a":"Yg==","q":"Yg=="}"#), "{applied:?}");
}

#[tokio::test]
async fn errors_that_upstream_repeats_are_repeated() {
    let harness = Harness::open().await;
    let quota = object("ResourceQuota", "q", r#","spec":{"hard":{"foo":"1"}}"#);
    let reply = harness.post(&format!("{NAMESPACE}/resourcequotas"), &quota).await;
    assert_eq!(
        causes(&reply),
        [
            r#"spec.hard[foo]: Invalid value: "foo": must be a standard resource type or fully qualified"#,
            r#"spec.hard[foo]: Invalid value: "foo": must be a standard resource for quota"#,
        ]
    );
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    let event = r#"{"metadata":{"name":"e"},"eventTime":"2026-01-02T03:04:05.000000Z","reportingController":"a/b","reportingInstance":"i","action":"a","reason":"r","type":"Normal","regarding":{"namespace":"default"}}"#;
    assert_eq!(harness.post(events, event).await.code, 201);
    let change = r#"{"reason":"s","action":"z","type":"Warning","note":"n"}"#;
    let reply = harness.patch(&format!("{events}/e"), MERGE, change).await;
    let immutable =
        |field: &str, value: &str| format!("{field}: Invalid value: \"{value}\": field is immutable");
    assert_eq!(
        causes(&reply),
        [
            immutable("reason", "s"),
            immutable("message", "n"),
            immutable("reason", "s"),
            immutable("type", "Warning"),
            immutable("action", "z")
        ]
    );
    let volume = object(
        "PersistentVolume",
        "v",
        r#","spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"nfs":{"server":"s","path":""}}"#,
    );
    let reply = harness.post("/api/v1/persistentvolumes", &volume).await;
    assert_eq!(
        causes(&reply),
        ["spec.nfs.path: Required value", "spec.nfs.path: Invalid value: \"\": must be an absolute path"]
    );
}

#[tokio::test]
async fn the_error_for_a_large_config_map_has_no_field() {
    let harness = Harness::open().await;
    let body = format!(r#","data":{{"a":"{}"}}"#, "x".repeat(1_048_577));
    let reply = harness.post(&format!("{NAMESPACE}/configmaps"), &object("ConfigMap", "big", &body)).await;
    assert_eq!(causes(&reply), ["[]: Too long: may not be more than 1048576 bytes"]);
}

#[tokio::test]
async fn the_condition_of_a_gated_pod_has_a_time() {
    let harness = Harness::open().await;
    harness.post(&format!("{NAMESPACE}/serviceaccounts"), &object("ServiceAccount", "default", "")).await;
    let pod = object(
        "Pod",
        "p",
        r#","spec":{"schedulingGates":[{"name":"a.b/c"}],"containers":[{"name":"a","image":"b"}]}"#,
    );
    let reply = harness.post(&format!("{NAMESPACE}/pods"), &pod).await;
    let created = reply.at("metadata.creationTimestamp");
    assert_eq!(reply.at("status.conditions.0.lastTransitionTime"), created, "{reply:?}");
}

#[tokio::test]
async fn quantities_are_kept_as_written_where_upstream_keeps_them() {
    let harness = Harness::open().await;
    for (written, kept) in [
        ("8Ei", "9223372036854775807"),
        ("0.0000000000000000001", "1m"),
        ("1e30", "1e30"),
        ("+1", "+1"),
        ("5.", "5."),
        ("0001", "0001"),
        ("1000m", "1"),
        ("7.9Ei", "9108079886394091110400m"),
    ] {
        let body = format!(r#","spec":{{"hard":{{"limits.memory":"{written}"}}}}"#);
        let url = format!("{NAMESPACE}/resourcequotas?dryRun=All");
        let reply = harness.post(&url, &object("ResourceQuota", "q", &body)).await;
        let hard = reply.object();
        assert_eq!(hard.at(&["spec", "hard", "limits.memory"]).str(), kept, "{written}: {reply:?}");
    }
}

#[tokio::test]
async fn a_watch_of_one_name_refuses_a_selector_for_another_name() {
    let harness = Harness::open().await;
    let url = "/api/v1/watch/namespaces/default/configmaps/a?fieldSelector=metadata.name%3Db";
    let reply = harness.get(url).await;
    assert_eq!(
        (reply.code, reply.at("message").as_str()),
        (400, "fieldSelector metadata.name doesn't match requested name")
    );
}

#[tokio::test]
async fn media_types_of_patches_are_compared_as_written() {
    let harness = Harness::open().await;
    let maps = format!("{NAMESPACE}/configmaps");
    assert_eq!(
        harness.request("POST", &maps, JSON, "APPLICATION/JSON", &object("ConfigMap", "a", "")).await.code,
        201
    );
    for media in ["Application/Merge-Patch+Json", "application/json, application/yaml"] {
        assert_eq!(harness.patch(&format!("{maps}/a"), media, "{}").await.code, 415, "{media}");
    }
    assert_eq!(harness.request("GET", &format!("{maps}/a"), "APPLICATION/JSON", "", "").await.code, 406);
}

#[tokio::test]
async fn signed_integers_beyond_64_bits_are_parsed_consistently() {
    let harness = Harness::open().await;
    let body = |rest: &str| {
        format!(
            r#"{{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{{"name":"r"{rest}}},"revision":1,"data":{{"n":[9223372036854775808,18446744073709551615]}}}}"#
        )
    };
    let url = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let created = harness.post(url, &body("")).await;
    assert_eq!(created.code, 201, "{created:?}");
    let again = harness.put(&format!("{url}/r"), &body("")).await;
    assert_eq!(again.at("metadata.resourceVersion"), created.at("metadata.resourceVersion"), "{again:?}");
}

#[tokio::test]
async fn a_token_request_in_a_missing_namespace_reports_the_namespace() {
    let harness = Harness::open().await;
    let reply = harness.post("/api/v1/namespaces/nope/serviceaccounts/default/token", r#"{"spec":{}}"#).await;
    assert_eq!((reply.code, reply.at("message").as_str()), (404, "namespaces \"nope\" not found"));
}
