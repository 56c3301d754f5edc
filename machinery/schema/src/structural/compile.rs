//! Compiler from the JSON of a schema to nodes. Drops and rejects the same keywords as upstream's conversion.

use std::collections::HashSet;
use std::sync::Arc;

use portico_machinery::object::MAX_DEPTH;
use serde_json::{Map, Value};

use super::compile_error::CompileError;
use super::definition::unsupported::unsupported;
use super::format::Format;
use super::intern::Interner;
use super::model::{Additional, Bound, Checks, JsonType, Properties, Rule, SchemaNode, SubtreeFlags};
use crate::model::{ListType, MapType};

/// Number of enumeration values from which a hash set is used for lookups.
const LARGE_ENUM: usize = 16;

type Result<T> = std::result::Result<T, CompileError>;
type Props = Map<String, Value>;

/// Compiles the root node. Also returns the number of distinct nodes.
pub(super) fn compile_root(props: &Value) -> Result<(Arc<SchemaNode>, usize)> {
    let mut compiler = Compiler { interner: Interner::default(), depth: 0 };
    let root = compiler.node(props)?;
    Ok((root, compiler.interner.count()))
}

struct Compiler {
    interner: Interner,
    depth: usize,
}

impl Compiler {
    fn node(&mut self, props: &Value) -> Result<Arc<SchemaNode>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(CompileError::TooDeep);
        }
        if let Some(error) = unsupported(props) {
            return Err(error);
        }
        let empty = Map::new();
        let node = self.read_node(props.as_object().unwrap_or(&empty))?;
        self.depth -= 1;
        Ok(self.interner.node(node))
    }

    fn read_node(&mut self, props: &Props) -> Result<SchemaNode> {
        let ty = text(props, "type").and_then(JsonType::parse);
        let int_or_string = bool_of(props, "x-kubernetes-int-or-string");
        let mut node = SchemaNode {
            ty: ty.filter(|_| !int_or_string),
            nullable: bool_of(props, "nullable"),
            int_or_string,
            preserve_unknown: bool_of(props, "x-kubernetes-preserve-unknown-fields"),
            embedded: bool_of(props, "x-kubernetes-embedded-resource"),
            default: props.get("default").filter(|v| !v.is_null()).cloned(),
            properties: self.properties(props)?,
            additional: self.additional(props)?,
            items: self.items(props)?,
            list_type: text(props, "x-kubernetes-list-type").and_then(list_type),
            list_keys: texts(props, "x-kubernetes-list-map-keys").map(Box::from).collect(),
            map_type: map_type(text(props, "x-kubernetes-map-type")),
            rules: self.rules(props),
            ..SchemaNode::default()
        };
        let with_default =
            node.properties.iter().enumerate().filter(|(_, (_, child))| child.default.is_some());
        node.default_indices = with_default.filter_map(|(index, _)| u32::try_from(index).ok()).collect();
        let checks = self.checks(props, node.ty)?;
        node.checks = self.interner.checks(checks);
        node.subtree_flags = subtree_flags(&node);
        Ok(node)
    }

    fn properties(&mut self, props: &Props) -> Result<Properties> {
        let Some(Value::Object(map)) = props.get("properties") else { return Ok(Box::default()) };
        let properties = map.iter().map(|(name, child)| Ok((self.interner.text(name), self.node(child)?)));
        let mut properties = properties.collect::<Result<Vec<_>>>()?;
        properties.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(properties.into())
    }

    fn additional(&mut self, props: &Props) -> Result<Additional> {
        Ok(match props.get("additionalProperties") {
            Some(Value::Bool(true)) => Additional::Any,
            Some(Value::Bool(false)) => Additional::Forbidden,
            Some(schema @ Value::Object(_)) => Additional::Schema(self.node(schema)?),
            _ => Additional::Absent,
        })
    }

    fn items(&mut self, props: &Props) -> Result<Option<Arc<SchemaNode>>> {
        match props.get("items") {
            Some(schema @ Value::Object(_)) => self.node(schema).map(Some),
            _ => Ok(None),
        }
    }

    fn checks(&mut self, props: &Props, ty: Option<JsonType>) -> Result<Checks> {
        let integer = |name: &str| props.get(name).and_then(Value::as_i64);
        let mut seen = HashSet::new();
        let required = texts(props, "required").filter(|name| seen.insert(*name));
        let required: Vec<Arc<str>> = required.map(|name| self.interner.text(name)).collect();
        let pattern = text(props, "pattern").filter(|pattern| !pattern.is_empty());
        Ok(Checks {
            format: text(props, "format").and_then(|name| Format::recognized(name, ty)),
            enumeration: list(props, "enum").iter().cloned().collect(),
            enumerated_texts: large_enum_texts(list(props, "enum")),
            maximum: bound(props, "maximum", "exclusiveMaximum"),
            minimum: bound(props, "minimum", "exclusiveMinimum"),
            multiple_of: props.get("multipleOf").and_then(Value::as_f64),
            max_length: integer("maxLength"),
            min_length: integer("minLength"),
            pattern: pattern.map(|pattern| self.interner.pattern(pattern)),
            max_items: integer("maxItems"),
            min_items: integer("minItems"),
            max_properties: integer("maxProperties"),
            min_properties: integer("minProperties"),
            required: required.into(),
            all_of: self.branches(props, "allOf")?,
            any_of: self.branches(props, "anyOf")?,
            one_of: self.branches(props, "oneOf")?,
            not: props.get("not").filter(|v| v.is_object()).map(|not| self.node(not)).transpose()?,
        })
    }

    fn branches(&mut self, props: &Props, name: &str) -> Result<Box<[Arc<SchemaNode>]>> {
        list(props, name).iter().map(|branch| self.node(branch)).collect()
    }

    fn rules(&mut self, props: &Props) -> Box<[Rule]> {
        let rules = list(props, "x-kubernetes-validations").iter().filter_map(Value::as_object);
        rules
            .map(|rule| {
                let mut of = |name| self.interner.text(text(rule, name).unwrap_or_default());
                Rule {
                    rule: of("rule"),
                    message: of("message"),
                    message_expression: of("messageExpression"),
                    field_path: of("fieldPath"),
                    reason: text(rule, "reason").map(|reason| self.interner.text(reason)),
                    optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool),
                }
            })
            .collect()
    }
}

