//! Schemas of the kinds, from the OpenAPI documents of kube-apiserver.

use std::collections::BTreeMap;

use serde_json::Value;

use super::compared_server::ComparedServer;
use super::custom;
use crate::step::Step;

/// Schemas by kind and by name.
#[derive(Default)]
pub struct Schemas {
    kinds: BTreeMap<(String, String), String>,
    schemas: BTreeMap<String, Value>,
}

impl Schemas {
    /// Reads the schemas of all group versions.
    pub async fn read(server: &mut ComparedServer<'_>) -> Self {
        let get =
            |target: &str| Step { method: "GET".to_owned(), target: target.to_owned(), ..Step::default() };
        let index = server.response(&get("/openapi/v3"), "").await;
        let mut all = Self::default();
        for document in index["body"]["paths"].as_object().unwrap().values() {
            let Some(path) = document["serverRelativeURL"].as_str() else { continue };
            let answer = server.response(&get(path), "").await;
            let Some(schemas) = answer.pointer("/body/components/schemas").and_then(Value::as_object) else {
                continue;
            };
            for (name, schema) in schemas {
                for kind in schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
                    let text = |field: &str| kind[field].as_str().unwrap_or_default();
                    let group =
                        if text("group").is_empty() { String::new() } else { format!("{}/", text("group")) };
                    all.kinds.insert(
                        (format!("{group}{}", text("version")), text("kind").to_owned()),
                        name.clone(),
                    );
                }
                all.schemas.insert(name.clone(), schema.clone());
            }
        }
        all.kinds.insert((custom::VERSION.to_owned(), custom::KIND.to_owned()), custom::KIND.to_owned());
        all.schemas.insert(custom::KIND.to_owned(), custom::schema());
        assert!(all.kinds.len() > 100, "{} kinds have schemas", all.kinds.len());
        all
    }

    /// Returns the schema of an object's kind.
    pub fn of(&self, object: &Value) -> Option<&Value> {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        self.schemas.get(self.kinds.get(&(text("apiVersion"), text("kind")))?)
    }

    /// Returns the schema that a reference names, or the schema itself.
    pub fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let named = schema["$ref"].as_str().or_else(|| schema.pointer("/allOf/0/$ref")?.as_str());
        let name = named.and_then(|named| named.rsplit('/').next());
        name.and_then(|name| self.schemas.get(name)).unwrap_or(schema)
    }

    /// Returns the schema of a field, or of items.
    pub fn inner<'a>(&'a self, schema: &'a Value, field: Option<&str>) -> Option<&'a Value> {
        let schema = self.resolve(schema);
        let inner = match field {
            Some(field) => schema["properties"].get(field).or_else(|| schema.get("additionalProperties"))?,
            None => schema.get("items")?,
        };
        Some(self.resolve(inner))
    }
}
