//! Formatting of values in upstream's apply errors: upstream holds a value by a pointer, and Go prints pointer and value.

use std::fmt;

use portico_machinery::object::GoValue;
use serde_json::Value;

/// Formats like `%v`: `&{a}`, `&{map[a:1 b:[x y]]}`.
pub(super) struct GoPointer<'v>(pub &'v Value);

/// Formats like `%#v`: `&value.valueUnstructured{Value:1}`.
pub(super) struct GoSyntax<'v>(pub &'v Value);

impl fmt::Display for GoPointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "&{{{}}}", GoValue(self.0))
    }
}

impl fmt::Display for GoSyntax<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("&value.valueUnstructured{Value:")?;
        write_go_syntax(f, self.0)?;
        f.write_str("}")
    }
}

fn write_go_syntax(f: &mut fmt::Formatter<'_>, value: &Value) -> fmt::Result {
    match value {
        Value::Null => f.write_str("interface {}(nil)"),
        Value::String(text) => write!(f, "{text:?}"),
        Value::Array(items) => {
            f.write_str("[]interface {}{")?;
            write_separated(f, ", ", items, write_go_syntax)?;
            f.write_str("}")
        }
        Value::Object(map) => {
            f.write_str("map[string]interface {}{")?;
            write_separated(f, ", ", sorted_entries(map), |f, (key, value)| {
                write!(f, "{key:?}:")?;
                write_go_syntax(f, value)
            })?;
            f.write_str("}")
        }
        // Numbers and Booleans print the same in both formats.
        other => write!(f, "{}", GoValue(other)),
    }
}

fn sorted_entries(map: &serde_json::Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

fn write_separated<T>(
    f: &mut fmt::Formatter<'_>,
    by: &str,
    items: impl IntoIterator<Item = T>,
    print: impl Fn(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (n, item) in items.into_iter().enumerate() {
        if n > 0 {
            f.write_str(by)?;
        }
        print(f, item)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_printed_as_upstream_prints_them() {
        let list = json!([1, {"c": true, "a": 1.5, "b": null, "big": 1e30}]);
        assert_eq!(GoPointer(&list).to_string(), "&{[1 map[a:1.5 b:<nil> big:1e+30 c:true]]}");
        let map = json!({"b": {"c": "\""}, "a": [1, 2.5, "x", true, null, {}]});
        let inner = r#"map[string]interface {}{"a":[]interface {}{1, 2.5, "x", true, interface {}(nil), map[string]interface {}{}}, "b":map[string]interface {}{"c":"\""}}"#;
        assert_eq!(GoSyntax(&map).to_string(), format!("&value.valueUnstructured{{Value:{inner}}}"));
    }
}
