//! Expression that is compiled with its policy or webhook and evaluated for each request.

use crate::budget::ExpressionBudget;
use crate::mutation_types::{OBJECT, PATCH};
use portico_cel::{CompileError, Environment, EvalError, Fields, Meter, Program, Type, Value, Variables};

/// Required result type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultType {
    /// Boolean value.
    Bool,
    /// String value.
    Text,
    /// String, or null for no value.
    TextOrNull,
    /// Any type.
    Any,
    /// Apply configuration.
    Object,
    /// List of operations of a JSON patch.
    Patch,
}

/// Compiled expression, or its compilation error.
#[derive(Clone, Debug)]
pub struct Expression {
    text: Box<str>,
    program: Result<Program, Box<str>>,
}

/// Error of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpressionError {
    /// Compilation or evaluation failed. Contains the message of upstream.
    Failed(String),
    /// The budget of all expressions is used up. No further expression is evaluated.
    OutOfBudget,
}

impl ExpressionError {
    /// Returns the message of upstream.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Failed(text) => text,
            Self::OutOfBudget => {
                "validation failed due to running out of cost budget, no further validation rules will be run"
            }
        }
    }
}

impl ResultType {
    fn accepts(self, ty: &Type) -> bool {
        match self {
            Self::Bool => *ty == Type::Bool,
            Self::Text => *ty == Type::String,
            Self::TextOrNull => matches!(ty, Type::String | Type::Null),
            Self::Any => true,
            Self::Object => is_object(ty, OBJECT),
            Self::Patch => matches!(ty, Type::List(items) if is_object(items, PATCH)),
        }
    }

    /// Returns the message for a wrong result type.
    fn mismatch_message(self, found: &Type) -> String {
        let expected = match self {
            Self::Bool => "bool",
            Self::Text => "string",
            Self::TextOrNull => {
                return format!("must evaluate to one of [string null_type] but got {found}");
            }
            Self::Any => "any",
            Self::Object => OBJECT,
            Self::Patch => "list(JSONPatch)",
        };
        format!("must evaluate to {expected} but got {found}")
    }
}

impl Expression {
    /// Compiles an expression. If compilation fails, the error is stored and each evaluation returns it.
    #[must_use]
    pub(crate) fn compile(environment: &Environment, text: &str, returns: ResultType, meter: &Meter) -> Self {
        let program = compile_checked(environment, text, returns, meter).map(Program::without_tree);
        Self { text: text.into(), program: program.map_err(String::into_boxed_str) }
    }

    /// Returns the source text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the compilation error with the message of upstream, or `None` if the expression is valid.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.compiled().err()
    }

    /// Returns the result type; any type if the expression is invalid.
    #[must_use]
    pub fn result_type(&self) -> Type {
        self.program.as_ref().map_or(Type::Dyn, |program| program.result_type().clone())
    }

    /// Returns the compiled program.
    ///
    /// # Errors
    /// Compilation error, with the message of upstream.
    pub(crate) fn compiled(&self) -> Result<&Program, &str> {
        self.program.as_ref().map_err(|error| &**error)
    }

    /// Returns the program to evaluate.
    ///
    /// # Errors
    /// Error of each evaluation if the expression is invalid.
    pub(crate) fn program(&self) -> Result<&Program, ExpressionError> {
        self.compiled().map_err(|error| ExpressionError::Failed(format!("compilation error: {error}")))
    }

    /// Returns the error of a failed evaluation.
    pub(crate) fn evaluation_error(&self, error: &EvalError) -> ExpressionError {
        ExpressionError::Failed(format!("expression '{}' resulted in error: {error}", self.text))
    }

    /// Evaluates the program. The cost is limited by the remaining budget and by the limit of a single expression.
    pub(crate) fn run<'v>(
        &self,
        program: &Program,
        variables: &Variables<'_, 'v>,
        fields: &Fields<'_, 'v>,
        (budget, request_budget): (u64, &ExpressionBudget),
    ) -> (Result<Value<'v>, EvalError>, u64) {
        let limit = portico_cel::DEFAULT_COST_LIMIT;
        let (meter, is_first) = (request_budget.meter(), request_budget.is_unused());
        let fields = |variable: &str, field: &str| {
            with_shared_meter(&meter, request_budget, || fields(variable, field))
        };
        let limits = (limit.min(budget), &meter);
        let (result, cost) =
            program.evaluate_with(variables, &fields, limits, &|| request_budget.is_interrupted());
        let is_used_up = meter.remaining() == 0;
        request_budget.set_meter(meter);
        match result {
            // The remaining budget ended the evaluation, not the limit of a single expression.
            Err(EvalError::Budget) if budget < limit || (is_used_up && !is_first) => {
                (Err(EvalError::Budget), budget.saturating_add(1))
            }
            result => (result, cost.min(limit)),
        }
    }
}

/// Evaluates a variable during an evaluation. Both share one meter.
fn with_shared_meter<T>(meter: &Meter, request_budget: &ExpressionBudget, run: impl FnOnce() -> T) -> T {
    request_budget.set_meter(meter.clone());
    let result = run();
    meter.continue_from(&request_budget.meter());
    result
}

fn is_object(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Object(object) if *object.name == *name)
}

/// Compiles a program and checks its result type. Errors have the message of upstream.
pub(crate) fn compile_checked(
    environment: &Environment,
    text: &str,
    returns: ResultType,
    meter: &Meter,
) -> Result<Program, String> {
    let program = environment.compile_within(text, meter).map_err(|error: CompileError| error.to_string())?;
    if !returns.accepts(program.result_type()) {
        return Err(returns.mismatch_message(program.result_type()));
    }
    Ok(program)
}
