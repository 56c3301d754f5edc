//! Breaking changes between two schemas: values that become invalid, fields that are lost, lists that merge differently. Used
//! before a definition is changed.
//!
//! Changes that only widen are not reported. Objects are not read: validating them shows if any is affected.

mod checks;

use std::sync::Arc;

use portico_machinery::field::Path;

use super::model::{Additional, JsonType, SchemaNode};
use super::{Structural, printed};

/// Changes of one version that `crds check` reports.
///
/// Limit (Definitions and schemas): the rest is omitted.
pub const MAX_BREAKING: usize = 1_000;

/// Change that breaks objects or clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakingChange {
    /// Path in the object.
    pub path: Path,
    /// Description of the change and of its effect on objects and clients.
    pub text: String,
}

impl Structural {
    /// Returns the changes from an older schema to this one that break something, in schema order; at most [`MAX_BREAKING`].
    #[must_use]
    pub fn breaking_changes(&self, older: &Self) -> Vec<BreakingChange> {
        let mut walk = BreakingChangeFinder { found: Vec::new() };
        walk.node(&Path::root(), older.root(), self.root());
        walk.found
    }
}

struct BreakingChangeFinder {
    found: Vec<BreakingChange>,
}

impl BreakingChangeFinder {
    fn report(&mut self, path: &Path, text: impl Into<String>) {
        if self.found.len() < MAX_BREAKING {
            self.found.push(BreakingChange { path: path.clone(), text: text.into() });
        }
    }

    fn node(&mut self, path: &Path, old: &Arc<SchemaNode>, new: &Arc<SchemaNode>) {
        // Equal sub-schemas of one tree are shared, those of two trees are not.
        if old == new || self.found.len() >= MAX_BREAKING {
            return;
        }
        if !accepts_old_type(old, new) {
            let text = format!(
                "type changes from {} to {}: stored values become invalid",
                type_description(old),
                type_description(new)
            );
            // The values below cannot be compared.
            return self.report(path, text);
        }
        self.attributes(path, old, new);
        let none = Default::default();
        checks::compare(
            old.checks.as_deref().unwrap_or(&none),
            new.checks.as_deref().unwrap_or(&none),
            new,
            &mut |text| self.report(path, text),
        );
        self.rules(path, old, new);
        self.fields(path, old, new);
        if let (Some(old), Some(new)) = (&old.items, &new.items) {
            self.node(&Path::new(format!("{path}[]")), old, new);
        }
    }

    fn attributes(&mut self, path: &Path, old: &SchemaNode, new: &SchemaNode) {
        if old.nullable && !new.nullable {
            self.report(path, "is no longer nullable: a stored null is removed or replaced by the default");
        }
        if old.preserve_unknown && !new.preserve_unknown {
            self.report(path, "no longer preserves unknown fields: they are pruned");
        }
        if new.embedded && !old.embedded {
            self.report(path, "becomes an embedded resource: apiVersion and kind are required");
        }
        if (old.list_type, &old.list_keys) != (new.list_type, &new.list_keys) {
            self.report(
                path,
                "list type changes: server-side apply merges it differently, and its elements may have to be unique",
            );
        }
        if old.map_type != new.map_type {
            self.report(path, "map type changes: server-side apply merges it differently");
        }
        if old.default != new.default {
            let text = |default: &Option<_>| {
                default.as_ref().map_or_else(|| "none".to_owned(), printed::print_value)
            };
            let (before, after) = (text(&old.default), text(&new.default));
            self.report(
                path,
                format!(
                    "default changes from {before} to {after}: objects without the field get another value"
                ),
            );
        }
    }

    fn rules(&mut self, path: &Path, old: &SchemaNode, new: &SchemaNode) {
        for rule in &new.rules {
            if !old.rules.iter().any(|before| before.rule == rule.rule) {
                self.report(path, format!("has a new rule: {}", rule.rule));
            }
        }
    }

    fn fields(&mut self, path: &Path, old: &SchemaNode, new: &SchemaNode) {
        for (name, before) in &old.properties {
            match new.field(name) {
                Some(after) => self.node(&path.child(name), before, after),
                None if new.preserve_unknown || matches!(new.additional, Additional::Any) => {}
                None => self.report(&path.child(name), "is removed: its values are pruned"),
            }
        }
        match (&old.additional, &new.additional) {
            (Additional::Schema(before), Additional::Schema(after)) => {
                self.node(&Path::new(format!("{path}[*]")), before, after);
            }
            (Additional::Schema(_) | Additional::Any, Additional::Absent | Additional::Forbidden)
                if !new.preserve_unknown =>
            {
                self.report(path, "no longer accepts fields of any name");
            }
            _ => {}
        }
    }
}

/// Describes the type of values.
fn type_description(node: &SchemaNode) -> &'static str {
    match node.ty {
        _ if node.int_or_string => "integer or string",
        Some(ty) => ty.as_str(),
        None => "anything",
    }
}

/// True if every value of the old type is a value of the new type.
fn accepts_old_type(old: &SchemaNode, new: &SchemaNode) -> bool {
    match (old.ty, new.ty) {
        _ if old.int_or_string == new.int_or_string && old.ty == new.ty => true,
        (old, None) if new.int_or_string => matches!(old, Some(JsonType::Integer | JsonType::String)),
        (_, None) => true,
        (Some(JsonType::Integer), Some(JsonType::Number)) => true,
        _ => false,
    }
}

#[cfg(test)]
#[path = "breaking_tests.rs"]
mod tests;
