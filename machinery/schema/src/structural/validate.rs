//! Validation of values against a schema, with upstream's errors.
//!
//! The order of checks, the definition of a match of a branch, and the choice of the branch whose errors are reported are
//! upstream's. With an old object, errors of unchanged values are dropped (ratcheting).

mod float;
mod logical;
mod number;
mod outcome;
mod step_budget;
mod types;
mod view;

use std::sync::LazyLock;

use portico_machinery::field::{Error, ErrorType};
use serde_json::{Map, Value};

use self::outcome::{ErrorBudget, Outcome};
use self::step_budget::{BYTES_PER_STEP, MAX_STEPS, StepBudget, VALUES_PER_STEP};
use self::view::View;
use super::correlate::CorrelatedPair;
use super::model::{Additional, Checks, SchemaNode};
use super::printed;

/// Validates an object. With an old state, drops the errors of unchanged values.
pub(super) fn validate_object(
    new: &Map<String, Value>,
    old: Option<&Map<String, Value>>,
    root: &SchemaNode,
) -> Vec<Error> {
    let pair = old.map(|old| CorrelatedPair::of_objects(new, old, root));
    Validator::new("").run(View::Object(new), root, pair.as_ref())
}

/// Validates the value of a field of the object. All paths begin with the name of the field.
pub(super) fn field(
    name: &str,
    value: &Value,
    node: &SchemaNode,
    pair: Option<&CorrelatedPair<'_>>,
) -> Vec<Error> {
    Validator::new(name).run(View::of(value), node, pair)
}

/// Validates a default. As upstream, does not report here if an int-or-string is neither.
pub(super) fn default(value: &Value, node: &SchemaNode) -> Vec<Error> {
    Validator { is_default: true, ..Validator::new("") }.run(View::of(value), node, None)
}

/// Checks of a node without requirements.
static NO_CHECKS: LazyLock<Checks> = LazyLock::new(Checks::default);

struct Validator<'p> {
    /// Field in which the walk starts, empty for the whole object.
    prefix: &'p str,
    /// Path as messages print it, without the prefix.
    path: String,
    /// True if the value is a default.
    is_default: bool,
    work: StepBudget,
}

impl<'p> Validator<'p> {
    fn new(prefix: &'p str) -> Self {
        Validator { prefix, path: String::new(), is_default: false, work: StepBudget::default() }
    }

    fn run(mut self, view: View<'_>, node: &SchemaNode, pair: Option<&CorrelatedPair<'_>>) -> Vec<Error> {
        let mut errors = self.node(view, node, pair, ErrorBudget::for_object()).into_errors();
        if self.work.is_exceeded() {
            let text = format!("checking this object along its schema takes more than {MAX_STEPS} steps");
            errors.insert(0, Error::forbidden(&self.field_path_of(""), &text));
        }
        errors
    }

    fn node(
        &mut self,
        view: View<'_>,
        node: &SchemaNode,
        pair: Option<&CorrelatedPair<'_>>,
        budget: ErrorBudget,
    ) -> Outcome {
        let checks = node.checks.as_deref().unwrap_or(&NO_CHECKS);
        let mut out = Outcome::new(budget, checks.has_logical_operators());
        if !self.work.take(1) {
            // The value has not been checked, so it counts as invalid; the whole object is rejected.
            out.push(|| Error::forbidden(&self.field_path(), "too expensive to validate"));
            return out;
        }
        if matches!(view, View::Null) {
            self.null(node, checks, &mut out);
        } else {
            self.value(view, node, checks, pair, &mut out);
        }
        if !out.is_valid() && pair.is_some_and(CorrelatedPair::is_same) {
            out.drop_errors();
        }
        out
    }

    fn null(&mut self, node: &SchemaNode, checks: &Checks, out: &mut Outcome) {
        if self.type_names(node).is_empty() || node.nullable {
            out.add_matches(1);
        } else {
            self.type_error(self.type_names(node), "null", out);
        }
        self.enumeration(View::Null, checks, out);
    }

    /// Validates a value that is not null. As upstream, counts each group of checks that applies, some of them two times; the
    /// counts decide which branch of a logical operator is reported.
    fn value(
        &mut self,
        view: View<'_>,
        node: &SchemaNode,
        checks: &Checks,
        pair: Option<&CorrelatedPair<'_>>,
        out: &mut Outcome,
    ) {
        self.check_type(view, node, out);
        out.add_matches(2);
        self.logical_operators(view, checks, out);
        match view {
            View::String(text) => self.string(text, checks, out),
            View::Number(number) => {
                out.add_matches(2);
                self.number(number, node.ty, checks, out);
            }
            View::Array(items) => self.array(items, node, checks, pair, out),
            View::Object(_) | View::Bool(_) | View::Null => {}
        }
        out.add_matches(1);
        self.enumeration(view, checks, out);
        if let View::Object(fields) = view {
            out.add_matches(1);
            self.fields(fields, node, checks, pair, out);
        }
        out.add_matches(1);
    }

