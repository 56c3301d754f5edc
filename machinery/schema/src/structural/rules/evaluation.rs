//! Evaluation of rules for one value, within a cost budget, and the errors of failed rules.

use std::ops::ControlFlow::{self, Break, Continue};

use portico_cel::value::{Map, from_json};
use portico_cel::{DeclType, EvalError, Program, Value};
use portico_machinery::field::Path;
use portico_machinery::status::MAX_FIELD_ERRORS;

use super::compiled::Compiled;
use super::context::Context;
use super::findings::Findings;
use super::limits::MAX_PER_CALL;
use super::message;
use super::place::Place;
use super::tree::Ready;
use crate::structural::held::Held;
use crate::structural::model::Rule;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";
const MESSAGE_OUT_OF_BUDGET: &str = "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run";
/// Path of the whole object in errors.
const NO_PATH: &str = "<nil>";

/// Evaluation of rules, value by value.
pub(super) struct Evaluation<'e> {
    pub validated: Findings,
    /// Remaining cost budget; negative if the evaluation was stopped.
    pub left: i64,
    context: &'e Context<'e>,
}

/// Rule and the value for which it runs.
#[derive(Clone, Copy)]
struct Turn<'r, 'a> {
    place: Place<'r, 'a>,
    /// Old value; `None` for null.
    old: Option<Held<'a>>,
    rule: &'a Rule,
    compiled: &'a Compiled,
    declared: &'a DeclType,
}

impl<'e> Evaluation<'e> {
    pub fn new(budget: i64, context: &'e Context<'e>) -> Self {
        Self { validated: Findings::default(), left: budget, context }
    }

    /// Evaluates the rules of one value in order.
    pub fn rules(&mut self, place: Place<'_, '_>) -> ControlFlow<()> {
        let tree = place.tree;
        if tree.rules.is_empty() {
            return Continue(());
        }
        if self.left <= 0 {
            return self.stop(place, OUT_OF_BUDGET);
        }
        let old = place.old.filter(|old| !old.is_null());
        for Ready { rule, compiled } in &tree.rules {
            match (compiled, &tree.declared) {
                (Err(why), _) => self.refuse(place, &format!("rule compile error: {why}")),
                (Ok(Some(compiled)), Some(declared)) => {
                    self.rule(Turn { place, old, rule, compiled, declared })?;
                }
                // Blank rule.
                (Ok(_), _) => {}
            }
            if self.validated.errors.len() > MAX_FIELD_ERRORS {
                return Break(());
            }
        }
        Continue(())
    }

    fn rule(&mut self, turn: Turn<'_, '_>) -> ControlFlow<()> {
        let uses_old = turn.compiled.uses_old;
        let optional = turn.rule.optional_old_self == Some(true);
        if uses_old && turn.old.is_none() && !optional {
            return Continue(());
        }
        let (result, cost) = run(&turn.compiled.program, turn.bind(optional, uses_old), self.context);
        if !self.pay(cost) {
            return self.stop(turn.place, OUT_OF_BUDGET);
        }
        match result {
            Ok(Value::Bool(true)) => Continue(()),
            Ok(_) => self.failed(turn),
            Err(error) => self.in_error(turn.place, turn.rule, &error),
        }
    }

    /// Subtracts a cost from the budget. Returns false if the budget is too small.
    fn pay(&mut self, cost: u64) -> bool {
        match i64::try_from(cost) {
            Ok(cost) if cost <= self.left => {
                self.left -= cost;
                true
            }
            _ => false,
        }
    }

