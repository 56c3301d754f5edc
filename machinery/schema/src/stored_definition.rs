//! Definitions as kube-apiserver stores them: in `v1beta1`, which is no longer served and has top-level fields for content
//! that all versions share (`apiextensions/v1/conversion.go`).

use portico_machinery::Object;
use serde_json::{Map, Value, json};

const V1: &str = "apiextensions.k8s.io/v1";
const V1BETA1: &str = "apiextensions.k8s.io/v1beta1";
/// Fields that `v1beta1` shares between versions: name inside a version, and name of the top-level field.
const SHARED_FIELDS: [(&str, &str); 4] = [
    ("subresources", "subresources"),
    ("schema", "validation"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

type Fields = Map<String, Value>;

/// Converts a definition from `v1` to its stored form.
#[must_use]
pub fn definition_to_v1beta1(mut object: Object) -> Object {
    object.set(&["apiVersion"], V1BETA1);
    let Some(Value::Object(spec)) = object.map_mut().get_mut("spec") else { return object };
    spec.entry("preserveUnknownFields").or_insert(Value::Bool(false));
    if let Some(Value::Object(conversion)) = spec.get_mut("conversion") {
        let webhook = conversion.remove("webhook");
        for (version_field, spec_field) in [
            ("clientConfig", "webhookClientConfig"),
            ("conversionReviewVersions", "conversionReviewVersions"),
        ] {
            let value = webhook.as_ref().and_then(|webhook| webhook.get(version_field));
            conversion.extend(value.map(|value| (spec_field.to_owned(), value.clone())));
        }
    }
    let Some(Value::Array(mut versions)) = spec.remove("versions") else { return object };
    for columns in versions.iter_mut().filter_map(|version| version.get_mut("additionalPrinterColumns")) {
        rename(columns, "jsonPath", "JSONPath");
    }
    for (version_field, spec_field) in SHARED_FIELDS {
        let first = versions.first().and_then(|version| version.get(version_field)).cloned();
        if versions.iter().all(|version| version.get(version_field) == first.as_ref()) {
            spec.extend(first.map(|value| (spec_field.to_owned(), value)));
            for_each_version(&mut versions, |version| drop(version.remove(version_field)));
        }
    }
    if let Some(name) = versions.first().and_then(|version| version.get("name")).cloned() {
        spec.insert("version".to_owned(), name);
    }
    spec.insert("versions".to_owned(), Value::Array(versions));
    object
}

/// Converts a stored definition to `v1`. Returns `None` if the object is not a definition of `v1beta1`.
#[must_use]
pub fn definition_from_v1beta1(mut object: Object) -> Option<Object> {
    if object.api_version() != V1BETA1 || object.kind() != "CustomResourceDefinition" {
        return None;
    }
    object.set(&["apiVersion"], V1);
    let Some(Value::Object(spec)) = object.map_mut().get_mut("spec") else { return Some(object) };
    // Default of `v1beta1`, which `v1` does not have.
    spec.entry("preserveUnknownFields").or_insert(Value::Bool(true));
    if let Some(Value::Object(conversion)) = spec.get_mut("conversion") {
        let mut webhook = Fields::new();
        for (spec_field, version_field) in [
            ("webhookClientConfig", "clientConfig"),
            ("conversionReviewVersions", "conversionReviewVersions"),
        ] {
            webhook.extend(conversion.remove(spec_field).map(|value| (version_field.to_owned(), value)));
        }
        if !webhook.is_empty() {
            conversion.insert("webhook".to_owned(), Value::Object(webhook));
        }
    }
    let version = spec.remove("version");
    let mut versions = match spec.remove("versions") {
        Some(Value::Array(versions)) if !versions.is_empty() => versions,
        _ => {
            version.map(|name| json!({ "name": name, "served": true, "storage": true })).into_iter().collect()
        }
    };
    for (version_field, spec_field) in SHARED_FIELDS {
        let Some(value) = spec.remove(spec_field) else { continue };
        for_each_version(&mut versions, |version| {
            drop(version.insert(version_field.to_owned(), value.clone()))
        });
    }
    for columns in versions.iter_mut().filter_map(|version| version.get_mut("additionalPrinterColumns")) {
        rename(columns, "JSONPath", "jsonPath");
    }
    spec.insert("versions".to_owned(), Value::Array(versions));
    Some(object)
}

fn for_each_version(versions: &mut [Value], change: impl FnMut(&mut Fields)) {
    versions.iter_mut().filter_map(Value::as_object_mut).for_each(change);
}

fn rename(columns: &mut Value, from: &str, to: &str) {
    for column in columns.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        let Some(value) = column.remove(from) else { continue };
        column.insert(to.to_owned(), value);
    }
}
