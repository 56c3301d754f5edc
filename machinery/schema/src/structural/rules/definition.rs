//! Validation of rules in a definition: they must compile to the right type, use old values only where they correlate, and
//! not exceed cost limits.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

use portico_cel::{EvalError, Language};
use portico_machinery::field::{Error, Path};
use serde_json::Value;

use super::compiled_rule::{Environments, RuleCompilation, compile_rule};
use super::context::EvaluationContext;
use super::cost::{CostTotal, MAX_PER_EXPRESSION, limit_message};
use super::limits::MAX_REQUEST_BYTES;
use super::types;
use crate::model::ListType;
use crate::structural::compiled::Structural;
use crate::structural::definition::internal_format::format_rule;
use crate::structural::definition::requirements::Requirements;
use crate::structural::languages;
use crate::structural::model::{Additional, JsonType, SchemaNode};

const MEMBER: &str = "x-kubernetes-validations";

/// Validates the rules of a structural schema. `other_errors` contains the other errors of the schema: rules of nodes with such
/// errors are skipped. If the schema is unchanged, cost limits of single rules are not checked. An interruption is an error.
#[must_use]
pub(in crate::structural) fn validate(
    schema: &Value,
    path: &Path,
    other_errors: &[Error],
    requirements: &Requirements,
    context: &EvaluationContext<'_>,
) -> Vec<Error> {
    let Ok(compiled) = Structural::compile(schema) else { return Vec::new() };
    if !compiled.root().subtree_flags.rules {
        return Vec::new();
    }
    let language = languages::new_expressions();
    let (errors, total) = Default::default();
    let mut pass = RulesValidator {
        language,
        other_errors,
        is_unchanged: requirements.is_unchanged,
        context,
        errors,
        total,
    };
    let context = NodeContext { max_count: Some(1), uncorrelated_within: None, is_object: true };
    let flow = pass.node(compiled.root(), schema, path, context);
    let mut errors = pass.errors;
    if flow.is_break() {
        errors.push(Error::internal(path, &EvalError::Interrupted.to_string()));
    }
    errors.extend(pass.total.errors(path));
    errors
}

/// Context of a node.
#[derive(Clone, Copy)]
struct NodeContext<'a> {
    /// Maximum number of values of this node in an object; `None` is unbounded.
    max_count: Option<u64>,
    /// List or map below which old values cannot be correlated.
    uncorrelated_within: Option<&'a Path>,
    /// True if the node is the whole object.
    is_object: bool,
}

struct RulesValidator<'e> {
    language: &'e Arc<Language>,
    other_errors: &'e [Error],
    is_unchanged: bool,
    context: &'e EvaluationContext<'e>,
    errors: Vec<Error>,
    total: CostTotal,
}

