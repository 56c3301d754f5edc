//! Duplicate keys of a YAML text: upstream's YAML parser reports them with the line instead of the field path.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::json_decoder::MAX_STRICT;

/// Prefix of the messages of upstream's parser.
const ERROR_PREFIX: &str = "yaml: unmarshal errors:";

/// Rewrites the diagnostics of duplicate keys like upstream: one diagnostic before all others, with a line for each key.
pub(super) fn reword_duplicates(body: &[u8], strict: &mut Vec<String>) {
    let by_path = |text: &String| text.starts_with("duplicate field ");
    if !strict.iter().any(by_path) {
        return;
    }
    let lines = duplicate_keys(&String::from_utf8_lossy(body));
    // If only the JSON reader finds duplicates, their diagnostics are kept.
    if !lines.is_empty() {
        strict.retain(|text| !by_path(text));
        strict.insert(0, format!("{ERROR_PREFIX}\n  {}", lines.join("\n  ")));
    }
}

/// Returns a message for each duplicate key of a YAML text of any kind, and none for text that is not YAML.
#[must_use]
pub fn duplicate_keys(text: &str) -> Vec<String> {
    let text = super::yaml::first_document(text);
    let mut lines = Vec::new();
    let _ = serde_saphyr::with_deserializer_from_str_with_options(text, super::yaml::options(text), |tree| {
        Tree::deserialize(tree).map(|tree| tree.collect(text, &mut lines))
    });
    lines
}

/// Splits strict errors into warnings of one line each.
#[must_use]
pub fn warnings(strict: Vec<String>) -> Vec<String> {
    let lines = |text: String| match text.strip_prefix(ERROR_PREFIX) {
        Some(lines) => {
            lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
        }
        None => vec![text],
    };
    strict.into_iter().flat_map(lines).collect()
}

/// Keys of a text, with the lines of their values.
enum Tree {
    Scalar,
    List(Vec<Tree>),
    Map(Vec<(Spanned<Key>, Spanned<Tree>)>),
}

impl Tree {
    /// Collects duplicates, nested ones first: upstream detects them when it puts a value into its map.
    fn collect(&self, text: &str, lines: &mut Vec<String>) {
        match self {
            Self::Scalar => {}
            Self::List(items) => items.iter().for_each(|item| item.collect(text, lines)),
            Self::Map(_) => self.merge(text, false, &mut HashSet::new(), lines),
        }
    }

    /// Merges the entries of a map, or of the maps of a list from the last to the first, into a map with these keys.
    fn merge<'t>(&'t self, text: &str, merged: bool, keys: &mut HashSet<&'t Key>, lines: &mut Vec<String>) {
        match self {
            Self::Scalar => {}
            Self::List(items) => items.iter().rev().for_each(|item| item.merge(text, true, keys, lines)),
            Self::Map(entries) => {
                for (key, entry) in entries {
                    if super::yaml::is_merge_key(text, key) {
                        entry.value.merge(text, true, keys, lines);
                        continue;
                    }
                    entry.value.collect(text, lines);
                    if !keys.insert(&key.value) && lines.len() < MAX_STRICT {
                        let location = if merged { &entry.defined } else { &entry.referenced };
                        lines.push(format!(
                            "line {}: key {} already set in map",
                            location.line(),
                            key.value.0
                        ));
                    }
                }
            }
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Tree, E> {
        Ok(Tree::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Tree, E> {
        Ok(Tree::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Tree, E> {
        Ok(Tree::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Tree, E> {
        Ok(Tree::Scalar)
    }

    fn visit_str<E>(self, _: &str) -> Result<Tree, E> {
        Ok(Tree::Scalar)
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Tree::Map(map))
    }
}

/// Key as Go source prints it: strings in quotes.
#[derive(PartialEq, Eq, Hash)]
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyReader)
    }
}

struct KeyReader;

impl Visitor<'_> for KeyReader {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key that is a scalar")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Key, E> {
        Ok(Key(v.to_string()))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Key, E> {
        Ok(Key(v.to_string()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Key, E> {
        Ok(Key(v.to_string()))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Key, E> {
        Ok(Key(v.to_string()))
    }

    fn visit_str<E>(self, v: &str) -> Result<Key, E> {
        Ok(Key(format!("{v:?}")))
    }

    fn visit_unit<E>(self) -> Result<Key, E> {
        Ok(Key("interface {}(nil)".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reworded_errors(text: &str) -> Vec<String> {
        let mut strict = vec!["duplicate field \"x\"".to_owned(), "unknown field \"y\"".to_owned()];
        reword_duplicates(text.as_bytes(), &mut strict);
        strict
    }

    #[test]
    fn duplicate_keys_are_reported_with_the_lines_of_their_values() {
        let block = reworded_errors("\nkind: A\nspec:\n  foo: 1\n  foo: 2\nkind:\n  b\n");
        let lines = "line 5: key \"foo\" already set in map\n  line 7: key \"kind\" already set in map";
        assert_eq!(block, [&format!("yaml: unmarshal errors:\n  {lines}"), "unknown field \"y\""]);
        let flow = reworded_errors(
            "{\"m\":{\"n\":1,\"n\":1},\"a\":1,\"a\":{\"x\":[{\"u\":1,\"u\":2},\n {\"v\":1,\"v\":1}]}}",
        );
        let order = ["1: key \"n\"", "1: key \"u\"", "2: key \"v\"", "1: key \"a\""];
        assert_eq!(
            warnings(flow)[..4],
            order.map(|line| format!("line {line} already set in map")),
            "the deeper first"
        );
    }

    #[test]
    fn keys_of_merged_maps_count_as_duplicates() {
        let of = |text| warnings(reworded_errors(text))[0].clone();
        assert_eq!(of("a:\n  <<: {x: 1}\n  x: 2"), "line 3: key \"x\" already set in map");
        assert_eq!(of("b: &b\n  x: 1\na:\n  x: 2\n  <<: *b"), "line 2: key \"x\" already set in map");
        assert_eq!(of("<<: [{x: 1},\n {x: 2}]"), "line 1: key \"x\" already set in map");
    }

    #[test]
    fn duplicates_that_only_the_json_reader_reports_are_kept() {
        assert_eq!(reworded_errors("a: 1\nb: 2").len(), 2);
        assert_eq!(reworded_errors("a: [").len(), 2);
        assert_eq!(warnings(reworded_errors("a: 1")), ["duplicate field \"x\"", "unknown field \"y\""]);
    }
}
