//! Edits of an object: appending to lists, filtering lists, setting empty fields.

use serde::Serialize;
use serde_json::Value;

use super::{Node, Object};

impl Object {
    /// Appends to the list at a nested field, and creates the list if it does not exist.
    pub fn push(&mut self, path: &[&str], value: impl Serialize) {
        // All values that Portico appends (strings, plain structs) can be encoded.
        self.push_node(path, Node(serde_json::to_value(value).unwrap_or_default()));
    }

    /// Appends a node to the list at a nested field, like [`Object::push`].
    pub fn push_node(&mut self, path: &[&str], node: Node) {
        match self.slot(path) {
            Some(Value::Array(list)) => list.push(node.0),
            _ => self.put(path, Node(Value::Array(vec![node.0]))),
        }
    }

    /// Retains the maps of a list for which the test returns true. Removes the list if it becomes empty.
    pub fn retain(&mut self, path: &[&str], mut test: impl FnMut(&Self) -> bool) {
        let Some(Value::Array(list)) = self.slot(path) else { return };
        list.retain_mut(|item| {
            // Elements that are not maps are retained.
            let mut keep = true;
            super::edit_map(item, |object| keep = test(object));
            keep
        });
        if list.is_empty() {
            self.remove(path);
        }
    }

    /// Sets the string at a nested field if it is absent or empty.
    pub fn set_if_empty(&mut self, path: &[&str], text: &str) {
        if self.at(path).str().is_empty() {
            self.set(path, text);
        }
    }

    /// Replaces the strings in the map at a nested field for which `edit` returns a new value.
    pub fn edit_strings(&mut self, path: &[&str], mut edit: impl FnMut(&str) -> Option<String>) {
        let Some(Value::Object(map)) = self.slot(path) else { return };
        for (_, value) in map {
            if let Some(text) = value.as_str().and_then(&mut edit) {
                *value = Value::String(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_maps_are_edited_in_place() {
        let json = br#"{"spec":{"list":[{"a":"1"},{"a":""}],"map":{"x":"1","y":"2"}}}"#;
        let mut object = Object::from_json(json).unwrap();
        object.edit(&["spec"], |spec| spec.edit_each(&["list"], |item| item.set_if_empty(&["a"], "z")));
        object.push(&["spec", "list"], Object::default().map());
        object.retain(&["spec", "list"], |item| item.str_at("a") != "1");
        object.edit_strings(&["spec", "map"], |text| (text == "2").then(|| "3".to_owned()));
        assert_eq!(object.to_json(), br#"{"spec":{"list":[{"a":"z"},{}],"map":{"x":"1","y":"3"}}}"#);
        object.retain(&["spec", "list"], |_| false);
        assert!(!object.at(&["spec", "list"]).is_present());
    }
}
