//! Composed variables: expressions that other expressions refer to. They are evaluated at the first use, once for each request
//! (upstream's `compositionContext`).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use portico_cel::{EvalError, Program, Value};

use crate::compiler::{Compiler, Purpose};
use crate::evaluation_input::EvaluationInput;
use crate::expression::{Expression, ExpressionError};

/// Maximum depth of references between variables of a policy.
///
/// Each level takes a part of the stack.
///
/// Limit (Expressions): the expression fails.
pub const MAX_VARIABLE_DEPTH: usize = 64;

/// Variables of a policy by name.
#[derive(Debug, Default)]
pub(crate) struct ComposedVariables(HashMap<Box<str>, Expression>);

impl ComposedVariables {
    /// Compiles variables, given as names and expressions. Each can be used by later variables and by expressions that are
    /// compiled afterwards.
    pub(crate) fn compile<'c>(
        compiler: &Compiler,
        variables: impl Iterator<Item = (&'c str, &'c str)>,
    ) -> Self {
        let mut compiled = HashMap::new();
        for (name, text) in variables {
            let expression = compiler.compile(Purpose::Variable, text);
            compiler.declare(name, expression.result_type());
            compiled.insert(name.into(), expression);
        }
        Self(compiled)
    }

    /// Returns the variables, sorted by name.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let mut named: Vec<_> = self.0.iter().collect();
        named.sort_unstable_by_key(|(name, _)| *name);
        named.into_iter().map(|(_, expression)| expression)
    }
}

/// Evaluates expressions of a policy for one request, within one budget.
pub(crate) struct Evaluation<'e, 'v> {
    variables: &'e ComposedVariables,
    input: &'e EvaluationInput<'v>,
    results: RefCell<HashMap<&'e str, Result<Value<'v>, EvalError>>>,
    /// Cost of variables since the last expression.
    variable_cost: Cell<u64>,
    depth: Cell<usize>,
    budget: u64,
}

impl<'e, 'v> Evaluation<'e, 'v> {
    pub(crate) fn new(variables: &'e ComposedVariables, input: &'e EvaluationInput<'v>, budget: u64) -> Self {
        Self {
            variables,
            input,
            results: RefCell::default(),
            variable_cost: Cell::new(0),
            depth: Cell::new(0),
            budget,
        }
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    /// The expression failed, or the budget is used up, in which case all further expressions fail as well.
    pub(crate) fn evaluate(&mut self, expression: &Expression) -> Result<Value<'v>, ExpressionError> {
        let program = expression.program()?;
        let (result, cost) = self.run(expression, program);
        let cost = cost.saturating_add(self.variable_cost.take());
        if cost > self.budget {
            self.budget = 0;
            return Err(ExpressionError::OutOfBudget);
        }
        self.budget -= cost;
        result.map_err(|error| expression.evaluation_error(&error))
    }

    fn run(&self, expression: &Expression, program: &Program) -> (Result<Value<'v>, EvalError>, u64) {
        let variables = |name: &str| self.input.variable(name);
        let fields = |variable: &str, field: &str| self.variable_value(variable, field);
        expression.run(program, &variables, &fields, (self.budget, self.input.request_budget))
    }

    /// Returns the remaining budget.
    pub(crate) fn budget(&self) -> u64 {
        self.budget
    }

    fn variable_value(&self, variable: &str, field: &str) -> Option<Result<Value<'v>, EvalError>> {
        if variable != "variables" {
            return None;
        }
        let (name, expression) = self.variables.0.get_key_value(field)?;
        if let Some(result) = self.results.borrow().get(&**name) {
            return Some(result.clone());
        }
        let value = self.evaluate_variable(name, expression);
        self.results.borrow_mut().insert(name, value.clone());
        Some(value)
    }

    fn evaluate_variable(&self, name: &str, expression: &Expression) -> Result<Value<'v>, EvalError> {
        if self.depth.get() >= MAX_VARIABLE_DEPTH {
            return Err(EvalError::new(format!(
                "composited variable {name:?} exceeds the maximum nesting depth of {MAX_VARIABLE_DEPTH} variables"
            )));
        }
        let program = expression.compiled().map_err(|error| {
            EvalError::new(format!("composited variable {name:?} fails to compile: {error}"))
        })?;
        self.depth.set(self.depth.get() + 1);
        let (result, cost) = self.run(expression, program);
        self.depth.set(self.depth.get() - 1);
        self.variable_cost.set(self.variable_cost.get().saturating_add(cost));
        result.map_err(|error| match error {
            // Pass on the interruption unchanged: it ends the whole evaluation.
            EvalError::Interrupted => error,
            error => EvalError::new(format!("composited variable {name:?} fails to evaluate: {error}")),
        })
    }
}