impl RulesValidator<'_> {
    /// Validates the nodes below first, then the node itself, as upstream does.
    fn node(
        &mut self,
        node: &SchemaNode,
        json: &Value,
        path: &Path,
        context: NodeContext<'_>,
    ) -> ControlFlow<()> {
        if !node.subtree_flags.rules {
            return Continue(());
        }
        let child_context = NodeContext {
            max_count: multiply(context.max_count, max_children(node)),
            is_object: false,
            ..context
        };
        if let (Additional::Schema(values), Some(json)) = (&node.additional, json.get("additionalProperties"))
        {
            self.node(values, json, &path.child("additionalProperties"), child_context)?;
        }
        if let Some(properties) = json.get("properties").and_then(Value::as_object) {
            let field_path = path.child("properties");
            for (name, json) in properties {
                if let Some(child) = node.property(name) {
                    self.node(child, json, &field_path.key(name), child_context)?;
                }
            }
        }
        if let (Some(items), Some(json)) = (&node.items, json.get("items")) {
            let keyed = node.list_type == Some(ListType::Map);
            let uncorrelated_within = context.uncorrelated_within.or((!keyed).then_some(path));
            self.node(
                items,
                json,
                &path.child("items"),
                NodeContext { uncorrelated_within, ..child_context },
            )?;
        }
        if !node.rules.is_empty() && !self.has_other_errors(path) {
            return self.rules(node, json, &path.child(MEMBER), context);
        }
        Continue(())
    }

    /// True if there are other errors at this path or below.
    fn has_other_errors(&self, path: &Path) -> bool {
        self.other_errors.iter().any(|error| {
            let rest = error.path.as_str().strip_prefix(path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }

    fn rules(
        &mut self,
        node: &SchemaNode,
        json: &Value,
        path: &Path,
        context: NodeContext<'_>,
    ) -> ControlFlow<()> {
        let Some(declared) = types::declare(node, context.is_object) else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
            self.errors.push(Error::internal(path, detail));
            return Continue(());
        };
        let environments = Environments::of(&declared, self.language);
        let often = context.max_count.unwrap_or(MAX_REQUEST_BYTES / (declared.min_serialized_size + 1));
        for (index, rule) in node.rules.iter().enumerate() {
            if (self.context.interrupted)() {
                return Break(());
            }
            let outcome = compile_rule(rule, node, &declared, (&environments, &self.context.compilation));
            let (path, json) = (path.index(index), json.get(MEMBER).and_then(|rules| rules.get(index)));
            let json = json.unwrap_or(&Value::Null);
            self.costs(&outcome, &path, often);
            self.diagnostics(&outcome, &path, json);
            // Rules that do not compile use no variables.
            let uses_old = outcome.compiled.as_ref().is_some_and(|compiled| compiled.uses_old_self);
            let field_path = path.child("rule");
            if let (true, Some(within)) = (uses_old, context.uncorrelated_within) {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
                );
                self.errors.push(Error::invalid(&field_path, &*rule.rule, &detail));
            }
            if let (false, Some(optional)) = (uses_old, rule.optional_old_self) {
                let detail = "may not be set if oldSelf is not used in rule";
                self.errors.push(Error::invalid(&path.child("optionalOldSelf"), optional, detail));
            }
        }
        Continue(())
    }

    fn costs(&mut self, outcome: &RuleCompilation, path: &Path, often: u64) {
        let cost = outcome.cost.saturating_mul(often);
        self.cost("rule", cost, path);
        if outcome.compiled.as_ref().is_some_and(|compiled| compiled.message.is_some()) {
            self.cost("messageExpression", outcome.message_cost, path);
        }
    }

    fn cost(&mut self, member: &str, cost: u64, path: &Path) {
        let path = path.child(member);
        if !self.is_unchanged && cost > MAX_PER_EXPRESSION {
            let subject = format!("estimated {member} cost");
            self.errors.push(Error::forbidden(&path, &limit_message(&subject, cost, MAX_PER_EXPRESSION)));
        }
        self.total.add(path, cost);
    }

    fn diagnostics(&mut self, outcome: &RuleCompilation, path: &Path, rule: &Value) {
        let errors = [("rule", &outcome.error), ("messageExpression", &outcome.message_error)];
        for (member, error) in errors {
            if let Some(error) = error {
                self.errors.push(Error::invalid_printed(&path.child(member), &format_rule(rule), error));
            }
        }
    }
}

/// Returns the maximum number of children per value of a node; `None` is unbounded.
fn max_children(node: &SchemaNode) -> Option<u64> {
    let checks = node.checks.as_deref();
    let bound = |maximum: Option<i64>| maximum.map(|maximum| u64::try_from(maximum).unwrap_or(0));
    match node.ty {
        Some(JsonType::Object) if !matches!(node.additional, Additional::Absent) => {
            bound(checks.and_then(|checks| checks.max_properties))
        }
        Some(JsonType::Array) => bound(checks.and_then(|checks| checks.max_items)),
        _ => Some(1),
    }
}

fn multiply(one: Option<u64>, two: Option<u64>) -> Option<u64> {
    Some(one?.saturating_mul(two?))
}
