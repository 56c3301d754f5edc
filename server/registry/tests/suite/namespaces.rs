//! Namespaces: phases, finalizers, and creates inside them.

use crate::harness::{Harness, MERGE, object};

const URL: &str = "/api/v1/namespaces";

#[tokio::test]
async fn a_new_namespace_is_active_and_has_its_finalizer_and_a_label_with_its_name() {
    let harness = Harness::open().await;
    let body = r#"{"metadata":{"name":"n","labels":{"kubernetes.io/metadata.name":"lie"}},"status":{"phase":"Terminating"}}"#;
    let reply = harness.post(URL, body).await;
    assert_eq!(
        (reply.at("status.phase").as_str(), reply.at("spec.finalizers").as_str()),
        ("Active", r#"["kubernetes"]"#)
    );
    assert!(reply.text.contains(r#""kubernetes.io/metadata.name":"n""#));
    let dotted = harness.post(URL, &object("Namespace", "a.b", "")).await;
    assert_eq!(dotted.at("details.causes.0.message"), "Invalid value: \"a.b\": must not contain dots");
}

#[tokio::test]
async fn a_delete_terminates_a_namespace_and_finalize_removes_the_namespace() {
    let harness = Harness::open().await;
    harness.post(URL, &object("Namespace", "n", "")).await;
    let marked = harness.delete(&format!("{URL}/n")).await;
    assert_eq!((marked.code, marked.at("status.phase").as_str()), (200, "Terminating"));
    assert_eq!(marked.at("metadata.deletionGracePeriodSeconds"), "\"\"");
    assert_eq!(harness.delete(&format!("{URL}/n")).await.text, marked.text);
    let inside = harness.post(&format!("{URL}/n/configmaps"), &object("ConfigMap", "late", "")).await;
    assert_eq!((inside.code, inside.at("details.causes.0.reason").as_str()), (403, "NamespaceTerminating"));
    assert_eq!(
        inside.at("message"),
        "configmaps \"late\" is forbidden: unable to create new content in namespace n because it is being terminated"
    );
    assert_eq!(harness.get(&format!("{URL}?fieldSelector=status.phase%3DTerminating")).await.names(), ["n"]);
    let body = r#"{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n"},"spec":{"finalizers":[]}}"#;
    let gone = harness.put(&format!("{URL}/n/finalize"), body).await;
    assert_eq!((gone.code, gone.at("spec").as_str()), (200, "{}"));
    assert_eq!(harness.get(&format!("{URL}/n")).await.code, 404);
}

#[tokio::test]
async fn an_update_changes_only_metadata_and_system_namespaces_cannot_be_deleted() {
    let harness = Harness::open().await;
    harness.post(URL, &object("Namespace", "n", "")).await;
    let reply = harness
        .patch(
            &format!("{URL}/n"),
            MERGE,
            r#"{"metadata":{"labels":{"a":"b"}},"spec":{"finalizers":[]},"status":{"phase":"Terminating"}}"#,
        )
        .await;
    assert_eq!(
        (reply.at("spec.finalizers").as_str(), reply.at("status.phase").as_str()),
        (r#"["kubernetes"]"#, "Active")
    );
    assert_eq!(reply.at("metadata.labels.a"), "b");
    let system = harness.delete(&format!("{URL}/default")).await;
    assert_eq!(
        (system.code, system.at("message").as_str()),
        (403, "namespaces \"default\" is forbidden: this namespace may not be deleted")
    );
    let status =
        harness.patch(&format!("{URL}/n/status"), MERGE, r#"{"status":{"phase":"Terminating"}}"#).await;
    assert_eq!(status.at("details.causes.0.field"), "status.Phase");
}

#[tokio::test]
async fn a_terminating_namespace_refuses_bindings_evictions_and_tokens_but_not_access_reviews() {
    let harness = Harness::open().await;
    harness.post(URL, &object("Namespace", "n", "")).await;
    harness.post(&format!("{URL}/n/serviceaccounts"), &object("ServiceAccount", "default", "")).await;
    let spec = r#","spec":{"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}"#;
    assert_eq!(harness.post(&format!("{URL}/n/pods"), &object("Pod", "p", spec)).await.code, 201);
    assert_eq!(harness.delete(&format!("{URL}/n")).await.code, 200);
    let binding = object("Binding", "p", r#","target":{"kind":"Node","name":"x"}"#);
    let eviction = object("Eviction", "p", "").replace(r#""v1""#, r#""policy/v1""#);
    for (path, body, of) in [
        ("pods/p/binding", &*binding, r#"pods "p""#),
        ("bindings", &*binding, r#"bindings "p""#),
        ("pods/p/eviction", &*eviction, r#"pods "p""#),
        ("serviceaccounts/default/token", r#"{"spec":{}}"#, r#"serviceaccounts "default""#),
    ] {
        let refused = harness.post(&format!("{URL}/n/{path}"), body).await;
        let expected = format!(
            "{of} is forbidden: unable to create new content in namespace n because it is being terminated"
        );
        assert_eq!((refused.code, refused.at("message")), (403, expected), "{path}");
        assert_eq!(refused.at("details.causes.0.reason"), "NamespaceTerminating", "{path}");
    }
    let review =
        r#"{"spec":{"user":"x","resourceAttributes":{"verb":"get","resource":"pods","namespace":"NS"}}}"#;
    for namespace in ["n", "missing"] {
        let path = format!("/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews");
        assert_eq!(harness.post(&path, &review.replace("NS", namespace)).await.code, 201, "{namespace}");
    }
}
