//! Validation of custom resources by their schema, at the same points as in upstream.

use crate::custom_resources::{CRDS, TABS, open_with_definition, tab, version};
use crate::harness::{Harness, MERGE};

const APPLY: &str = "application/apply-patch+yaml";

const LOOSE: &str =
    r#""image":{"type":"string"},"other":{"type":"string"},"set":{"type":"array","items":{"type":"string"}}"#;
const TIGHT: &str = r#""image":{"type":"string","maxLength":3},"other":{"type":"string"},
    "set":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}"#;

const RULED: &str = r#""image":{"type":"string","x-kubernetes-validations":
    [{"rule":"self.size() < 4","message":"too long"}]},
    "other":{"type":"string","x-kubernetes-validations":[{"rule":"self == 'a'"}]}"#;

/// Replaces the properties in the definition.
async fn redefine(harness: &Harness, properties: &str) {
    let definition = format!("{CRDS}/crontabs.stable.example.com");
    let current = harness.get(&definition).await;
    let other = format!(
        r#"{{"metadata":{{"resourceVersion":"{}"}},"spec":{{"versions":[{}]}}}}"#,
        current.at("metadata.resourceVersion"),
        version("v1", true, properties)
    );
    let changed = harness.patch(&definition, MERGE, &other).await;
    assert_eq!(changed.code, 200, "{}", changed.text);
}

#[tokio::test]
async fn writes_are_validated_by_the_schema() {
    let properties = r#""size":{"type":"integer","maximum":3},"colour":{"type":"string","enum":["red"]},
        "inner":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
        "set":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}"#;
    let harness = open_with_definition(&version("v1", true, properties)).await;
    let bad = r#""size":4,"colour":"x","set":["a","a"],"inner":{"kind":"Pod","metadata":{"name":"a/b"}}"#;
    let refused = harness.post(TABS, &tab("v1", bad)).await;
    assert_eq!(refused.code, 422);
    let words = concat!(
        r#"CronTab.stable.example.com "t" is invalid: ["#,
        r#"spec.colour: Unsupported value: "x": supported values: "red", "#,
        "spec.size: Invalid value: 4: spec.size in body should be less than or equal to 3, ",
        "spec.inner.apiVersion: Required value, ",
        r#"spec.inner.metadata.name: Invalid value: "a/b": may not contain '/', "#,
        r#"spec.set[1]: Duplicate value: "a"]"#,
    );
    assert_eq!(refused.at("message"), words);
    let mistyped = harness.post(TABS, &tab("v1", r#""inner":{"metadata":{"labels":{"a":1}}}"#)).await;
    assert_eq!(mistyped.code, 400, "{}", mistyped.text);
    assert_eq!(harness.post(TABS, &tab("v1", r#""size":3"#)).await.code, 201);
}

#[tokio::test]
async fn an_update_may_keep_invalid_values_of_the_old_object() {
    let harness = open_with_definition(&version("v1", true, LOOSE)).await;
    let created = harness.post(TABS, &tab("v1", r#""image":"nginx","set":["a","a"]"#)).await;
    assert_eq!(created.code, 201, "{}", created.text);
    redefine(&harness, TIGHT).await;
    let url = format!("{TABS}/t");
    let other = harness.patch(&url, MERGE, r#"{"spec":{"other":"x","set":["a","a","a"]}}"#).await;
    assert_eq!(other.code, 200, "{}", other.text);
    let worse = harness.patch(&url, MERGE, r#"{"spec":{"image":"httpd"}}"#).await;
    assert_eq!((worse.code, worse.text.contains("may not be more than 3 bytes")), (422, true));
    let fixed = harness.patch(&url, MERGE, r#"{"spec":{"image":"web","set":["a"]}}"#).await;
    assert_eq!(fixed.code, 200, "{}", fixed.text);
    let again = harness.patch(&url, MERGE, r#"{"spec":{"set":["b","b"]}}"#).await;
    assert_eq!((again.code, again.text.contains("spec.set[1]: Duplicate value")), (422, true));
}

#[tokio::test]
async fn a_tolerated_value_is_reported_even_if_another_value_is_refused() {
    let harness = open_with_definition(&version("v1", true, LOOSE)).await;
    let created = harness.post(TABS, &tab("v1", r#""image":"nginx","other":"a""#)).await;
    assert_eq!(created.code, 201, "{}", created.text);
    redefine(&harness, RULED).await;
    let url = format!("{TABS}/t");
    let forgiven = [r#"spec.image: Invalid value: "nginx": too long"#];
    let refused = harness.patch(&url, MERGE, r#"{"spec":{"other":"b"}}"#).await;
    assert_eq!((refused.code, &refused.warnings[..]), (422, &forgiven.map(str::to_owned)[..]));
    let labelled = harness.patch(&url, MERGE, r#"{"metadata":{"labels":{"a":"b"}}}"#).await;
    assert_eq!((labelled.code, &labelled.warnings[..]), (200, &forgiven.map(str::to_owned)[..]));
}

#[tokio::test]
async fn an_applied_null_is_refused_unless_the_field_is_nullable() {
    let properties = r#""size":{"type":"integer"},"colour":{"type":"string","nullable":true}"#;
    let harness = open_with_definition(&version("v1", true, properties)).await;
    let url = format!("{TABS}/t?fieldManager=m");
    let refused = harness.patch(&url, APPLY, &tab("v1", r#""size":null"#)).await;
    let message = r#"spec.size in body must be of type integer: \"null\""#;
    assert_eq!((refused.code, refused.text.contains(message)), (422, true), "{}", refused.text);
    let applied = harness.patch(&url, APPLY, &tab("v1", r#""colour":null"#)).await;
    assert_eq!(applied.code, 201, "{}", applied.text);
    assert!(applied.text.contains(r#""f:spec":{"f:colour":{}}"#), "{}", applied.text);
}

#[tokio::test]
async fn a_patch_cannot_change_the_kind() {
    let harness = open_with_definition(&version("v1", true, LOOSE)).await;
    harness.post(TABS, &tab("v1", "")).await;
    let refused = harness.patch(&format!("{TABS}/t"), MERGE, r#"{"kind":"Other"}"#).await;
    let words = r#"Other.stable.example.com "t" is invalid: kind: Invalid value: "Other": must be CronTab"#;
    assert_eq!((refused.code, refused.at("message").as_str()), (422, words));
}
