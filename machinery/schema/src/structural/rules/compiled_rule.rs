//! Compilation of one rule for the type of its node.

use std::sync::Arc;

use portico_cel::{CompileError, DeclType, DeclaredSizes, Environment, Language, Meter, Program, Type};

use super::path;
use crate::structural::model::{Rule, SchemaNode};

/// Rule that can be evaluated.
#[derive(Debug)]
pub(in crate::structural) struct CompiledRule {
    pub program: Program,
    /// True if the expression uses `oldSelf`.
    pub uses_old_self: bool,
    /// Expression for the message of a failure.
    pub message: Option<Program>,
    /// Path of the error, relative to the value of the rule.
    pub field: Option<String>,
}

/// Result of compiling a rule.
#[derive(Debug, Default)]
pub(super) struct RuleCompilation {
    /// Compiled rule; `None` for a blank one.
    pub compiled: Option<CompiledRule>,
    /// Compilation error of the rule.
    pub error: Option<String>,
    /// Compilation error of the message expression.
    pub message_error: Option<String>,
    /// Maximum estimated cost of the rule.
    pub cost: u64,
    /// Maximum estimated cost of the message expression.
    pub message_cost: u64,
}

/// Environments of the rules of a node: with a plain and with an optional `oldSelf`.
#[derive(Debug)]
pub(super) struct Environments {
    plain: Environment,
    optional: Environment,
}

impl Environments {
    pub fn of(declared: &DeclType, language: &Arc<Language>) -> Self {
        let builder =
            Environment::builder().language(Arc::clone(language)).variable("self", declared.ty.clone());
        Self {
            plain: builder.clone().variable("oldSelf", declared.ty.clone()).build(),
            optional: builder.variable("oldSelf", Type::optional(declared.ty.clone())).build(),
        }
    }
}

/// Compiles a rule of a node. The meter pays for its constants and patterns.
pub(super) fn compile_rule(
    rule: &Rule,
    node: &SchemaNode,
    declared: &DeclType,
    (environments, meter): (&Environments, &Meter),
) -> RuleCompilation {
    let mut outcome = RuleCompilation::default();
    if rule.rule.trim().is_empty() {
        return outcome;
    }
    let optional = rule.optional_old_self == Some(true);
    let environment = if optional { &environments.optional } else { &environments.plain };
    let program = match environment.compile_within(&rule.rule, meter) {
        Ok(program) if *program.result_type() == Type::Bool => program,
        Ok(_) => {
            outcome.error = Some("cel expression must evaluate to a bool".to_owned());
            return outcome;
        }
        Err(error) => {
            outcome.error = Some(error.to_string());
            return outcome;
        }
    };
    let sizes = DeclaredSizes(declared);
    outcome.cost = program.estimate(&sizes).max;
    let message = match compile_message(rule, environment, meter) {
        None => None,
        Some(Ok(program)) => {
            outcome.message_cost = program.estimate(&sizes).max;
            Some(program.without_tree())
        }
        Some(Err(error)) => {
            outcome.message_error = Some(error);
            None
        }
    };
    let field = (!rule.field_path.is_empty()).then(|| path::normalize(&rule.field_path, node)).flatten();
    let uses_old_self = program.uses("oldSelf");
    outcome.compiled = Some(CompiledRule { program: program.without_tree(), uses_old_self, message, field });
    outcome
}

fn compile_message(rule: &Rule, environment: &Environment, meter: &Meter) -> Option<Result<Program, String>> {
    if rule.message_expression.is_empty() {
        return None;
    }
    Some(match environment.compile_within(&rule.message_expression, meter) {
        Ok(program) if *program.result_type() == Type::String => Ok(program),
        Ok(_) => Err("messageExpression must evaluate to a string".to_owned()),
        Err(CompileError::Instantiation(reason)) => {
            Err(format!("messageExpression instantiation failed: {reason}"))
        }
        Err(error) => Err(format!("messageExpression {error}")),
    })
}
