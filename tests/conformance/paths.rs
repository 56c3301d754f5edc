//! Dotted paths into JSON: lookup and removal of values.

use serde_json::Value;

/// A step from a value to one inside it.
#[derive(Clone, Debug)]
pub enum Key {
    Field(String),
    Item(usize),
}

/// Returns every position that a path matches, in the order of the document.
pub fn positions(value: &Value, path: &str) -> Vec<Vec<Key>> {
    let mut found: Vec<Vec<Key>> = vec![Vec::new()];
    for part in parts(path) {
        let next = found.iter().flat_map(|position| {
            let keys = get(value, position).map_or_else(Vec::new, |current| matching_keys(current, &part));
            keys.into_iter().map(|key| position.iter().cloned().chain([key]).collect())
        });
        found = next.collect();
    }
    found
}

/// Returns the value at the first position that a path matches.
pub fn pick<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    get(value, positions(value, path).first()?)
}

/// Returns the value at a position.
pub fn get<'a>(value: &'a Value, position: &[Key]) -> Option<&'a Value> {
    position.iter().try_fold(value, |current, key| match key {
        Key::Field(name) => current.get(name),
        Key::Item(index) => current.get(index),
    })
}

/// Returns the value at a position, for changes.
pub fn get_mut<'a>(value: &'a mut Value, position: &[Key]) -> Option<&'a mut Value> {
    position.iter().try_fold(value, |current, key| match key {
        Key::Field(name) => current.get_mut(name),
        Key::Item(index) => current.get_mut(index),
    })
}

/// Removes all values that a path matches.
pub fn remove(value: &mut Value, path: &str) {
    // From the end, so that the indexes of the remaining items stay valid.
    for position in positions(value, path).into_iter().rev() {
        let Some((last, parent)) = position.split_last() else { continue };
        match (get_mut(value, parent), last) {
            (Some(Value::Object(fields)), Key::Field(name)) => drop(fields.shift_remove(name)),
            (Some(Value::Array(items)), Key::Item(index)) => drop(items.remove(*index)),
            _ => {}
        }
    }
}

fn matching_keys(current: &Value, part: &str) -> Vec<Key> {
    let inner = part.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match (current, inner.and_then(|inner| inner.split_once('='))) {
        (Value::Array(items), Some((field, wanted))) => {
            let has = |item: &Value| item.get(field).is_some_and(|value| text(value) == wanted);
            (0..items.len()).filter(|index| has(&items[*index])).map(Key::Item).collect()
        }
        (Value::Array(items), None) if part == "*" => (0..items.len()).map(Key::Item).collect(),
        (Value::Object(fields), None) if part == "*" => fields.keys().cloned().map(Key::Field).collect(),
        (Value::Array(items), None) => {
            let index: Option<usize> = inner.unwrap_or(part).parse().ok();
            index.filter(|index| *index < items.len()).map(Key::Item).into_iter().collect()
        }
        (Value::Object(fields), None) => {
            fields.contains_key(part).then(|| Key::Field(part.to_owned())).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Returns a text unchanged, any other value as JSON.
pub fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn parts(path: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = path.chars();
    let mut bracket = false;
    while let Some(letter) = letters.next() {
        let last = parts.len() - 1;
        match letter {
            '\\' => parts[last].extend(letters.next()),
            '.' if !bracket => parts.push(String::new()),
            '[' => {
                bracket = true;
                parts.push("[".to_owned());
            }
            ']' => {
                bracket = false;
                parts[last].push(']');
            }
            other => parts[last].push(other),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[test]
fn paths_name_fields_items_and_choices() {
    let value: Value =
        serde_json::json!({"a.b": {"c": [{"n": "x", "v": 1}, {"n": "y", "v": 2}]}, "d": [[1], [2, 3]]});
    let at = |path: &str| -> Vec<String> {
        positions(&value, path).iter().map(|position| get(&value, position).unwrap().to_string()).collect()
    };
    assert_eq!(at(r"a\.b.c.*.v"), ["1", "2"]);
    assert_eq!(at(r"a\.b.c[n=y].v"), ["2"]);
    assert_eq!(at("d.1.0"), ["2"]);
    assert_eq!(at("d[1]"), ["[2,3]"]);
    assert!(at("d.7").is_empty() && at("x.y").is_empty());
    let mut remaining = value;
    remove(&mut remaining, "d.1.*");
    remove(&mut remaining, r"a\.b.c[n=x]");
    assert_eq!(remaining.to_string(), r#"{"a.b":{"c":[{"n":"y","v":2}]},"d":[[1],[]]}"#);
}