    fn string(&mut self, text: &str, checks: &Checks, out: &mut Outcome) {
        out.add_matches(1);
        if !self.work.take(text.len() / BYTES_PER_STEP) {
            return;
        }
        self.length(text, checks, out);
        if let Some(format) = checks.format.as_ref().filter(|format| format.kind.is_textual()) {
            out.add_matches(1);
            if !format.matches(text) {
                self.type_error(&format.name, text, out);
            }
        }
    }

    /// Checks the length in code points, then the pattern; reports only the first failure.
    fn length(&self, text: &str, checks: &Checks, out: &mut Outcome) {
        let count = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        let printed = || printed::print_value(&Value::from(text));
        if let Some(max) = checks.max_length.filter(|max| count > *max) {
            out.push(|| Error::too_long(&self.field_path(), usize::try_from(max).unwrap_or_default()));
        } else if let Some(min) = checks.min_length.filter(|min| count < *min) {
            self.invalid(printed, format_args!("should be at least {min} chars long"), out);
        } else if let Some(pattern) = &checks.pattern {
            match pattern.is_match(text) {
                Ok(true) => {}
                Ok(false) => self.invalid(printed, format_args!("should match '{}'", pattern.text()), out),
                Err(error) => {
                    let text = pattern.text();
                    self.invalid(
                        printed,
                        format_args!("should match '{text}, but pattern is invalid: {error}'"),
                        out,
                    );
                }
            }
        }
    }

    fn array(
        &mut self,
        items: &[Value],
        node: &SchemaNode,
        checks: &Checks,
        pair: Option<&CorrelatedPair<'_>>,
        out: &mut Outcome,
    ) {
        use std::fmt::Write as _;
        out.add_matches(2);
        if let Some(child) = &node.items {
            let path_len = self.path.len();
            for (index, item) in items.iter().enumerate() {
                // Writing to a string cannot fail.
                let _ = write!(self.path, "[{index}]");
                let pair = pair.and_then(|pair| pair.index(index));
                out.merge(self.node(View::of(item), child, pair.as_ref(), out.budget()));
                self.path.truncate(path_len);
            }
        }
        let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(min) = checks.min_items.filter(|min| count < *min) {
            self.invalid(|| count.to_string(), format_args!("should have at least {min} items"), out);
        }
        if let Some(max) = checks.max_items.filter(|max| count > *max) {
            self.too_many(items.len(), max, out);
        }
    }

    fn fields(
        &mut self,
        fields: &Map<String, Value>,
        node: &SchemaNode,
        checks: &Checks,
        pair: Option<&CorrelatedPair<'_>>,
        out: &mut Outcome,
    ) {
        let count = i64::try_from(fields.len()).unwrap_or(i64::MAX);
        if let Some(min) = checks.min_properties.filter(|min| count < *min) {
            self.invalid(|| count.to_string(), format_args!("should have at least {min} properties"), out);
        }
        if let Some(max) = checks.max_properties.filter(|max| count > *max) {
            self.too_many(fields.len(), max, out);
        }
        self.additional_properties(fields, node, pair, out);
        self.declared_properties(fields, node, pair, out);
        for name in checks.required.iter().filter(|name| !fields.contains_key(&***name)) {
            if out.is_full() {
                // Each element of a list may lack all of them: one error is enough.
                out.push(|| Error::required(&self.field_path(), ""));
                break;
            }
            out.push(|| {
                let path = self.field_path_of(&format!("{}.{name}", self.path));
                Error::required(&path, "")
            });
        }
    }

    /// Validates the fields that the schema names.
    fn declared_properties(
        &mut self,
        fields: &Map<String, Value>,
        node: &SchemaNode,
        pair: Option<&CorrelatedPair<'_>>,
        out: &mut Outcome,
    ) {
        for (name, child, value) in present_properties(fields, node) {
            // Not ratcheted: conversion has set both objects to this kind and version.
            let is_tag = self.path.is_empty() && matches!(name, "kind" | "apiVersion");
            let pair = pair.filter(|_| !is_tag).and_then(|pair| pair.key(name));
            let path_len = self.path.len();
            if path_len > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            out.merge(self.node(View::of(value), child, pair.as_ref(), out.budget()));
            self.path.truncate(path_len);
        }
    }

