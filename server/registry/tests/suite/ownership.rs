//! Field ownership: managed fields of every write, and server-side apply.

use crate::harness::{Harness, JSON, JSON_PATCH, MERGE, Reply, object};

const APPLY: &str = "application/apply-patch+yaml";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(data: &str) -> String {
    object("ConfigMap", "m", &format!(r#","data":{{{data}}}"#))
}

async fn apply(harness: &Harness, query: &str, data: &str) -> Reply {
    harness.patch(&format!("{MAPS}/m?{query}"), APPLY, &map(data)).await
}

/// Owners as `manager operation subresource` and the fields below `f:data`, one entry each.
fn owners(reply: &Reply) -> Vec<String> {
    let object = reply.object();
    let entry = |entry: portico_machinery::Cursor<'_>| {
        let data: Vec<&str> = entry
            .field("fieldsV1")
            .field("f:data")
            .entries()
            .map(|(k, _)| k.trim_start_matches("f:"))
            .collect();
        let message = ["manager", "operation", "subresource"].map(|f| entry.field(f).str().to_owned());
        format!("{} {}", message.join(" ").trim_end(), data.join(",")).trim_end().to_owned()
    };
    // Entries of the same second are ordered by name, others by time.
    let mut owners: Vec<String> = object.metadata().field("managedFields").items().map(entry).collect();
    owners.sort();
    owners
}

#[tokio::test]
async fn every_write_assigns_changed_fields_to_its_manager() {
    let harness = Harness::open().await;
    let created = harness.post(MAPS, &map(r#""a":"1","b":"2""#)).await;
    assert_eq!(owners(&created), ["suite Update .,a,b"]);
    let patched = harness.patch(&format!("{MAPS}/m?fieldManager=p"), MERGE, r#"{"data":{"a":"3"}}"#).await;
    assert_eq!(owners(&patched), ["p Update a", "suite Update .,b"]);
    // A write without managedFields keeps the entries; removed fields have no owner.
    let replaced = harness.put(&format!("{MAPS}/m?fieldManager=r"), &map(r#""a":"3","c":"4""#)).await;
    assert_eq!(owners(&replaced), ["p Update a", "r Update c", "suite Update"]);
    let version = replaced.at("metadata.resourceVersion");
    let same = harness.put(&format!("{MAPS}/m?fieldManager=s"), &map(r#""a":"3","c":"4""#)).await;
    assert_eq!((same.at("metadata.resourceVersion"), owners(&same)), (version, owners(&replaced)));
    let reset = harness
        .patch(
            &format!("{MAPS}/m"),
            JSON_PATCH,
            r#"[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]"#,
        )
        .await;
    assert!(owners(&reset).is_empty());
    let untracked = harness.patch(&format!("{MAPS}/m"), MERGE, r#"{"data":{"a":"9"}}"#).await;
    assert!(owners(&untracked).is_empty(), "tracking begins with a create or an apply");
    let applied = apply(&harness, "fieldManager=x&force=true", r#""c":"5""#).await;
    assert_eq!(owners(&applied), ["before-first-apply Update .,a", "x Apply c"]);
}

#[tokio::test]
async fn appliers_share_fields_conflict_and_release_them() {
    let harness = Harness::open().await;
    assert_eq!(apply(&harness, "fieldManager=a", r#""k":"v","l":"w""#).await.code, 201);
    let again = apply(&harness, "fieldManager=a", r#""k":"v","l":"w""#).await;
    assert_eq!((again.code, owners(&again)), (200, vec!["a Apply k,l".to_owned()]));
    assert_eq!(owners(&apply(&harness, "fieldManager=b", r#""k":"v""#).await), ["a Apply k,l", "b Apply k"]);
    let refused = apply(&harness, "fieldManager=c", r#""k":"x""#).await;
    assert_eq!(
        (refused.code, refused.at("message")),
        (409, "Apply failed with 2 conflicts: conflicts with \"a\":\n- .data.k\nconflicts with \"b\":\n- .data.k".to_owned())
    );
    let forced = apply(&harness, "fieldManager=c&force=true", r#""k":"x""#).await;
    assert_eq!(owners(&forced), ["a Apply l", "c Apply k"]);
    let given_up = apply(&harness, "fieldManager=a", "").await;
    assert_eq!(
        (owners(&given_up), given_up.at("data")),
        (vec!["a Apply".to_owned(), "c Apply k".to_owned()], r#"{"k":"x"}"#.to_owned())
    );
    let dry = apply(&harness, "fieldManager=a&dryRun=All", r#""dry":"run""#).await;
    assert_eq!(dry.at("data.dry"), "run");
    assert_eq!(harness.get(&format!("{MAPS}/m")).await.at("data"), r#"{"k":"x"}"#);
}

#[tokio::test]
async fn invalid_configurations_are_refused() {
    let harness = Harness::open().await;
    let url = format!("{MAPS}/m?fieldManager=a");
    let rows = [
        (format!("{MAPS}/m"), map(""), 422),
        (url.clone(), r#"{"data":{"k":"v"}}"#.to_owned(), 400),
        (url.clone(), object("Secret", "m", ""), 400),
        (url.clone(), object("ConfigMap", "other", ""), 400),
        (url.clone(), object("ConfigMap", "m", r#","dota":{}"#), 500),
        (url.clone(), object("ConfigMap", "m", r#","metadata":{"name":"m","managedFields":[]}"#), 400),
        (url.clone(), object("ConfigMap", "m", r#","metadata":{"name":"m","uid":"x"}"#), 409),
        (url.clone(), "a: b: c".to_owned(), 400),
        (url.clone(), "- a".to_owned(), 400),
        (format!("{url}&fieldValidation=Strict"), map(r#""a":"b","a":"c""#), 400),
        (format!("{MAPS}/m/status?fieldManager=a"), map(""), 404),
    ];
    for (url, body, code) in rows {
        assert_eq!(harness.patch(&url, APPLY, &body).await.code, code, "{url} {body}");
    }
    assert_eq!(harness.get(&format!("{MAPS}/m")).await.code, 404);
    let warned = harness.patch(&url, APPLY, &map(r#""a":"b","a":"c""#)).await;
    assert_eq!((warned.code, warned.warnings.len()), (201, 1), "{warned:?}");
}

#[tokio::test]
async fn the_status_has_separate_owners() {
    let harness = Harness::open().await;
    let node =
        object("Node", "n", r#","metadata":{"name":"n","labels":{"a":"b"}},"status":{"phase":"Running"}"#);
    let created = harness.post("/api/v1/nodes", &node).await;
    assert!(!created.text.contains("f:status"), "{created:?}");
    let status = r#"{"status":{"phase":"Pending"},"spec":{"unschedulable":true}}"#;
    let written = harness.patch("/api/v1/nodes/n/status?fieldManager=kubelet", MERGE, status).await;
    let entries = written.object().metadata().field("managedFields").items().count();
    assert!(written.text.contains(r#""f:status":{"f:phase":{}}},"subresource":"status""#), "{written:?}");
    assert!(!written.text.contains("f:unschedulable") && entries == 2, "{written:?}");
}

#[tokio::test]
async fn server_side_apply_takes_over_client_side_fields_and_updates_the_annotation() {
    let harness = Harness::open().await;
    let noted = r#"{\"apiVersion\":\"v1\",\"data\":{\"k\":\"v\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\"}}\n"#;
    let body = object(
        "ConfigMap",
        "m",
        &format!(
            r#","metadata":{{"name":"m","annotations":{{"kubectl.kubernetes.io/last-applied-configuration":"{noted}"}}}},"data":{{"k":"v","l":"w"}}"#
        ),
    );
    assert_eq!(
        harness
            .request("POST", &format!("{MAPS}?fieldManager=kubectl-client-side-apply"), JSON, JSON, &body)
            .await
            .code,
        201
    );
    assert_eq!(apply(&harness, "fieldManager=other", r#""k":"x""#).await.code, 409);
    assert_eq!(
        apply(&harness, "fieldManager=kubectl", r#""l":"x""#).await.code,
        409,
        "the annotation does not contain the value of this field"
    );
    let taken = apply(&harness, "fieldManager=kubectl", r#""k":"x""#).await;
    assert_eq!(owners(&taken), ["kubectl Apply k", "kubectl-client-side-apply Update .,l"]);
    let annotation = taken.object();
    let annotation = annotation.annotation("kubectl.kubernetes.io/last-applied-configuration").unwrap();
    assert_eq!(
        annotation,
        "{\"apiVersion\":\"v1\",\"data\":{\"k\":\"x\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\"}}\n"
    );
}

#[tokio::test]
async fn managers_of_another_version_are_compared_in_that_version() {
    let harness = Harness::open().await;
    let autoscalers =
        |version: &str| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers");
    let body = |version: &str, most: u32| {
        format!(
            r#"{{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/{version}","metadata":{{"name":"h"}},"spec":{{"maxReplicas":{most},"scaleTargetRef":{{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}}}}}"#
        )
    };
    let url = |version: &str, manager: &str| format!("{}/h?fieldManager={manager}", autoscalers(version));
    assert_eq!(harness.patch(&url("v2", "one"), APPLY, &body("v2", 3)).await.code, 201);
    let shared = harness.patch(&url("v1", "two"), APPLY, &body("v1", 3)).await;
    assert_eq!(owners(&shared), ["one Apply", "two Apply"], "{shared:?}");
    let refused = harness.patch(&url("v1", "two"), APPLY, &body("v1", 4)).await;
    assert_eq!(
        refused.at("message"),
        "Apply failed with 1 conflict: conflict with \"one\": .spec.maxReplicas"
    );
}
