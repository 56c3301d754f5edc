//! Evaluation of rules for one value, within a cost budget, and the errors of failed rules.

use std::ops::ControlFlow::{self, Break, Continue};

use portico_cel::value::{Map, from_json};
use portico_cel::{DeclType, EvalError, Program, Value};
use portico_machinery::field::Path;
use portico_machinery::status::MAX_FIELD_ERRORS;

use super::compiled_rule::CompiledRule;
use super::context::EvaluationContext;
use super::findings::RuleFindings;
use super::limits::MAX_PER_CALL;
use super::message;
use super::target::RuleTarget;
use super::tree::TreeRule;
use crate::structural::model::Rule;
use crate::structural::object_or_value::ObjectOrValue;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";
const MESSAGE_OUT_OF_BUDGET: &str = "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run";
/// Path of the whole object in errors.
const NO_PATH: &str = "<nil>";

/// Evaluation of rules, value by value.
pub(super) struct Evaluation<'e> {
    pub findings: RuleFindings,
    /// Remaining cost budget; negative if the evaluation was stopped.
    pub remaining_budget: i64,
    context: &'e EvaluationContext<'e>,
}

/// Rule and the value for which it runs.
#[derive(Clone, Copy)]
struct RuleRun<'r, 'a> {
    target: RuleTarget<'r, 'a>,
    /// Old value; `None` for null.
    old: Option<ObjectOrValue<'a>>,
    rule: &'a Rule,
    compiled: &'a CompiledRule,
    declared: &'a DeclType,
}

impl<'e> Evaluation<'e> {
    pub fn new(budget: i64, context: &'e EvaluationContext<'e>) -> Self {
        Self { findings: RuleFindings::default(), remaining_budget: budget, context }
    }

    /// Evaluates the rules of one value in order.
    pub fn rules(&mut self, target: RuleTarget<'_, '_>) -> ControlFlow<()> {
        let tree = target.tree;
        if tree.rules.is_empty() {
            return Continue(());
        }
        if self.remaining_budget <= 0 {
            return self.stop(target, OUT_OF_BUDGET);
        }
        let old = target.old.filter(|old| !old.is_null());
        for TreeRule { rule, compiled } in &tree.rules {
            match (compiled, &tree.declared) {
                (Err(reason), _) => self.report_invalid(target, &format!("rule compile error: {reason}")),
                (Ok(Some(compiled)), Some(declared)) => {
                    self.rule(RuleRun { target, old, rule, compiled, declared })?;
                }
                // Blank rule.
                (Ok(_), _) => {}
            }
            if self.findings.errors.len() > MAX_FIELD_ERRORS {
                return Break(());
            }
        }
        Continue(())
    }

    fn rule(&mut self, run: RuleRun<'_, '_>) -> ControlFlow<()> {
        let uses_old = run.compiled.uses_old_self;
        let optional = run.rule.optional_old_self == Some(true);
        if uses_old && run.old.is_none() && !optional {
            return Continue(());
        }
        let (result, cost) = evaluate(&run.compiled.program, run.bind(optional, uses_old), self.context);
        if !self.pay(cost) {
            return self.stop(run.target, OUT_OF_BUDGET);
        }
        match result {
            Ok(Value::Bool(true)) => Continue(()),
            Ok(_) => self.report_failure(run),
            Err(error) => self.report_evaluation_error(run.target, run.rule, &error),
        }
    }

    /// Subtracts a cost from the budget. Returns false if the budget is too small.
    fn pay(&mut self, cost: u64) -> bool {
        match i64::try_from(cost) {
            Ok(cost) if cost <= self.remaining_budget => {
                self.remaining_budget -= cost;
                true
            }
            _ => false,
        }
    }

    fn report_evaluation_error(
        &mut self,
        target: RuleTarget<'_, '_>,
        rule: &Rule,
        error: &EvalError,
    ) -> ControlFlow<()> {
        let (text, label) = (error.to_string(), message::rule_label(rule));
        if matches!(error, EvalError::Interrupted) {
            return self.stop(target, &text);
        }
        if matches!(error, EvalError::Budget) {
            let reason = "no further validation rules will be run due to call cost exceeds limit for rule";
            return self.stop(target, &format!("'{text}': {reason}: {label}"));
        }
        if text.starts_with("no such overload") {
            let reason =
                "call arguments did not match a supported operator, function or macro signature for rule";
            self.report_invalid(target, &format!("'{text}': {reason}: {label}"));
        } else {
            self.report_invalid(target, &format!("{text} evaluating rule: {label}"));
        }
        Continue(())
    }

