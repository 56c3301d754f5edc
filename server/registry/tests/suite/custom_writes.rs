//! Writes of custom resources that are refused, or that involve fields owned in another version.

use crate::custom_resources::{TABS, open_with_definition, tab, version};
use crate::harness::{JSON, MERGE};

const APPLY: &str = "application/apply-patch+yaml";
const SIZE: &str = r#""size":{"type":"string"}"#;

/// Two versions, each with a field that the other does not have.
fn two_versions() -> String {
    let first = version("v1", true, &format!(r#"{SIZE},"old":{{"type":"string"}}"#));
    let second = version("v2", false, &format!(r#"{SIZE},"new":{{"type":"string"}}"#));
    format!("{first},{second}")
}

fn in_version(version: &str) -> String {
    TABS.replace("/v1/", &format!("/{version}/"))
}

#[tokio::test]
async fn ownership_is_dropped_if_the_object_does_not_match_the_version_of_an_owner() {
    let harness = open_with_definition(&two_versions()).await;
    let created = harness.post(TABS, &tab("v1", r#""size":"1","old":"x""#)).await;
    assert_eq!(created.at("metadata.managedFields.0.apiVersion"), "stable.example.com/v1");
    let fits = harness.patch(&format!("{}/t", in_version("v2")), MERGE, r#"{"spec":{"size":"2"}}"#).await;
    assert_eq!(fits.code, 200, "{}", fits.text);
    assert!(fits.text.contains("managedFields"), "{}", fits.text);
    // `new` is unknown in v1, in which `suite` owns the rest.
    let unfit = harness.patch(&format!("{}/t", in_version("v2")), MERGE, r#"{"spec":{"new":"y"}}"#).await;
    assert_eq!(unfit.code, 200, "{}", unfit.text);
    assert!(!unfit.text.contains("managedFields"), "{}", unfit.text);
}

#[tokio::test]
async fn an_apply_fails_when_the_object_does_not_fit_the_version_applied_before() {
    let harness = open_with_definition(&two_versions()).await;
    let apply = |version: &'static str, spec: &'static str| {
        let harness = &harness;
        async move {
            let url = format!("{}/t?fieldManager=me", in_version(version));
            harness.patch(&url, APPLY, &tab(version, spec)).await
        }
    };
    assert_eq!(apply("v2", r#""size":"1""#).await.code, 201);
    let refused = apply("v1", r#""old":"x""#).await;
    assert_eq!((refused.code, refused.text.contains("reason")), (500, false), "{}", refused.text);
    assert_eq!(
        refused.at("message"),
        "failed to prune fields: failed to convert merged object to last applied version: \
         .spec.old: field not declared in schema"
    );
}

#[tokio::test]
async fn an_apply_reports_every_type_mismatch() {
    let harness = open_with_definition(&two_versions()).await;
    let url = format!("{TABS}/t?fieldManager=me");
    let refused = harness.patch(&url, APPLY, &tab("v1", r#""size":1,"old":true"#)).await;
    let message = refused.at("message");
    assert_eq!(refused.code, 500);
    let reported = ["errors:\n  .spec.size: expected string, ", "\n  .spec.old: expected string, "];
    assert!(reported.iter().all(|reported| message.contains(reported)), "{message}");
    let map = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"odd":1}"#;
    let refused = harness.patch("/api/v1/namespaces/default/configmaps/m?fieldManager=me", APPLY, map).await;
    assert_eq!((refused.code, refused.text.contains("reason")), (500, false), "{}", refused.text);
}

#[tokio::test]
async fn warnings_are_returned_with_a_refusal() {
    let harness = open_with_definition(&two_versions()).await;
    let warnings = [r#"unknown field "spec.odd""#];
    let refused = harness.post(TABS, &tab("v1", r#""size":1,"odd":1"#)).await;
    assert_eq!((refused.code, refused.warnings.as_slice()), (422, &warnings.map(str::to_owned)[..]));
    harness.post(TABS, &tab("v1", r#""size":"1""#)).await;
    let again = harness.post(TABS, &tab("v1", r#""odd":1"#)).await;
    assert_eq!((again.code, again.warnings.as_slice()), (409, &warnings.map(str::to_owned)[..]));
    let late = r#"{"metadata":{"resourceVersion":"1"},"spec":{"odd":1}}"#;
    let late = harness.patch(&format!("{TABS}/t"), MERGE, late).await;
    assert_eq!((late.code, late.warnings.as_slice()), (409, &warnings.map(str::to_owned)[..]));
    let strict = harness.post(&format!("{TABS}?fieldValidation=Strict"), &tab("v1", r#""odd":1"#)).await;
    assert_eq!((strict.code, strict.warnings.len()), (400, 0));
}

#[tokio::test]
async fn a_different_kind_is_refused_after_other_checks_and_a_status_update_keeps_the_kind() {
    let harness = open_with_definition(&two_versions()).await;
    harness.post(TABS, &tab("v1", r#""size":"1""#)).await;
    let url = format!("{TABS}/t");
    let revision = harness.get(&url).await.at("metadata.resourceVersion");
    let other = |name: &str, revision: &str| {
        format!(
            r#"{{"apiVersion":"stable.example.com/v1","kind":"Other","metadata":{{"name":"{name}","resourceVersion":"{revision}"}}}}"#
        )
    };
    let absent = harness.put(&format!("{TABS}/none"), &other("none", "")).await;
    assert_eq!(absent.code, 404);
    let stale = harness.put(&url, &other("t", "1")).await;
    assert_eq!(stale.code, 409);
    let refused = harness.put(&url, &other("t", &revision)).await;
    assert_eq!((refused.code, refused.at("details.kind").as_str()), (422, "Other"), "{}", refused.text);
    assert_eq!(refused.at("details.causes.0.field"), "kind");
    let kept = harness.put(&format!("{url}/status"), &other("t", &revision)).await;
    assert_eq!((kept.code, kept.at("kind").as_str()), (200, "CronTab"), "{}", kept.text);
}

#[tokio::test]
async fn a_create_with_a_resource_version_fails_at_the_commit() {
    let harness = open_with_definition(&two_versions()).await;
    let named = |spec: &str| tab("v1", spec).replace(r#""name":"t""#, r#""name":"t","resourceVersion":"5""#);
    let invalid = harness.post(TABS, &named(r#""size":1"#)).await;
    assert_eq!(invalid.code, 422, "validation errors are reported first: {}", invalid.text);
    let refused = harness.post(TABS, &named(r#""size":"1""#)).await;
    assert_eq!((refused.code, refused.text.contains("reason")), (500, false), "{}", refused.text);
    assert_eq!(refused.at("message"), "resourceVersion should not be set on objects to be created");
    let tried = harness.post(&format!("{TABS}?dryRun=All"), &named(r#""size":"1""#)).await;
    assert_eq!((tried.code, tried.at("metadata.resourceVersion").as_str()), (201, "5"), "{}", tried.text);
}

#[tokio::test]
async fn partial_metadata_has_the_requested_version() {
    let harness = open_with_definition(&two_versions()).await;
    harness.post(TABS, &tab("v1", r#""size":"1""#)).await;
    for version in ["v1", "v1beta1"] {
        let accept = |form: &str| format!("application/json;as={form};g=meta.k8s.io;v={version}");
        let wanted = format!("meta.k8s.io/{version}");
        let one =
            harness.request("GET", &format!("{TABS}/t"), &accept("PartialObjectMetadata"), JSON, "").await;
        assert_eq!((one.code, one.at("apiVersion")), (200, wanted.clone()), "{}", one.text);
        let list = harness.request("GET", TABS, &accept("PartialObjectMetadataList"), JSON, "").await;
        assert_eq!((list.at("apiVersion"), list.at("items.0.apiVersion")), (wanted.clone(), wanted.clone()));
        let table = harness.request("GET", TABS, &accept("Table"), JSON, "").await;
        assert_eq!((table.at("apiVersion"), table.at("rows.0.object.apiVersion")), (wanted.clone(), wanted));
        let misfit = harness.request("GET", TABS, &accept("PartialObjectMetadata"), JSON, "").await;
        assert_eq!(misfit.code, 406, "{}", misfit.text);
    }
}
