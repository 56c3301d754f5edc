//! Changes of an object at a random position.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Map, Value, json};

use super::corpus::Corpus;
use super::schemas::Schemas;

/// A step of a path into an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Field(String),
    Item(usize),
}

/// Change at a position.
#[derive(Clone, Debug)]
pub enum Change {
    Remove,
    Set(Value),
    /// Duplicates an item, or the fields of an object.
    Repeat,
}

/// A change and its position.
#[derive(Clone, Debug)]
pub struct Mutation {
    pub path: Vec<Part>,
    pub change: Change,
}

impl Mutation {
    /// Returns a random change of an object. Names and versions do not change: they identify cases.
    pub fn random(object: &Value, corpus: &Corpus, schemas: &Schemas, random: &mut StdRng) -> Self {
        let mut places = Vec::new();
        collect_paths(object, &mut Vec::new(), &mut places);
        let path: Vec<Part> = places.choose(random).cloned().unwrap_or_default();
        let schema = schema_at(object, &path, schemas);
        if random.random_ratio(1, 4)
            && let Some(added) = random_field(object, &path, schema, (corpus, schemas), random)
        {
            return added;
        }
        let field = path.iter().rev().find_map(|part| match part {
            Part::Field(field) => Some(field.as_str()),
            Part::Item(_) => None,
        });
        let others = corpus.values(field.unwrap_or_default());
        let change = match random.random_range(0..10) {
            0 | 1 => Change::Remove,
            2 => Change::Repeat,
            3..=6 if !others.is_empty() => Change::Set(others.choose(random).cloned().unwrap_or_default()),
            _ => Change::Set(unusual_value(random)),
        };
        Self { path, change }
    }

    /// Applies the change, unless another change has removed the position.
    pub fn apply(&self, object: &mut Value) {
        let Some((last, before)) = self.path.split_last() else { return };
        let Some(parent) = before.iter().try_fold(object, |value, part| get(value, part)) else { return };
        match (parent, last) {
            (Value::Object(fields), Part::Field(field)) => match &self.change {
                Change::Remove => drop(fields.remove(field)),
                Change::Set(value) => drop(fields.insert(field.clone(), value.clone())),
                Change::Repeat => {
                    if let Some(value) = fields.get(field).cloned() {
                        fields.insert(format!("{field}2"), value);
                    }
                }
            },
            (Value::Array(items), Part::Item(at)) if *at < items.len() => match &self.change {
                Change::Remove => drop(items.remove(*at)),
                Change::Set(value) => items[*at] = value.clone(),
                Change::Repeat => items.insert(*at, items[*at].clone()),
            },
            _ => {}
        }
    }
}

fn get<'a>(value: &'a mut Value, part: &Part) -> Option<&'a mut Value> {
    match part {
        Part::Field(field) => value.get_mut(field),
        Part::Item(at) => value.get_mut(at),
    }
}

fn collect_paths(value: &Value, path: &mut Vec<Part>, places: &mut Vec<Vec<Part>>) {
    let mut inner = |part: Part, value: &Value| {
        path.push(part);
        let is_identity = matches!(path.as_slice(), [Part::Field(field)] if field == "apiVersion" || field == "kind")
            || matches!(path.as_slice(), [Part::Field(metadata), Part::Field(name)] if metadata == "metadata" && name == "name")
            || path.len() == 1 && path[0] == Part::Field("metadata".to_owned());
        if !is_identity {
            places.push(path.clone());
        }
        collect_paths(value, path, places);
        path.pop();
    };
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(field, value)| inner(Part::Field(field.clone()), value));
        }
        Value::Array(items) => items.iter().enumerate().for_each(|(at, value)| inner(Part::Item(at), value)),
        _ => {}
    }
}

fn schema_at<'a>(object: &Value, path: &[Part], schemas: &'a Schemas) -> Option<&'a Value> {
    path.iter().try_fold(schemas.of(object)?, |schema, part| match part {
        Part::Field(field) => schemas.inner(schema, Some(field)),
        Part::Item(_) => schemas.inner(schema, None),
    })
}

/// Returns a field that the object at a position could have, with a value that its schema allows or that other objects have.
fn random_field(
    object: &Value,
    path: &[Part],
    schema: Option<&Value>,
    (corpus, schemas): (&Corpus, &Schemas),
    random: &mut StdRng,
) -> Option<Mutation> {
    let fields: Vec<&String> = schema?["properties"].as_object()?.keys().collect();
    let field = (*fields.choose(random)?).clone();
    let mut path = path.to_vec();
    path.push(Part::Field(field.clone()));
    let inner = schema_at(object, &path, schemas)?;
    let others = corpus.values(&field).choose(random).filter(|_| random.random_ratio(1, 2));
    let value = others.cloned().unwrap_or_else(|| sample(inner, schemas, random, 3));
    Some(Mutation { path, change: Change::Set(value) })
}

/// Returns a value that a schema describes.
fn sample(schema: &Value, schemas: &Schemas, random: &mut StdRng, depth: usize) -> Value {
    let schema = schemas.resolve(schema);
    match schema["type"].as_str() {
        Some("object") => {
            let mut object = Map::new();
            let required: Vec<&str> =
                schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            for (field, inner) in schema["properties"].as_object().into_iter().flatten() {
                if depth > 0 && (required.contains(&field.as_str()) || random.random_ratio(1, 3)) {
                    object.insert(field.clone(), sample(inner, schemas, random, depth - 1));
                }
            }
            if schema.get("additionalProperties").is_some() {
                object.insert("key".to_owned(), sample(&schema["additionalProperties"], schemas, random, 0));
            }
            object.into()
        }
        Some("array") => {
            let count = random.random_range(0..3);
            (0..count).map(|_| sample(&schema["items"], schemas, random, depth.saturating_sub(1))).collect()
        }
        Some("integer") => [0, 1, -1, 80, 65_536, i64::from(i32::MAX)].choose(random).copied().into(),
        Some("number") => json!(1.5),
        Some("boolean") => random.random::<bool>().into(),
        Some("string") => match schema["enum"].as_array().and_then(|values| values.choose(random)) {
            Some(value) => value.clone(),
            None => text(random).into(),
        },
        _ => [json!(1), json!("50%"), json!("100m"), json!({})].choose(random).cloned().unwrap_or_default(),
    }
}

fn text(random: &mut StdRng) -> String {
    const TEXTS: [&str; 16] = [
        "",
        "a",
        "a-b.c",
        "A_B",
        "-",
        "a/b",
        "example.com/a",
        "/x",
        "..",
        "1",
        "100m",
        "1Gi",
        "10.0.0.1",
        "2001:db8::1",
        "2026-01-02T03:04:05Z",
        "\u{e9}\u{10348}",
    ];
    match random.random_range(0..12) {
        0 => "x".repeat(254),
        1 => "y".repeat(64),
        _ => TEXTS.choose(random).copied().unwrap_or_default().to_owned(),
    }
}

/// Returns a value that is rarely valid.
fn unusual_value(random: &mut StdRng) -> Value {
    match random.random_range(0..12) {
        0 => Value::Null,
        1 => json!({}),
        2 => json!([]),
        3 => json!(true),
        4 => json!(0),
        5 => json!(-1),
        6 => json!(i64::from(i32::MAX) + 1),
        7 => json!(1.5),
        8 => json!(["a", "a"]),
        _ => text(random).into(),
    }
}