    /// Validates the fields that the schema does not name.
    fn additional_properties(
        &mut self,
        fields: &Map<String, Value>,
        node: &SchemaNode,
        pair: Option<&CorrelatedPair<'_>>,
        out: &mut Outcome,
    ) {
        let unnamed = || fields.iter().filter(|(key, _)| node.property(key).is_none());
        match &node.additional {
            Additional::Absent | Additional::Any => {}
            Additional::Forbidden => {
                for (key, _) in unnamed() {
                    out.push(|| {
                        let text = format!("{}.{key} in body is a forbidden property", self.path);
                        Error::invalid_printed(
                            &self.field_path(),
                            &printed::print_value(&key.as_str().into()),
                            &text,
                        )
                    });
                }
            }
            Additional::Schema(child) => {
                for (key, value) in unnamed() {
                    let pair = pair.and_then(|pair| pair.key(key));
                    let path_len = self.path.len();
                    self.path.push('.');
                    self.path.push_str(key);
                    out.merge(self.node(View::of(value), child, pair.as_ref(), out.budget()));
                    self.path.truncate(path_len);
                }
            }
        }
    }

    fn is_one_of(&mut self, view: View<'_>, checks: &Checks) -> bool {
        if let (View::String(text), Some(texts)) = (view, &checks.enumerated_texts) {
            return texts.contains(text);
        }
        self.work.take(checks.enumeration.len() / VALUES_PER_STEP);
        checks.enumeration.iter().any(|allowed| view.equals(allowed))
    }

    fn enumeration(&mut self, view: View<'_>, checks: &Checks, out: &mut Outcome) {
        let allowed = &checks.enumeration;
        if allowed.is_empty() || self.is_one_of(view, checks) {
            return;
        }
        out.push(|| {
            let printed: Vec<String> = allowed
                .iter()
                .map(|allowed| allowed.as_str().map_or_else(|| allowed.to_string(), str::to_owned))
                .collect();
            let printed: Vec<&str> = printed.iter().map(String::as_str).collect();
            Error::not_supported_printed(&self.field_path(), &view.printed(), &printed)
        });
    }

    /// Reports `Invalid value: <shown>: <path> in body <text>`.
    fn invalid(&self, printed: impl FnOnce() -> String, text: std::fmt::Arguments<'_>, out: &mut Outcome) {
        out.push(|| {
            let text = format!("{} in body {text}", self.path);
            Error::invalid_printed(&self.field_path(), &printed(), &text)
        });
    }

    /// Reports an error for which upstream does not name a field.
    fn error_without_field(&self, text: impl FnOnce() -> String, out: &mut Outcome) {
        out.push(|| Error::invalid(&self.field_path_of(""), "", &text()));
    }

    fn too_many(&self, count: usize, max: i64, out: &mut Outcome) {
        out.push(|| Error::too_many(&self.field_path(), count, usize::try_from(max).unwrap_or_default()));
    }

    fn type_error(&self, expected: &str, found: &str, out: &mut Outcome) {
        out.push(|| {
            let printed = printed::print_value(&found.into());
            let body = format!(
                "Invalid value: {printed}: {} in body must be of type {expected}: {printed}",
                self.path
            );
            Error::new(ErrorType::TypeInvalid, &self.field_path(), body)
        });
    }
}

/// Returns the fields of an object that a schema names, in schema order. Iterates over the smaller side: a list may have as
/// many elements as the schema of its items has properties, which would be quadratic.
fn present_properties<'a>(
    fields: &'a Map<String, Value>,
    node: &'a SchemaNode,
) -> impl Iterator<Item = (&'a str, &'a SchemaNode, &'a Value)> {
    let of_object = fields.len() < node.properties.len();
    let mut few: Vec<(&str, &SchemaNode, &Value)> = if of_object {
        let named =
            |(name, value): (&'a String, &'a Value)| Some((name.as_str(), &**node.property(name)?, value));
        fields.iter().filter_map(named).collect()
    } else {
        Vec::new()
    };
    few.sort_unstable_by_key(|(name, ..)| *name);
    let all = if of_object { &[][..] } else { &node.properties };
    let all = all.iter().filter_map(|(name, child)| Some((&**name, &**child, fields.get(&**name)?)));
    few.into_iter().chain(all)
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
