//! JSON form of a field set, `fieldsV1`: `{"f:spec":{".":{},"f:replicas":{}}}`.

use serde_json::{Map, Value};

use super::element::PathElement;
use super::error::FieldsError;
use super::set::{FieldSet, SetNode};

impl FieldSet {
    /// Decodes the JSON form. Elements of unknown kinds are skipped, as upstream does.
    ///
    /// # Errors
    /// [`FieldsError`].
    pub fn from_json(json: &Value) -> Result<Self, FieldsError> {
        Ok(decode_node(json)?.0)
    }

    /// Encodes the JSON form, with elements in order.
    #[must_use]
    pub fn to_json(&self) -> Value {
        Value::Object(self.write(false))
    }

    fn write(&self, is_member: bool) -> Map<String, Value> {
        if self.is_empty() {
            // Most elements are leaves: their maps allocate no memory.
            return Map::new();
        }
        let mut map = Map::with_capacity(self.nodes().len() + usize::from(is_member));
        if is_member {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for node in self.nodes() {
            let step = node.element.to_json_key();
            map.insert(step, Value::Object(node.children.write(node.member)));
        }
        map
    }
}

/// Returns the nested fields, and true if the field itself is a member of the set.
fn decode_node(json: &Value) -> Result<(FieldSet, bool), FieldsError> {
    let map = match json {
        Value::Object(map) => map,
        Value::Null => return Ok((FieldSet::default(), true)),
        _ => return Err(FieldsError::NoObject),
    };
    let (mut nodes, mut is_member) = (Vec::with_capacity(map.len()), false);
    for (key, child) in map {
        if key == "." {
            is_member = true;
            continue;
        }
        let Some(element) = PathElement::parse(key)? else { continue };
        let (children, member) = decode_node(child)?;
        nodes.push(SetNode { element, member, children });
    }
    let set = FieldSet::from_nodes(nodes);
    let itself = is_member || set.is_empty();
    Ok((set, itself))
}