fn subtree_flags(node: &SchemaNode) -> SubtreeFlags {
    let children = node.properties.iter().map(|(_, children)| children);
    let children = children.chain(node.additional.schema()).chain(&node.items);
    let own_flags = SubtreeFlags {
        defaults: false,
        rules: !node.rules.is_empty(),
        unique_lists: matches!(node.list_type, Some(ListType::Set | ListType::Map)),
        embedded: node.embedded,
    };
    children.fold(own_flags, |flags, child| {
        let has_default = SubtreeFlags { defaults: child.default.is_some(), ..SubtreeFlags::default() };
        flags.union(child.subtree_flags).union(has_default)
    })
}

fn text<'p>(props: &'p Props, name: &str) -> Option<&'p str> {
    props.get(name).and_then(Value::as_str)
}

fn bool_of(props: &Props, name: &str) -> bool {
    props.get(name).and_then(Value::as_bool).unwrap_or_default()
}

fn list<'p>(props: &'p Props, name: &str) -> &'p [Value] {
    props.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn texts<'p>(props: &'p Props, name: &str) -> impl Iterator<Item = &'p str> {
    list(props, name).iter().filter_map(Value::as_str)
}

/// Returns the strings of a large enumeration.
fn large_enum_texts(values: &[Value]) -> Option<HashSet<Box<str>>> {
    (values.len() > LARGE_ENUM).then(|| values.iter().filter_map(Value::as_str).map(Box::from).collect())
}

fn bound(props: &Props, name: &str, exclusive: &str) -> Option<Bound> {
    let value = props.get(name).and_then(Value::as_f64)?;
    Some(Bound { value, exclusive: bool_of(props, exclusive) })
}

fn list_type(name: &str) -> Option<ListType> {
    Some(match name {
        "atomic" => ListType::Atomic,
        "set" => ListType::Set,
        "map" => ListType::Map,
        _ => return None,
    })
}

fn map_type(name: Option<&str>) -> MapType {
    if name == Some("atomic") { MapType::Atomic } else { MapType::Granular }
}

#[cfg(test)]
#[path = "compile_tests.rs"]
mod tests;
