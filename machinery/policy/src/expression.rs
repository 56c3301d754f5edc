//! One expression: compiled when a policy or webhook is read, evaluated for each request.

use crate::budget::ExpressionBudget;
use crate::changing::{OBJECT, PATCH};
use portico_cel::{CompileError, Environment, EvalError, Fields, Meter, Program, Type, Value, Variables};

/// What an expression must evaluate to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returns {
    /// A boolean.
    Bool,
    /// A text.
    Text,
    /// A text, or null for nothing.
    TextOrNull,
    /// Anything.
    Any,
    /// A configuration.
    Object,
    /// A list of operations.
    Patch,
}

/// A compiled expression, or why it does not compile.
#[derive(Clone, Debug)]
pub struct Expression {
    text: Box<str>,
    program: Result<Program, Box<str>>,
}

/// Why an expression has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It failed for these values, or does not compile, in upstream's words.
    Failed(String),
    /// The budget of all expressions is used up: none is evaluated any more.
    OutOfBudget,
}

impl Problem {
    /// What upstream says of it.
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

impl Returns {
    fn takes(self, ty: &Type) -> bool {
        match self {
            Self::Bool => *ty == Type::Bool,
            Self::Text => *ty == Type::String,
            Self::TextOrNull => matches!(ty, Type::String | Type::Null),
            Self::Any => true,
            Self::Object => is_object(ty, OBJECT),
            Self::Patch => matches!(ty, Type::List(items) if is_object(items, PATCH)),
        }
    }

    /// Why a type will not do.
    fn refusal(self, found: &Type) -> String {
        let wanted = match self {
            Self::Bool => "bool",
            Self::Text => "string",
            Self::TextOrNull => {
                return format!("must evaluate to one of [string null_type] but got {found}");
            }
            Self::Any => "any",
            Self::Object => OBJECT,
            Self::Patch => "list(JSONPatch)",
        };
        format!("must evaluate to {wanted} but got {found}")
    }
}

impl Expression {
    /// Compiles; what is wrong is kept, and is the problem of each evaluation.
    #[must_use]
    pub(crate) fn compile(environment: &Environment, text: &str, returns: Returns, meter: &Meter) -> Self {
        let program = checked(environment, text, returns, meter).map(Program::without_tree);
        Self { text: text.into(), program: program.map_err(String::into_boxed_str) }
    }

    /// The text as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Why it does not compile, in upstream's words; nothing where it does.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.compiled().err()
    }

    /// The type of its result; any where it does not compile.
    #[must_use]
    pub fn result_type(&self) -> Type {
        self.program.as_ref().map_or(Type::Dyn, |program| program.result_type().clone())
    }

    /// The program.
    ///
    /// # Errors
    /// Why it does not compile, in upstream's words.
    pub(crate) fn compiled(&self) -> Result<&Program, &str> {
        self.program.as_ref().map_err(|error| &**error)
    }

    /// The program.
    ///
    /// # Errors
    /// The problem that an evaluation has when it does not compile.
    pub(crate) fn program(&self) -> Result<&Program, Problem> {
        self.compiled().map_err(|error| Problem::Failed(format!("compilation error: {error}")))
    }

    /// The problem that an evaluation has which fails.
    pub(crate) fn failed(&self, error: &EvalError) -> Problem {
        Problem::Failed(format!("expression '{}' resulted in error: {error}", self.text))
    }

    /// No expression may cost more than one is allowed to, whatever is left for all of them.
    pub(crate) fn run<'v>(
        &self,
        program: &Program,
        variables: &Variables<'_, 'v>,
        fields: &Fields<'_, 'v>,
        (budget, request_budget): (u64, &ExpressionBudget),
    ) -> (Result<Value<'v>, EvalError>, u64) {
        let limit = portico_cel::DEFAULT_COST_LIMIT;
        let (meter, is_first) = (request_budget.meter(), request_budget.is_untouched());
        let fields = |variable: &str, field: &str| around(&meter, request_budget, || fields(variable, field));
        let limits = (limit.min(budget), &meter);
        let (result, cost) =
            program.evaluate_with(variables, &fields, limits, &|| request_budget.is_interrupted());
        let is_used_up = meter.left() == 0;
        request_budget.set_meter(meter);
        match result {
            // What others have used before ended it, not what it costs itself.
            Err(EvalError::Budget) if budget < limit || (is_used_up && !is_first) => {
                (Err(EvalError::Budget), budget.saturating_add(1))
            }
            result => (result, cost.min(limit)),
        }
    }
}

/// Evaluates a variable that an evaluation waits for, which spends of the same meter.
fn around<T>(meter: &Meter, request_budget: &ExpressionBudget, run: impl FnOnce() -> T) -> T {
    request_budget.set_meter(meter.clone());
    let result = run();
    meter.continue_from(&request_budget.meter());
    result
}

fn is_object(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Object(object) if *object.name == *name)
}

/// The program, or what is wrong in upstream's words.
pub(crate) fn checked(
    environment: &Environment,
    text: &str,
    returns: Returns,
    meter: &Meter,
) -> Result<Program, String> {
    let program = environment.compile_within(text, meter).map_err(|error: CompileError| error.to_string())?;
    if !returns.takes(program.result_type()) {
        return Err(returns.refusal(program.result_type()));
    }
    Ok(program)
}
