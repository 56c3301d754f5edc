//! Variables that are expressions themselves, evaluated when another expression names them and once for each request (upstream's
//! `compositionContext`).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use portico_cel::{EvalError, Program, Value};

use crate::compiler::{Compiler, Purpose};
use crate::expression::{Expression, Problem};
use crate::subject::Subject;

/// Depth to which variables of a policy refer to each other.
///
/// Each level takes a part of the stack.
///
/// Limit (Expressions): the expression fails.
pub const MAX_VARIABLE_DEPTH: usize = 64;

/// The variables of a policy by name.
#[derive(Debug, Default)]
pub(crate) struct Composition(HashMap<Box<str>, Expression>);

impl Composition {
    /// Compiles variables, given as names and texts; each is known to those behind it and to what is compiled next.
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

    /// The variables, in order of their names.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let mut named: Vec<_> = self.0.iter().collect();
        named.sort_unstable_by_key(|(name, _)| *name);
        named.into_iter().map(|(_, expression)| expression)
    }
}

/// Evaluates the expressions of a policy over one request, within one budget.
pub(crate) struct Evaluation<'e, 'v> {
    composition: &'e Composition,
    subject: &'e Subject<'v>,
    known: RefCell<HashMap<&'e str, Result<Value<'v>, EvalError>>>,
    /// What variables have cost since the last expression.
    composed: Cell<u64>,
    depth: Cell<usize>,
    budget: u64,
}

impl<'e, 'v> Evaluation<'e, 'v> {
    pub(crate) fn new(composition: &'e Composition, subject: &'e Subject<'v>, budget: u64) -> Self {
        Self {
            composition,
            subject,
            known: RefCell::default(),
            composed: Cell::new(0),
            depth: Cell::new(0),
            budget,
        }
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    /// [`Problem`]; once the budget is used up, each further expression is out of it, too.
    pub(crate) fn evaluate(&mut self, expression: &Expression) -> Result<Value<'v>, Problem> {
        let program = expression.program()?;
        let (result, cost) = self.run(expression, program);
        let cost = cost.saturating_add(self.composed.take());
        if cost > self.budget {
            self.budget = 0;
            return Err(Problem::OutOfBudget);
        }
        self.budget -= cost;
        result.map_err(|error| expression.failed(&error))
    }

    fn run(&self, expression: &Expression, program: &Program) -> (Result<Value<'v>, EvalError>, u64) {
        let variables = |name: &str| self.subject.variable(name);
        let fields = |variable: &str, field: &str| self.field(variable, field);
        expression.run(program, &variables, &fields, (self.budget, self.subject.request_budget))
    }

    /// What is left of the budget.
    pub(crate) fn budget(&self) -> u64 {
        self.budget
    }

    fn field(&self, variable: &str, field: &str) -> Option<Result<Value<'v>, EvalError>> {
        if variable != "variables" {
            return None;
        }
        let (name, expression) = self.composition.0.get_key_value(field)?;
        if let Some(known) = self.known.borrow().get(&**name) {
            return Some(known.clone());
        }
        let value = self.composed(name, expression);
        self.known.borrow_mut().insert(name, value.clone());
        Some(value)
    }

    fn composed(&self, name: &str, expression: &Expression) -> Result<Value<'v>, EvalError> {
        if self.depth.get() >= MAX_VARIABLE_DEPTH {
            return Err(EvalError::new(format!(
                "composited variable {name:?} is more than {MAX_VARIABLE_DEPTH} variables deep"
            )));
        }
        let program = expression
            .compiled()
            .map_err(|why| EvalError::new(format!("composited variable {name:?} fails to compile: {why}")))?;
        self.depth.set(self.depth.get() + 1);
        let (result, cost) = self.run(expression, program);
        self.depth.set(self.depth.get() - 1);
        self.composed.set(self.composed.get().saturating_add(cost));
        result.map_err(|error| match error {
            // Nothing may absorb it.
            EvalError::Interrupted => error,
            error => EvalError::new(format!("composited variable {name:?} fails to evaluate: {error}")),
        })
    }
}
