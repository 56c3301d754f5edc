//! A custom resource whose schema has many features: bounds, formats, defaults, lists of each type, rules.

use serde_json::{Value, json};

use super::compared_server::NAMESPACE;
use super::corpus::Base;

/// apiVersion of the objects.
pub const VERSION: &str = "campaign.example.com/v1";
pub const KIND: &str = "Campaign";

/// Returns the path of the collection of its objects.
pub fn collection() -> String {
    format!("/apis/{VERSION}/namespaces/{NAMESPACE}/campaigns")
}

/// Returns the schema of its objects.
pub fn schema() -> Value {
    let names =
        json!({"type": "array", "maxItems": 3, "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    let parts = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "count": {"type": "integer", "format": "int32", "default": 1}},
        },
    });
    let spec = json!({
        "type": "object",
        "required": ["size"],
        "x-kubernetes-validations": [
            {"rule": "!has(self.least) || self.least <= self.size", "message": "least is at most size"},
            {"rule": "self.size == oldSelf.size || self.size > 0", "fieldPath": ".size"},
        ],
        "properties": {
            "size": {"type": "integer", "minimum": 0, "maximum": 100, "multipleOf": 1.0},
            "least": {"type": "integer"},
            "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
            "code": {"type": "string", "pattern": "^[a-z]+$", "minLength": 1, "maxLength": 8},
            "when": {"type": "string", "format": "date-time"},
            "address": {"type": "string", "format": "ipv4"},
            "ratio": {"type": "number", "exclusiveMinimum": true, "minimum": 0},
            "either": {"x-kubernetes-int-or-string": true},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "maybe": {"type": "string", "nullable": true},
            "labels": {"type": "object", "maxProperties": 2, "additionalProperties": {"type": "string"}},
            "names": names,
            "parts": parts,
            "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
        },
    });
    json!({
        "type": "object",
        "properties": {
            "spec": spec,
            "status": {"type": "object", "properties": {"phase": {"type": "string"}, "seen": {"type": "integer"}}},
        },
    })
}

pub fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "campaigns.campaign.example.com"},
        "spec": {
            "group": "campaign.example.com",
            "scope": "Namespaced",
            "names": {"plural": "campaigns", "kind": KIND},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.seen"},
                },
                "schema": {"openAPIV3Schema": schema()},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
            }],
        },
    })
}

/// Returns initial objects.
pub fn bases() -> Vec<Base> {
    let full = json!({
        "size": 3, "least": 1, "color": "green", "code": "abc", "when": "2026-01-02T03:04:05Z", "address": "10.1.2.3",
        "ratio": 0.5, "either": "50%", "any": {"x": [1, null, {"y": 1.5}]}, "maybe": "m", "labels": {"a": "b"},
        "names": ["a", "b"], "parts": [{"name": "p", "count": 2}, {"name": "q"}], "fixed": "f",
    });
    [json!({"size": 1}), full]
        .into_iter()
        .map(|spec| Base {
            collection: collection(),
            kind: KIND.to_owned(),
            body: json!({"apiVersion": VERSION, "kind": KIND, "metadata": {"name": "x"}, "spec": spec}),
        })
        .collect()
}
