//! Editing inside an object: lists that grow and shrink, texts that are filled in.

use serde::Serialize;
use serde_json::Value;

use super::{Node, Object};

impl Object {
    /// Appends to the list at a nested field, which is made when it is not there.
    pub fn push(&mut self, path: &[&str], value: impl Serialize) {
        // What our code appends (strings, plain structs) encodes.
        self.push_node(path, Node(serde_json::to_value(value).unwrap_or_default()));
    }

    /// As [`Object::push`], for a node.
    pub fn push_node(&mut self, path: &[&str], node: Node) {
        match self.slot(path) {
            Some(Value::Array(list)) => list.push(node.0),
            _ => self.put(path, Node(Value::Array(vec![node.0]))),
        }
    }

    /// Keeps the maps of a list that the test likes; a list that loses all of them goes.
    pub fn retain(&mut self, path: &[&str], mut test: impl FnMut(&Self) -> bool) {
        let Some(Value::Array(list)) = self.slot(path) else { return };
        list.retain_mut(|item| {
            // What is no map is none of the test's business.
            let mut keep = true;
            super::edit_map(item, |object| keep = test(object));
            keep
        });
        if list.is_empty() {
            self.remove(path);
        }
    }

    /// Sets the string at a nested field when nothing or empty text stands there.
    pub fn set_empty(&mut self, path: &[&str], text: &str) {
        if self.at(path).str().is_empty() {
            self.set(path, text);
        }
    }

    /// Changes every string in the map at a nested field.
    pub fn each_text(&mut self, path: &[&str], mut edit: impl FnMut(&str) -> Option<String>) {
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
    fn parts_are_lent_grown_and_shrunk() {
        let json = br#"{"spec":{"list":[{"a":"1"},{"a":""}],"map":{"x":"1","y":"2"}}}"#;
        let mut object = Object::from_json(json).unwrap();
        object.edit(&["spec"], |spec| spec.edit_each(&["list"], |item| item.set_empty(&["a"], "z")));
        object.push(&["spec", "list"], Object::default().map());
        object.retain(&["spec", "list"], |item| item.str_at("a") != "1");
        object.each_text(&["spec", "map"], |text| (text == "2").then(|| "3".to_owned()));
        assert_eq!(object.to_json(), br#"{"spec":{"list":[{"a":"z"},{}],"map":{"x":"1","y":"3"}}}"#);
        object.retain(&["spec", "list"], |_| false);
        assert!(!object.at(&["spec", "list"]).is_present());
    }
}
