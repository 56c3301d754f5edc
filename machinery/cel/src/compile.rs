//! Compiler: parses, checks, validates, plans and folds constants.

use crate::ast::{Expr, ExprKind, operator};
use crate::check;
use crate::constants;
use crate::diagnostics::Diagnostics;
use crate::environment::Environment;
use crate::identifier;
use crate::meter::Meter;
use crate::parse;
use crate::plan;
use crate::program::Program;
use crate::validate;
use crate::value::{Text, Value};
use crate::walk;

/// Reason why an expression does not compile. Displayed as kube-apiserver prints it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// Syntax or type errors.
    #[error("compilation failed: {0}")]
    Compilation(Diagnostics),
    /// A constant part of the expression always fails, such as `int('x')`.
    #[error("program instantiation failed: {0}")]
    Instantiation(String),
}

impl Environment {
    /// Compiles an expression: parses it, checks its types, validates literals and evaluates pure calls with constant arguments.
    ///
    /// ```
    /// use portico_cel::{CompileError, Environment, Type};
    ///
    /// let environment = Environment::builder().variable("n", Type::Int).build();
    /// let Err(CompileError::Compilation(diagnostics)) = environment.compile("n + 'a'") else { panic!() };
    /// let first = diagnostics.iter().next().unwrap();
    /// assert_eq!((first.line, first.column), (Some(1), Some(3)));
    /// assert_eq!(first.message, "found no matching overload for '_+_' applied to '(int, string)'");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// All syntax or type errors, or the first constant part that always fails.
    pub fn compile(&self, text: &str) -> Result<Program, CompileError> {
        self.compile_within(text, &Meter::of_compilation())
    }

    /// Compiles like [`Environment::compile`], with a meter that several expressions share. Constants and regular expressions
    /// that the meter cannot pay for are evaluated and compiled when the program runs.
    ///
    /// # Errors
    /// See [`Environment::compile`].
    pub fn compile_within(&self, text: &str, meter: &Meter) -> Result<Program, CompileError> {
        let refuse = |issues| CompileError::Compilation(Diagnostics::new(text, issues));
        let mut parsed = parse::parse(text, self.language.macros()).map_err(refuse)?;
        if self.unescaping {
            walk::each_mut(&mut parsed.expr, &mut unescape);
        }
        let checked = check::check(self, parsed).map_err(refuse)?;
        let issues = validate::validate(&checked, meter);
        if !issues.is_empty() {
            return Err(refuse(issues));
        }
        let mut plan = plan::plan(&self.variables, &checked, meter).map_err(CompileError::Instantiation)?;
        constants::fold(&mut plan.root, meter);
        let names = self.variables.iter().map(|variable| variable.name.clone()).collect();
        Ok(Program::new(names, checked, plan))
    }
}

/// Replaces an escaped field name with its JSON name; unknown escapes are not changed.
fn unescape(expr: &mut Expr) {
    match &mut expr.kind {
        ExprKind::Select { field, .. } => {
            if let Some(name) = identifier::unescape(field) {
                *field = name.into();
            }
        }
        ExprKind::Call { function, target: None, arguments } if **function == *operator::OPTIONAL_FIELD => {
            if let Some(ExprKind::Literal(Value::String(field))) = arguments.get_mut(1).map(|of| &mut of.kind)
                && let Some(name) = identifier::unescape(field)
            {
                *field = Text::from(name);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::function::{Function, Overload};
    use crate::types::Type;
    use crate::value::Value;

    /// An environment whose function `counted` counts its calls.
    fn counting(pure: bool) -> (Environment, Arc<AtomicU32>) {
        let calls = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&calls);
        let overload = Overload::new("counted_int", [Type::Int], Type::Int, move |call| {
            seen.fetch_add(1, Ordering::Relaxed);
            Ok(Value::Int(call.int(0)?))
        });
        let overload = if pure { overload.pure() } else { overload };
        let builder = Environment::builder().variable("n", Type::Int);
        let environment = builder.function(Function::new("counted", vec![overload])).unwrap().build();
        (environment, calls)
    }

    /// Returns the result and cost of three runs, and the number of calls of `counted`.
    fn three_runs(pure: bool, expression: &str) -> (i64, u64, u32) {
        let (environment, calls) = counting(pure);
        let program = environment.compile(expression).unwrap();
        let mut last = (0, 0);
        for _ in 0..3 {
            let (value, cost) = program.evaluate(&[("n", Value::Int(2))], 1_000, &|| false);
            last = (value.unwrap().as_int().unwrap(), cost);
        }
        (last.0, last.1, calls.load(Ordering::Relaxed))
    }

    #[test]
    fn pure_calls_with_constant_arguments_are_made_once_and_cost_the_same() {
        assert_eq!(three_runs(false, "counted(1 + 4) + n"), (7, 4, 3));
        assert_eq!(three_runs(true, "counted(1 + 4) + n"), (7, 4, 1));
        assert_eq!(
            three_runs(true, "counted(counted(1) + n)"),
            (3, 4, 4),
            "calls that depend on a variable are repeated"
        );
    }

    #[test]
    fn calls_that_exceed_the_meter_are_evaluated_at_run_time() {
        let (environment, calls) = counting(true);
        let meter = Meter::new(10);
        for _ in 0..100 {
            let program = environment.compile_within("counted(1) + counted(2) + n", &meter).unwrap();
            let (value, cost) = program.evaluate(&[("n", Value::Int(2))], 1_000, &|| false);
            assert_eq!((value.unwrap().as_int().unwrap(), cost), (5, 5));
        }
        assert_eq!((meter.remaining(), calls.load(Ordering::Relaxed)), (0, 200));
        let before = calls.load(Ordering::Relaxed);
        environment.compile_within("counted(1) + counted(2) + n", &meter).unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), before);
    }

    #[test]
    fn a_constant_call_that_fails_fails_when_it_is_reached() {
        let environment = Environment::builder().variable("b", Type::Bool).build();
        let program = environment.compile("b || 1 / 0 == 1").unwrap();
        assert!(program.run(&[("b", Value::Bool(true))]).unwrap().as_bool().unwrap());
        let error = program.run(&[("b", Value::Bool(false))]).unwrap_err();
        assert_eq!(error.to_string(), "division by zero");
    }

    #[test]
    fn constants_count_against_the_budget_of_each_run() {
        let environment = Environment::builder().build();
        let program = environment.compile("1 + 2 + 3 + 4").unwrap();
        assert_eq!(program.evaluate(&[], 3, &|| false).1, 3);
        assert!(program.evaluate(&[], 2, &|| false).0.is_err());
    }
}
