//! The JSON form of a set, `fieldsV1`: `{"f:spec":{".":{},"f:replicas":{}}}`.

use portico_machinery::object::{escape_html, step_json, value_from_json};
use serde_json::{Map, Value};

use super::set::Node;
use super::{PathElement, Set};

/// JSON that is no set of fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// A set is an object of objects.
    #[error("a set of fields must be an object")]
    NoObject,
    /// A step that cannot be read.
    #[error("parsing key as path element: {0}")]
    Element(String),
}

impl Set {
    /// Reads the JSON form. Steps of unknown kinds are skipped, as upstream does.
    ///
    /// # Errors
    /// [`FieldsError`].
    pub fn from_json(json: &Value) -> Result<Self, FieldsError> {
        Ok(read(json)?.0)
    }

    /// The JSON form, steps in order.
    #[must_use]
    pub fn to_json(&self) -> Value {
        Value::Object(self.write(false))
    }

    fn write(&self, itself: bool) -> Map<String, Value> {
        if self.is_empty() {
            // Most steps are leaves: their maps take no memory.
            return Map::new();
        }
        let mut map = Map::with_capacity(self.nodes().len() + usize::from(itself));
        if itself {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for node in self.nodes() {
            let step = node.element.to_json_key();
            map.insert(step, Value::Object(node.children.write(node.member)));
        }
        map
    }
}

/// What is below, and whether the field itself belongs to the set.
fn read(json: &Value) -> Result<(Set, bool), FieldsError> {
    let map = match json {
        Value::Object(map) => map,
        Value::Null => return Ok((Set::default(), true)),
        _ => return Err(FieldsError::NoObject),
    };
    let (mut nodes, mut itself) = (Vec::with_capacity(map.len()), false);
    for (key, below) in map {
        if key == "." {
            itself = true;
            continue;
        }
        let Some(element) = PathElement::parse(key)? else { continue };
        let (children, member) = read(below)?;
        nodes.push(Node { element, member, children });
    }
    let set = Set::from_nodes(nodes);
    let itself = itself || set.is_empty();
    Ok((set, itself))
}

pub(super) fn element_from_json(text: &str) -> Result<Option<PathElement>, FieldsError> {
    let refuse = |why: &str| FieldsError::Element(format!("{why}: {text}"));
    let json = |text: &str| value_from_json(text.as_bytes()).map_err(|e| FieldsError::Element(e.to_string()));
    let (kind, rest) = match text.split_at_checked(2) {
        Some((kind, rest)) if kind.ends_with(':') => (kind, rest),
        Some(_) => return Err(refuse("missing colon")),
        None => return Err(refuse("key must be 2 characters long")),
    };
    Ok(Some(match kind {
        "f:" => PathElement::field(rest),
        "v:" => PathElement::Value(json(rest)?),
        "k:" => match json(rest)? {
            Value::Object(keys) => PathElement::key(keys.into_iter().map(|(k, v)| (k.into(), v)).collect()),
            _ => return Err(refuse("keys must be an object")),
        },
        "i:" => PathElement::Index(rest.parse().map_err(|_| refuse("an index must be a number"))?),
        _ => return Ok(None),
    }))
}

/// A value as upstream writes it into a step: compact, with what HTML could mistake escaped.
pub(super) fn write_value(out: &mut String, value: &Value) {
    out.push_str(&escape_html(&step_json(value)));
}
