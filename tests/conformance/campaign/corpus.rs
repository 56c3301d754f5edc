//! Objects that recordings create, and the values of their fields.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::compared_server::NAMESPACE;
use super::custom;
use crate::TOPICS;
use crate::step::Recording;

/// Kinds that affect later cases, or cause work after their creation: only dry runs write them.
const DRY_RUN_KINDS: [&str; 9] = [
    "namespaces",
    "limitranges",
    "customresourcedefinitions",
    "apiservices",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "flowschemas",
    "prioritylevelconfigurations",
    "resourcequotas",
];

/// An object that a recording creates.
pub struct Base {
    /// Collection in which such objects are created.
    pub collection: String,
    pub kind: String,
    pub body: Value,
}

impl Base {
    /// Returns true if only dry runs write such objects.
    pub fn needs_dry_run(&self) -> bool {
        self.collection.rsplit('/').next().is_some_and(|resource| DRY_RUN_KINDS.contains(&resource))
    }
}

pub struct Corpus {
    /// Objects by kind, so that each kind is equally likely.
    pub bases: Vec<Vec<Base>>,
    /// Values by the name of their field.
    values: BTreeMap<String, Vec<Value>>,
}

impl Corpus {
    pub fn read() -> Self {
        let (mut bases, mut values): (BTreeMap<String, Vec<Base>>, BTreeMap<String, Vec<Value>>) =
            Default::default();
        let mut seen = BTreeSet::new();
        for step in TOPICS.iter().flat_map(|topic| Recording::read(topic).steps) {
            let Some(body) = step.body.filter(|body| !body.to_string().contains("${")) else { continue };
            gather(&body, &mut values);
            let Some(base) = (step.method == "POST" && step.answer["status"] == 201)
                .then(|| base(&step.target, body))
                .flatten()
            else {
                continue;
            };
            if seen.insert(base.body.to_string()) {
                bases.entry(base.collection.clone()).or_default().push(base);
            }
        }
        for values in values.values_mut() {
            values.sort_by_cached_key(Value::to_string);
            values.dedup();
        }
        let bases = bases.into_values().chain([custom::bases()]).collect();
        Self { bases, values }
    }

    /// Returns the values of fields with this name.
    pub fn values(&self, field: &str) -> &[Value] {
        self.values.get(field).map_or(&[], Vec::as_slice)
    }
}

/// Returns an object created in a collection, unless its group was defined by the recording.
fn base(target: &str, mut body: Value) -> Option<Base> {
    let path = target.split('?').next()?;
    let mut parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let builtin = match parts.first()? {
        &"api" => true,
        _ => parts.get(1).is_some_and(|group| group.ends_with(".k8s.io") || !group.contains('.')),
    };
    let versioned = if parts.first()? == &"api" { 2 } else { 3 };
    match *parts.get(versioned..)? {
        ["namespaces", _, _] => parts[versioned + 1] = NAMESPACE,
        [_] => {}
        _ => return None,
    }
    if !builtin {
        return None;
    }
    let kind = body.get("kind")?.as_str()?.to_owned();
    let metadata = body.get_mut("metadata")?.as_object_mut()?;
    metadata.remove("namespace");
    metadata.contains_key("name").then(|| Base { collection: format!("/{}", parts.join("/")), kind, body })
}

fn gather(value: &Value, values: &mut BTreeMap<String, Vec<Value>>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                if !matches!(field.as_str(), "name" | "apiVersion" | "namespace" | "resourceVersion") {
                    values.entry(field.clone()).or_default().push(value.clone());
                }
                gather(value, values);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, values)),
        _ => {}
    }
}
