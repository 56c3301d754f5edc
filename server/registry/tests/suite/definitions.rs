//! CustomResourceDefinitions: defaults, validation, allowed changes and deletion.

use portico_machinery::Object;

use crate::harness::{Harness, JSON_PATCH, MERGE, Reply};

const URL: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ONE: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/cogs.parts.example.com";

const SPEC: &str =
    r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"string"}}}}}"#;

/// Version with this name and schema.
fn version(name: &str, storage: bool, schema: &str, more: &str) -> String {
    format!(
        r#"{{"name":"{name}","served":true,"storage":{storage},"schema":{{"openAPIV3Schema":{schema}}}{more}}}"#
    )
}

/// Definition of cogs with these versions and further fields of the spec.
fn cogs(versions: &[String], more: &str) -> String {
    let versions = versions.join(",");
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"cogs.parts.example.com"}},
        "spec":{{"group":"parts.example.com","scope":"Namespaced","names":{{"plural":"cogs","kind":"Cog"}},"versions":[{versions}]{more}}}}}"#
    )
}

fn plain() -> String {
    cogs(&[version("v1", true, SPEC, "")], "")
}

/// Fields and messages of all causes.
fn causes(reply: &Reply) -> Vec<String> {
    let status: Object = reply.object();
    let causes = status.at(&["details", "causes"]);
    let cause = |at: portico_machinery::Cursor<'_>| {
        format!("{}: {}", at.field("field").str(), at.field("message").str())
    };
    causes.items().map(cause).collect()
}

#[tokio::test]
async fn a_minimal_definition_gets_defaults() {
    let harness = Harness::open().await;
    let reply = harness.post(URL, &plain()).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    for (path, expected) in [
        ("spec.names.singular", "cog"),
        ("spec.names.listKind", "CogList"),
        ("spec.conversion.strategy", "None"),
        ("status.storedVersions.0", "v1"),
        ("metadata.generation", "1"),
        ("status.conditions", "null"),
    ] {
        assert_eq!(reply.at(path), expected, "{path}");
    }
}

#[tokio::test]
async fn schemas_are_stored_completely_and_in_canonical_form() {
    let harness = Harness::open().await;
    let schema = r#"{"type":"object","properties":{
        "list":{"type":"array","items":{"type":"string","description":"","x-mine":1,"default":{"not":"validated"},"nullable":false}},
        "map":{"type":"object","additionalProperties":{"type":"integer","title":"n"}},
        "any":{"type":"object","additionalProperties":true},
        "null":{"type":"string","default":null,"example":{"b":1,"a":null}}}}"#;
    let schema = schema.replace(r#","default":{"not":"validated"}"#, "");
    let reply = harness.post(URL, &cogs(&[version("v1", true, &schema, "")], "")).await;
    assert_eq!((reply.code, reply.warnings.len()), (201, 0), "{}", reply.text);
    let properties = reply.object().at(&["spec", "versions"]).items().next().unwrap().field("schema").json();
    let expected = r#"{"openAPIV3Schema":{"type":"object","properties":{"any":{"type":"object","additionalProperties":true},"list":{"type":"array","items":{"type":"string"}},"map":{"type":"object","additionalProperties":{"type":"integer","title":"n"}},"null":{"type":"string","example":{"b":1,"a":null}}}}}"#;
    let sorted = |json: &str| {
        let mut object = Object::from_json(json.as_bytes()).unwrap();
        object.sort_keys();
        String::from_utf8(object.to_json()).unwrap()
    };
    assert_eq!(sorted(&properties), sorted(expected));
}

