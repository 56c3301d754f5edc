//! Validation of rules in a definition: they must compile to the right type, use old values only where they correlate, and
//! not exceed cost limits.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

use portico_cel::{EvalError, Language};
use portico_machinery::field::{Error, Path};
use serde_json::Value;

use super::compiled::{Environments, Outcome, compile};
use super::context::Context;
use super::cost::{MAX_PER_EXPRESSION, Total, exceeds};
use super::limits::MAX_REQUEST_BYTES;
use super::types;
use crate::model::ListType;
use crate::structural::compiled::Structural;
use crate::structural::definition::internal::rule_as_held;
use crate::structural::definition::terms::Terms;
use crate::structural::languages;
use crate::structural::model::{Additional, JsonType, Node};

const MEMBER: &str = "x-kubernetes-validations";

/// Validates the rules of a structural schema. `other_errors` contains the other errors of the schema: rules of nodes with such
/// errors are skipped. If the schema is unchanged, cost limits of single rules are not checked. An interruption is an error.
#[must_use]
pub(in crate::structural) fn validate(
    schema: &Value,
    path: &Path,
    wrong: &[Error],
    terms: &Terms,
    context: &Context<'_>,
) -> Vec<Error> {
    let Ok(compiled) = Structural::compile(schema) else { return Vec::new() };
    if !compiled.root().marks.rules {
        return Vec::new();
    }
    let language = languages::new_expressions();
    let (errors, total) = Default::default();
    let mut pass = Pass { language, wrong, stays: terms.stays, context, errors, total };
    let around = Around { often: Some(1), no_old: None, resource: true };
    let ended = pass.node(compiled.root(), schema, path, around);
    let mut errors = pass.errors;
    if ended.is_break() {
        errors.push(Error::internal(path, &EvalError::Interrupted.to_string()));
    }
    errors.extend(pass.total.errors(path));
    errors
}

/// Context of a node.
#[derive(Clone, Copy)]
struct Around<'a> {
    /// Maximum number of values of this node in an object; `None` is unbounded.
    often: Option<u64>,
    /// List or map below which old values cannot be correlated.
    no_old: Option<&'a Path>,
    /// True if the node is the whole object.
    resource: bool,
}

struct Pass<'e> {
    language: &'e Arc<Language>,
    wrong: &'e [Error],
    stays: bool,
    context: &'e Context<'e>,
    errors: Vec<Error>,
    total: Total,
}

impl Pass<'_> {
    /// Validates the nodes below first, then the node itself, as upstream does.
    fn node(&mut self, node: &Node, json: &Value, path: &Path, around: Around<'_>) -> ControlFlow<()> {
        if !node.marks.rules {
            return Continue(());
        }
        let inside = Around { often: multiplied(around.often, how_many(node)), resource: false, ..around };
        if let (Additional::Schema(values), Some(json)) = (&node.additional, json.get("additionalProperties"))
        {
            self.node(values, json, &path.child("additionalProperties"), inside)?;
        }
        if let Some(properties) = json.get("properties").and_then(Value::as_object) {
            let here = path.child("properties");
            for (name, json) in properties {
                if let Some(below) = node.property(name) {
                    self.node(below, json, &here.key(name), inside)?;
                }
            }
        }
        if let (Some(items), Some(json)) = (&node.items, json.get("items")) {
            let keyed = node.list_type == Some(ListType::Map);
            let no_old = around.no_old.or((!keyed).then_some(path));
            self.node(items, json, &path.child("items"), Around { no_old, ..inside })?;
        }
        if !node.rules.is_empty() && !self.is_wrong(path) {
            return self.rules(node, json, &path.child(MEMBER), around);
        }
        Continue(())
    }

    /// True if there are other errors at this path or below.
    fn is_wrong(&self, path: &Path) -> bool {
        self.wrong.iter().any(|error| {
            let rest = error.path.as_str().strip_prefix(path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }

    fn rules(&mut self, node: &Node, json: &Value, path: &Path, around: Around<'_>) -> ControlFlow<()> {
        let Some(declared) = types::declare(node, around.resource) else {
            let why = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
            self.errors.push(Error::internal(path, why));
            return Continue(());
        };
        let environments = Environments::of(&declared, self.language);
        let often = around.often.unwrap_or(MAX_REQUEST_BYTES / (declared.min_serialized_size + 1));
        for (index, rule) in node.rules.iter().enumerate() {
            if (self.context.interrupted)() {
                return Break(());
            }
            let outcome = compile(rule, node, &declared, (&environments, &self.context.compilation));
            let (path, json) = (path.index(index), json.get(MEMBER).and_then(|rules| rules.get(index)));
            let json = json.unwrap_or(&Value::Null);
            self.costs(&outcome, &path, often);
            self.diagnostics(&outcome, &path, json);
            // Rules that do not compile use no variables.
            let uses_old = outcome.compiled.as_ref().is_some_and(|compiled| compiled.uses_old);
            let here = path.child("rule");
            if let (true, Some(within)) = (uses_old, around.no_old) {
                let why = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
                );
                self.errors.push(Error::invalid(&here, &*rule.rule, &why));
            }
            if let (false, Some(optional)) = (uses_old, rule.optional_old_self) {
                let why = "may not be set if oldSelf is not used in rule";
                self.errors.push(Error::invalid(&path.child("optionalOldSelf"), optional, why));
            }
        }
        Continue(())
    }

    fn costs(&mut self, outcome: &Outcome, path: &Path, often: u64) {
        let cost = outcome.cost.saturating_mul(often);
        self.cost("rule", cost, path);
        if outcome.compiled.as_ref().is_some_and(|compiled| compiled.message.is_some()) {
            self.cost("messageExpression", outcome.message_cost, path);
        }
    }

    fn cost(&mut self, member: &str, cost: u64, path: &Path) {
        let path = path.child(member);
        if !self.stays && cost > MAX_PER_EXPRESSION {
            let what = format!("estimated {member} cost");
            self.errors.push(Error::forbidden(&path, &exceeds(&what, cost, MAX_PER_EXPRESSION)));
        }
        self.total.add(path, cost);
    }

    fn diagnostics(&mut self, outcome: &Outcome, path: &Path, rule: &Value) {
        let whys = [("rule", &outcome.error), ("messageExpression", &outcome.message_error)];
        for (member, why) in whys {
            if let Some(why) = why {
                self.errors.push(Error::invalid_printed(&path.child(member), &rule_as_held(rule), why));
            }
        }
    }
}

/// Returns the maximum number of children per value of a node; `None` is unbounded.
fn how_many(node: &Node) -> Option<u64> {
    let checks = node.checks.as_deref();
    let bound = |most: Option<i64>| most.map(|most| u64::try_from(most).unwrap_or(0));
    match node.ty {
        Some(JsonType::Object) if !matches!(node.additional, Additional::Absent) => {
            bound(checks.and_then(|checks| checks.max_properties))
        }
        Some(JsonType::Array) => bound(checks.and_then(|checks| checks.max_items)),
        _ => Some(1),
    }
}

fn multiplied(one: Option<u64>, two: Option<u64>) -> Option<u64> {
    Some(one?.saturating_mul(two?))
}