    fn in_error(&mut self, place: Place<'_, '_>, rule: &Rule, error: &EvalError) -> ControlFlow<()> {
        let (text, named) = (error.to_string(), message::named(rule));
        if matches!(error, EvalError::Interrupted) {
            return self.stop(place, &text);
        }
        if matches!(error, EvalError::Budget) {
            let why = "no further validation rules will be run due to call cost exceeds limit for rule";
            return self.stop(place, &format!("'{text}': {why}: {named}"));
        }
        if text.starts_with("no such overload") {
            let why =
                "call arguments did not match a supported operator, function or macro signature for rule";
            self.refuse(place, &format!("'{text}': {why}: {named}"));
        } else {
            self.refuse(place, &format!("{text} evaluating rule: {named}"));
        }
        Continue(())
    }

    /// Reports a failed rule. If its message expression uses up the budget, reports that instead and stops.
    fn failed(&mut self, turn: Turn<'_, '_>) -> ControlFlow<()> {
        let Turn { place, rule, compiled, .. } = turn;
        let (path, node) = (turn.path(), &place.tree.node);
        let (error, flow) = match self.message(turn) {
            Ok(made) => {
                let detail = made.unwrap_or_else(|| message::default(rule));
                (message::of_rule(&path, node, place.new.value(), rule, &detail), Continue(()))
            }
            Err(why) => {
                self.left = -1;
                (message::of_type(&path, node, &why), Break(()))
            }
        };
        if !compiled.uses_old && place.ratchet.forgives() {
            if self.validated.warnings.len() <= MAX_FIELD_ERRORS {
                self.validated.warnings.push(error.to_string());
            }
        } else {
            self.validated.errors.push(error);
        }
        flow
    }

    /// Evaluates the message expression. Returns `None` if there is no usable message, and an error if the evaluation must stop.
    fn message(&mut self, turn: Turn<'_, '_>) -> Result<Option<String>, String> {
        let Some(program) = &turn.compiled.message else { return Ok(None) };
        // As upstream, binds the plain old value here, even if the rule uses an optional one.
        let (result, cost) = run(program, turn.bind(false, true), self.context);
        if !self.pay(cost) {
            return Err(MESSAGE_OUT_OF_BUDGET.to_owned());
        }
        match result {
            Ok(Value::String(made)) => Ok(message::usable(&made)),
            Err(EvalError::Budget) => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {:?}",
                &*turn.rule.message_expression
            )),
            _ => Ok(None),
        }
    }

    fn refuse(&mut self, place: Place<'_, '_>, why: &str) {
        self.validated.errors.push(message::of_type(&path(place), &place.tree.node, why));
    }

    fn stop(&mut self, place: Place<'_, '_>, why: &str) -> ControlFlow<()> {
        self.refuse(place, why);
        self.left = -1;
        Break(())
    }
}

/// Returns the path of a value as errors print it.
fn path(place: Place<'_, '_>) -> Path {
    let path = place.at.path();
    if path.as_str().is_empty() { Path::new(NO_PATH) } else { path }
}

/// Values of `self` and `oldSelf`.
type Bound<'a> = Result<(Value<'a>, Option<Value<'a>>), EvalError>;

impl<'a> Turn<'_, 'a> {
    fn bind(self, optional: bool, uses_old: bool) -> Bound<'a> {
        let now = read(self.place.new, self.declared)?;
        if !uses_old {
            return Ok((now, None));
        }
        let old = self.old.map(|old| read(old, self.declared)).transpose()?;
        Ok((now, if optional { Some(old.map_or(Value::NONE, Value::some)) } else { old }))
    }

    /// Returns the path of the error.
    fn path(self) -> Path {
        let path = path(self.place);
        match &self.compiled.field {
            Some(field) if path.as_str() == NO_PATH => Path::new(field.as_str()),
            Some(field) => path.child(field),
            None => path,
        }
    }
}

fn read<'a>(held: Held<'a>, of: &'a DeclType) -> Result<Value<'a>, EvalError> {
    match held {
        Held::Fields(members) => Ok(Value::Map(Map::Json { members, of })),
        Held::Value(value) => from_json(value, of),
    }
}

fn run<'a>(
    program: &Program,
    bound: Bound<'a>,
    context: &Context<'_>,
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
