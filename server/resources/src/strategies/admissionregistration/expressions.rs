//! Expressions: there, not too long, and compiled against the variables of their place.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};
use portico_policy::{Compiler, Purpose, Release};

use portico_validation::Errors;
use portico_validation::checks;

const CONDITIONS_MAX: usize = 64;

/// What a policy says of the expressions in it.
pub(super) struct Expressions {
    /// For match conditions, which name no variables.
    conditions: Compiler,
    /// For all others.
    pub(super) compiler: Compiler,
    /// Whether match conditions are new, or may mean something else than before.
    conditions_changed: bool,
}

impl Expressions {
    /// Those of a webhook.
    pub(super) fn of_webhook(conditions_changed: bool) -> Self {
        let compiler = || Compiler::new(Release::New, false);
        Self { conditions: compiler(), compiler: compiler(), conditions_changed }
    }

    /// Those of a policy, with parameters or without, which composes variables or does not.
    pub(super) fn of_policy(params: bool, composes: bool, conditions_changed: bool) -> Self {
        let compiler = if composes {
            Compiler::composing(Release::New, params)
        } else {
            Compiler::new(Release::New, params)
        };
        Self { conditions: Compiler::new(Release::New, params), compiler, conditions_changed }
    }

    /// Conditions that a request must meet before anything else is asked.
    pub(super) fn match_conditions(&self, conditions: &Cursor<'_>, errors: &mut Errors) {
        if !self.conditions_changed || !checks::at_most(conditions, CONDITIONS_MAX, errors) {
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

    /// An expression that must be there.
    pub(super) fn expression(&self, purpose: Purpose, at: &Cursor<'_>, errors: &mut Errors) {
        if at.str().trim().is_empty() {
            errors.push(at.required("expression is not specified"));
        } else {
            compile(&self.compiler, purpose, at, at.str(), errors);
        }
    }

    /// A variable, which is known to the expressions behind it.
    pub(super) fn variable(&self, name: &str, at: &Cursor<'_>, errors: &mut Errors) {
        if at.str().trim().is_empty() {
            errors.push(at.required("expression is not specified"));
            return;
        }
        match self.compiler.check(Purpose::Variable, at.str()) {
            Ok(ty) => self.compiler.declare(name, ty),
            Err(why) => {
                errors.push(at.invalid(&why));
                self.compiler.declare(name, portico_cel::Type::Dyn);
            }
        }
    }
}

/// Compiles a text; the error shows it.
pub(super) fn compile(
    compiler: &Compiler,
    purpose: Purpose,
    at: &Cursor<'_>,
    text: &str,
    errors: &mut Errors,
) {
    if let Err(why) = compiler.check(purpose, text) {
        errors.push(Error::invalid(&at.path(), text, &why));
    }
}