    /// Reports a failed rule. If its message expression uses up the budget, reports that instead and stops.
    fn report_failure(&mut self, run: RuleRun<'_, '_>) -> ControlFlow<()> {
        let RuleRun { target, rule, compiled, .. } = run;
        let (path, node) = (run.path(), &target.tree.node);
        let (error, flow) = match self.message(run) {
            Ok(message) => {
                let detail = message.unwrap_or_else(|| message::default_message(rule));
                (message::rule_error(&path, node, target.new.value(), rule, &detail), Continue(()))
            }
            Err(reason) => {
                self.remaining_budget = -1;
                (message::type_error(&path, node, &reason), Break(()))
            }
        };
        if !compiled.uses_old_self && target.ratchet.is_unchanged() {
            if self.findings.warnings.len() <= MAX_FIELD_ERRORS {
                self.findings.warnings.push(error.to_string());
            }
        } else {
            self.findings.errors.push(error);
        }
        flow
    }

    /// Evaluates the message expression. Returns `None` if there is no usable message, and an error if the evaluation must stop.
    fn message(&mut self, run: RuleRun<'_, '_>) -> Result<Option<String>, String> {
        let Some(program) = &run.compiled.message else { return Ok(None) };
        // As upstream, binds the plain old value here, even if the rule uses an optional one.
        let (result, cost) = evaluate(program, run.bind(false, true), self.context);
        if !self.pay(cost) {
            return Err(MESSAGE_OUT_OF_BUDGET.to_owned());
        }
        match result {
            Ok(Value::String(message)) => Ok(message::usable_message(&message)),
            Err(EvalError::Budget) => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {:?}",
                &*run.rule.message_expression
            )),
            _ => Ok(None),
        }
    }

    fn report_invalid(&mut self, target: RuleTarget<'_, '_>, reason: &str) {
        self.findings.errors.push(message::type_error(&path(target), &target.tree.node, reason));
    }

    fn stop(&mut self, target: RuleTarget<'_, '_>, reason: &str) -> ControlFlow<()> {
        self.report_invalid(target, reason);
        self.remaining_budget = -1;
        Break(())
    }
}

/// Returns the path of a value as errors print it.
fn path(target: RuleTarget<'_, '_>) -> Path {
    let path = target.location.path();
    if path.as_str().is_empty() { Path::new(NO_PATH) } else { path }
}

/// Values of `self` and `oldSelf`.
type BoundValues<'a> = Result<(Value<'a>, Option<Value<'a>>), EvalError>;

impl<'a> RuleRun<'_, 'a> {
    fn bind(self, optional: bool, uses_old: bool) -> BoundValues<'a> {
        let now = read(self.target.new, self.declared)?;
        if !uses_old {
            return Ok((now, None));
        }
        let old = self.old.map(|old| read(old, self.declared)).transpose()?;
        Ok((now, if optional { Some(old.map_or(Value::NONE, Value::some)) } else { old }))
    }

    /// Returns the path of the error.
    fn path(self) -> Path {
        let path = path(self.target);
        match &self.compiled.field {
            Some(field) if path.as_str() == NO_PATH => Path::new(field.as_str()),
            Some(field) => path.child(field),
            None => path,
        }
    }
}

fn read<'a>(value: ObjectOrValue<'a>, of: &'a DeclType) -> Result<Value<'a>, EvalError> {
    match value {
        ObjectOrValue::Fields(members) => Ok(Value::Map(Map::Json { members, of })),
        ObjectOrValue::Value(value) => from_json(value, of),
    }
}

fn evaluate<'a>(
    program: &Program,
    bound: BoundValues<'a>,
    context: &EvaluationContext<'_>,
) -> (Result<Value<'a>, EvalError>, u64) {
    let run = |variables: &[(&str, Value<'a>)]| {
        program.evaluate_metered(variables, (MAX_PER_CALL, &context.meter), context.interrupted)
    };
    match bound {
        Err(error) => (Err(error), 0),
        Ok((now, None)) => run(&[("self", now)]),
        Ok((now, Some(old))) => run(&[("self", now), ("oldSelf", old)]),
    }
}
