//! Validation of CEL expressions: presence, length, and compilation with the variables of their field.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};
use portico_policy::{Compiler, EnvironmentType, Purpose};

use portico_validation::Errors;
use portico_validation::checks;

const CONDITIONS_MAX: usize = 64;

/// Validates the expressions of a policy or webhook.
pub(super) struct ExpressionValidator {
    /// Compiler of match conditions, which cannot use composed variables.
    conditions: Compiler,
    /// Compiler of all other expressions.
    pub(super) compiler: Compiler,
    /// True if match conditions, or what they refer to, may have changed. Unchanged match conditions are not validated.
    conditions_changed: bool,
}

impl ExpressionValidator {
    /// Creates a validator for the expressions of a webhook.
    pub(super) fn for_webhook(conditions_changed: bool) -> Self {
        let compiler = || Compiler::new(EnvironmentType::NewExpressions, false);
        Self { conditions: compiler(), compiler: compiler(), conditions_changed }
    }

    /// Creates a validator for the expressions of a policy. `params`: the policy has parameters; `composes`: the policy declares
    /// variables that other expressions use.
    pub(super) fn for_policy(params: bool, composes: bool, conditions_changed: bool) -> Self {
        let compiler = if composes {
            Compiler::with_variables(EnvironmentType::NewExpressions, params)
        } else {
            Compiler::new(EnvironmentType::NewExpressions, params)
        };
        Self {
            conditions: Compiler::new(EnvironmentType::NewExpressions, params),
            compiler,
            conditions_changed,
        }
    }

    /// Validates match conditions, which decide if a request is evaluated at all.
    pub(super) fn validate_match_conditions(&self, conditions: &Cursor<'_>, errors: &mut Errors) {
        if !self.conditions_changed || !checks::max_items(conditions, CONDITIONS_MAX, errors) {
            return;
        }
        let mut seen = HashSet::new();
        for condition in conditions.items() {
            let (name, text) = (condition.field("name"), condition.field("expression"));
            if text.str().trim().is_empty() {
                errors.push(text.required(""));
            } else {
                compile(&self.conditions, Purpose::Condition, &text, text.str().trim(), errors);
            }
            checks::required(&name, names::qualified_name, errors);
            if !name.str().is_empty() {
                checks::unique(&mut seen, &name, errors);
            }
        }
    }

    /// Validates a required expression.
    pub(super) fn validate_expression(&self, purpose: Purpose, at: &Cursor<'_>, errors: &mut Errors) {
        if at.str().trim().is_empty() {
            errors.push(at.required("expression is not specified"));
        } else {
            compile(&self.compiler, purpose, at, at.str(), errors);
        }
    }

    /// Validates a variable and declares it for the expressions that follow.
    pub(super) fn validate_variable(&self, name: &str, at: &Cursor<'_>, errors: &mut Errors) {
        if at.str().trim().is_empty() {
            errors.push(at.required("expression is not specified"));
            return;
        }
        match self.compiler.check(Purpose::Variable, at.str()) {
            Ok(ty) => self.compiler.declare(name, ty),
            Err(error) => {
                errors.push(at.invalid(&error));
                self.compiler.declare(name, portico_cel::Type::Dyn);
            }
        }
    }
}

/// Compiles an expression. The error contains the text.
pub(super) fn compile(
    compiler: &Compiler,
    purpose: Purpose,
    at: &Cursor<'_>,
    text: &str,
    errors: &mut Errors,
) {
    if let Err(error) = compiler.check(purpose, text) {
        errors.push(Error::invalid(&at.path(), text, &error));
    }
}