#[tokio::test]
async fn errors_have_the_paths_of_upstreams_internal_version() {
    let harness = Harness::open().await;
    let bad = r#"{"type":"object","properties":{"a":{}}}"#;
    let missing = "Required value: must not be empty for specified object fields";
    let one = harness.post(URL, &cogs(&[version("v1", true, bad, "")], "")).await;
    assert_eq!(causes(&one), [format!("spec.validation.openAPIV3Schema.properties[a].type: {missing}")]);
    let two = [version("v1", true, SPEC, ""), version("v2", false, bad, "")];
    assert_eq!(
        causes(&harness.post(URL, &cogs(&two, "")).await),
        [format!("spec.versions[1].schema.openAPIV3Schema.properties[a].type: {missing}")]
    );
    let field = r#","selectableFields":[{"jsonPath":".spec.size"}]"#;
    let half = [version("v1", true, SPEC, field), version("v2", false, SPEC, "")];
    let text = "may only be set when `version.schema.openAPIV3Schema` is not included";
    assert_eq!(
        causes(&harness.post(URL, &cogs(&half, "")).await),
        [format!(r#"spec.versions[0].selectableFields: Invalid value: "": {text}"#)]
    );
    let scale = r#","subresources":{"scale":{"specReplicasPath":".spec.n","statusReplicasPath":"x"}}"#;
    assert_eq!(
        causes(&harness.post(URL, &cogs(&[version("v1", true, SPEC, scale)], "")).await),
        [
            r#"spec.subresources.scale.statusReplicasPath: Invalid value: "x": must be a simple json path starting with ."#
        ]
    );
    assert_eq!(harness.get(ONE).await.code, 404);
}

#[tokio::test]
async fn an_update_may_not_remove_stored_versions_or_change_the_name() {
    let harness = Harness::open().await;
    harness.post(URL, &cogs(&[version("v1", true, SPEC, ""), version("v2", false, SPEC, "")], "")).await;
    let swap = r#"[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]"#;
    let reply = harness.patch(ONE, JSON_PATCH, swap).await;
    assert_eq!(
        (reply.at("status.storedVersions"), reply.at("metadata.generation")),
        (r#"["v1","v2"]"#.into(), "2".into())
    );
    let gone = harness.patch(ONE, JSON_PATCH, r#"[{"op":"remove","path":"/spec/versions/0"}]"#).await;
    assert_eq!(gone.code, 422);
    assert!(
        causes(&gone)[0]
            .starts_with(r#"status.storedVersions[0]: Invalid value: "v1": missing from spec.versions"#)
    );
    let other = harness.patch(ONE, MERGE, r#"{"spec":{"group":"other.example.com"}}"#).await;
    assert_eq!(causes(&other), [r#"spec.group: Invalid value: "other.example.com": field is immutable"#]);
    // The definition is not established: its kind and scope may still change.
    let kind = harness.patch(ONE, MERGE, r#"{"spec":{"scope":"Cluster","names":{"kind":"Gear"}}}"#).await;
    assert_eq!(kind.code, 200, "{}", kind.text);
    let established = r#"{"status":{"conditions":[{"type":"Established","status":"True"}]}}"#;
    assert_eq!(harness.patch(&format!("{ONE}/status"), MERGE, established).await.code, 200);
    let settled =
        harness.patch(ONE, MERGE, r#"{"spec":{"scope":"Namespaced","names":{"kind":"Cog"}}}"#).await;
    assert_eq!(
        causes(&settled),
        [
            r#"spec.scope: Invalid value: "Namespaced": field is immutable"#,
            r#"spec.names.kind: Invalid value: "Cog": field is immutable"#,
        ]
    );
}

#[tokio::test]
async fn a_status_update_may_change_metadata_and_shorten_stored_versions() {
    let harness = Harness::open().await;
    harness.post(URL, &plain()).await;
    let status = format!("{ONE}/status");
    let patch = r#"{"metadata":{"finalizers":["a.example.com/b"]},"spec":{"scope":"Cluster"},"status":{"storedVersions":["v9"]}}"#;
    let reply = harness.patch(&status, MERGE, patch).await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    for (path, expected) in [
        ("metadata.finalizers.0", "a.example.com/b"),
        ("spec.scope", "Namespaced"),
        ("status.storedVersions.0", "v9"),
    ] {
        assert_eq!(reply.at(path), expected, "{path}");
    }
    let bad = harness.patch(&status, MERGE, r#"{"status":{"acceptedNames":{"plural":"C"}}}"#).await;
    assert!(causes(&bad)[0].starts_with(r#"status.acceptedNames.plural: Invalid value: "C""#));
}

#[tokio::test]
async fn a_delete_sets_the_deletion_timestamp_and_a_condition() {
    let harness = Harness::open().await;
    harness.post(URL, &plain()).await;
    let reply = harness.delete(&format!("{ONE}?propagationPolicy=Foreground")).await;
    assert_eq!(reply.code, 200);
    assert_eq!(reply.at("metadata.finalizers"), r#"["customresourcecleanup.apiextensions.k8s.io"]"#);
    for (path, expected) in [
        ("status.conditions.0.type", "Terminating"),
        ("status.conditions.0.status", "True"),
        ("status.conditions.0.reason", "InstanceDeletionPending"),
        ("metadata.generation", "1"),
        ("metadata.deletionGracePeriodSeconds", "\"\""),
    ] {
        assert_eq!(reply.at(path), expected, "{path}");
    }
    assert!(!reply.at("metadata.deletionTimestamp").is_empty());
    let again = harness.delete(ONE).await;
    assert_eq!((again.code, again.at("kind")), (200, "CustomResourceDefinition".to_owned()));
}

#[tokio::test]
async fn unknown_formats_cause_a_warning_when_they_are_added() {
    let harness = Harness::open().await;
    let schema = r#"{"type":"object","properties":{"a":{"type":"string","format":"colour"},"b":{"type":"string","format":"date-time"}}}"#;
    let reply = harness.post(URL, &cogs(&[version("v1", true, schema, "")], "")).await;
    assert_eq!(reply.warnings, [r#"unrecognized format "colour""#]);
    let label = harness.patch(ONE, MERGE, r#"{"metadata":{"labels":{"a":"b"}}}"#).await;
    assert_eq!((label.code, label.warnings.len()), (200, 0));
}

#[tokio::test]
async fn a_webhook_has_exactly_one_address_and_its_ca_bundle_is_validated_once_established() {
    let harness = Harness::open().await;
    let hook = |client: &str| {
        let hook = format!(
            r#","conversion":{{"strategy":"Webhook","webhook":{{"clientConfig":{client},"conversionReviewVersions":["v1"]}}}}"#
        );
        cogs(&[version("v1", true, SPEC, "")], &hook)
    };
    let both = hook(r#"{"url":"https://a.example","service":{"name":"s","namespace":"n"}}"#);
    assert_eq!(
        causes(&harness.post(URL, &both).await),
        ["spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required"]
    );
    let reply = harness.post(URL, &hook(r#"{"url":"https://a.example","caBundle":"Zm9v"}"#)).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    let established = r#"{"status":{"conditions":[{"type":"Established","status":"True"}]}}"#;
    harness.patch(&format!("{ONE}/status"), MERGE, established).await;
    assert_eq!(harness.patch(ONE, MERGE, r#"{"metadata":{"labels":{"a":"b"}}}"#).await.code, 200);
    let patch = r#"{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":null}}}}}"#;
    assert_eq!(harness.patch(ONE, MERGE, patch).await.code, 200);
    let bad = r#"{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":"Zm9v"}}}}}"#;
    let text = causes(&harness.patch(ONE, MERGE, bad).await);
    assert!(
        text[0].starts_with(r#"spec.conversion.webhookClientConfig.caBundle: Invalid value: "Zm9v""#),
        "{text:?}"
    );
}

#[tokio::test]
async fn a_missing_approval_is_an_error_only_if_it_was_present_before() {
    let harness = Harness::open().await;
    let definition = plain().replace("parts.example.com", "parts.k8s.io");
    let refused = harness.post(URL, &definition).await;
    assert!(
        causes(&refused)[0].starts_with("metadata.annotations[api-approved.kubernetes.io]: Required value")
    );
    let approved = definition.replace(
        r#"{"name":"cogs.parts.k8s.io"}"#,
        r#"{"name":"cogs.parts.k8s.io","annotations":{"api-approved.kubernetes.io":"unapproved, a test"}}"#,
    );
    assert_eq!(harness.post(URL, &approved).await.code, 201);
    let url = ONE.replace("parts.example.com", "parts.k8s.io");
    let other = r#"{"metadata":{"annotations":{"api-approved.kubernetes.io":"unapproved, still"}}}"#;
    assert_eq!(harness.patch(&url, MERGE, other).await.code, 200);
    let gone = r#"{"metadata":{"annotations":{"api-approved.kubernetes.io":null}}}"#;
    assert_eq!(harness.patch(&url, MERGE, gone).await.code, 422);
}
