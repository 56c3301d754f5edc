//! Declarations of functions: what the checker resolves, the estimate costs and the evaluator calls.
//!
//! A library is a list of these (see `library`). Nothing here knows any function.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

#[cfg(feature = "regex")]
use regex::Regex;

use crate::error::EvalError;
#[cfg(feature = "regex")]
use crate::re2::{self, Planned};
use crate::size::{CostEstimate, SizeEstimate};
use crate::types::Type;
use crate::value::{Steps, Value, equal, equal_within, same_key};

/// A function with its overloads.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name: `size`, `_+_`, `sets.contains`.
    pub name: Cow<'static, str>,
    /// Its overloads, in the order in which they are tried.
    pub overloads: Vec<Overload>,
}

/// One signature of a function.
#[derive(Clone, Debug)]
pub struct Overload {
    /// An id such as `size_string`.
    pub id: Cow<'static, str>,
    /// Whether it is called on a receiver, its first parameter.
    pub receiver: bool,
    /// Parameters, the receiver first.
    pub parameters: Vec<Type>,
    /// What it returns.
    pub result: Type,
    /// What it does.
    pub run: Run,
    /// What it may cost, estimated before it runs. None: one unit and no knowledge of the result's size.
    pub estimate: Option<EstimateFn>,
    /// What it costs when it ran. None: one unit.
    pub cost: Option<CostFn>,
    /// Whether `cost` counts also where the overload was only found at run time (dyn arguments). Upstream's libraries
    /// cost by the function's name (true), the language's own functions by the overload that was checked (false).
    pub cost_by_name: bool,
    /// Whether it returns the same for the same arguments, so that a call with constant arguments is made only once.
    pub pure: bool,
    /// Whether its cost stands for what is done elsewhere, so that it is no measure of the work of the evaluation.
    pub asks: bool,
}

/// Calls a function: arguments as [`Call::arguments`], the receiver first. They have the run-time types of the
/// overload's parameters.
pub type Implementation = for<'c, 'v> fn(&Call<'c, 'v>) -> Result<Value<'v>, EvalError>;

/// What an overload does: a function, or a closure.
#[derive(Clone)]
pub struct Run(Runs);

#[derive(Clone)]
enum Runs {
    Function(Implementation),
    Closure(Arc<Closure>),
}

type Closure = dyn for<'c, 'v> Fn(&Call<'c, 'v>) -> Result<Value<'v>, EvalError> + Send + Sync;

impl Run {
    /// Calls it.
    ///
    /// # Errors
    /// What is wrong with these arguments.
    pub fn call<'v>(&self, call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
        match &self.0 {
            Runs::Function(function) => function(call),
            Runs::Closure(closure) => closure(call),
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self.0, Runs::Function(_)) { "Run(function)" } else { "Run(closure)" })
    }
}

/// Estimates a call; None falls back to one unit.
pub type EstimateFn = fn(&dyn CallSizes) -> Option<CallEstimate>;

/// Costs a call by its arguments (the receiver first) and its result.
pub type CostFn = for<'v> fn(&[Value<'v>], &Value<'v>) -> u64;

/// One call while it runs.
#[derive(Clone, Copy, Debug)]
pub struct Call<'c, 'v> {
    /// The arguments, the receiver first.
    pub arguments: &'c [Value<'v>],
    /// How much the program may still cost: what loops inside a function must not exceed.
    pub budget: u64,
    steps: Option<&'c Steps>,
    #[cfg(feature = "regex")]
    pattern: Option<&'c Planned>,
}

impl<'c, 'v> Call<'c, 'v> {
    /// A call with these arguments, the receiver first.
    #[must_use]
    pub fn new(arguments: &'c [Value<'v>], budget: u64) -> Self {
        Self {
            arguments,
            budget,
            steps: None,
            #[cfg(feature = "regex")]
            pattern: None,
        }
    }

    /// The same with the regular expression that is written out as the second argument, compiled with the program.
    #[cfg(feature = "regex")]
    pub(crate) fn with_pattern(self, pattern: Option<&'c Planned>) -> Self {
        Self { pattern, ..self }
    }

    /// Limits the call to the steps of an evaluation.
    pub(crate) fn with_steps(self, steps: &'c Steps) -> Self {
        Self { steps: Some(steps), ..self }
    }

    /// Counts items that are visited and not in the cost of the call, before they are.
    ///
    /// # Errors
    /// [`EvalError::Budget`] if the evaluation cannot pay for it.
    pub(crate) fn take(&self, steps: usize) -> Result<(), EvalError> {
        self.steps.map_or(Ok(()), |all| all.take(steps))
    }

    /// Counts the lookup of a key.
    ///
    /// # Errors
    /// [`EvalError::Budget`] if the evaluation cannot pay for it.
    pub(crate) fn take_key(&self, key: &Value<'_>) -> Result<(), EvalError> {
        self.steps.map_or(Ok(()), |steps| steps.take_key(key.bytes()))
    }

    /// Counts reading, or writing, this many bytes one by one, before they are.
    ///
    /// # Errors
    /// [`EvalError::Budget`] if the evaluation cannot pay for it.
    pub(crate) fn take_parse(&self, bytes: usize) -> Result<(), EvalError> {
        self.steps.map_or(Ok(()), |steps| steps.take_parse(bytes))
    }

    /// The text at an index, to be parsed, which is counted.
    ///
    /// # Errors
    /// `no such overload`; [`EvalError::Budget`] if the evaluation cannot pay for it.
    pub(crate) fn parsed(&self, index: usize) -> Result<&'c str, EvalError> {
        let text = self.str(index)?;
        self.take_parse(text.len())?;
        Ok(text)
    }

    /// Counts items that are copied and not in the cost of the call, before they are.
    ///
    /// # Errors
    /// [`EvalError::Budget`] if the evaluation cannot pay for it.
    pub(crate) fn take_items(&self, items: usize) -> Result<(), EvalError> {
        self.steps.map_or(Ok(()), |steps| steps.take_items(items))
    }

    /// Counts a piece of text that is copied, before it is: also where the call fails later, which hides it from the cost.
    ///
    /// # Errors
    /// [`EvalError::Budget`] if the evaluation cannot pay for it.
    pub(crate) fn take_text(&self, bytes: usize) -> Result<(), EvalError> {
        self.steps.map_or(Ok(()), |steps| steps.take(1).and_then(|()| steps.take_text(bytes)))
    }

    /// Compares values as `==` does.
    ///
    /// # Errors
    /// JSON inside that does not fit its declaration; [`EvalError::Budget`] if the evaluation cannot pay for the comparison.
    pub fn equal(&self, one: &Value<'_>, two: &Value<'_>) -> Result<bool, EvalError> {
        self.steps.map_or_else(|| equal(one, two), |steps| equal_within(one, two, steps))
    }

    /// True if two items of a list of maps have the same keys.
    ///
    /// # Errors
    /// See [`Call::equal`].
    pub(crate) fn same_key(
        &self,
        one: &Value<'_>,
        two: &Value<'_>,
        keys: &[Arc<str>],
    ) -> Result<bool, EvalError> {
        self.steps.map_or_else(
            || same_key(one, two, keys, &Steps::new(self.budget)),
            |steps| same_key(one, two, keys, steps),
        )
    }

    /// The argument at an index.
    ///
    /// # Errors
    /// `no such overload` behind the last one.
    pub fn argument(&self, index: usize) -> Result<&'c Value<'v>, EvalError> {
        self.arguments.get(index).ok_or_else(EvalError::no_such_overload)
    }

    /// The text at an index.
    ///
    /// # Errors
    /// `no such overload` for anything else; so do the others.
    pub fn str(&self, index: usize) -> Result<&'c str, EvalError> {
        self.argument(index)?.as_str()
    }

    /// The regular expression that is the second argument, to be searched in the first: compiled with the program, or now.
    ///
    /// # Errors
    /// What is wrong with it; [`EvalError::Budget`] if the evaluation cannot pay for it.
    #[cfg(feature = "regex")]
    pub fn regex(&self) -> Result<Arc<Regex>, EvalError> {
        let (regex, bytes) = match self.pattern {
            Some(planned) => planned.get(),
            None => re2::compile_within(self.str(1)?, &|steps| self.take(steps))?,
        };
        self.take(re2::search_steps(self.str(0)?.len(), bytes))?;
        Ok(regex)
    }

    /// The integer at an index.
    ///
    /// # Errors
    /// `no such overload`.
    pub fn int(&self, index: usize) -> Result<i64, EvalError> {
        self.argument(index)?.as_int()
    }
}

/// What an estimate knows of a call's arguments.
pub trait CallSizes {
    /// Size of the receiver; None for a global call.
    fn target(&self) -> Option<SizeEstimate>;
    /// Number of arguments without the receiver.
    fn arguments(&self) -> usize;
    /// Size of an argument, the receiver not counted. [`SizeEstimate::UNKNOWN`] when nothing is known.
    fn argument(&self, index: usize) -> SizeEstimate;
    /// The receiver's type.
    fn target_type(&self) -> Option<&Type>;
    /// An argument's type.
    fn argument_type(&self, index: usize) -> Option<&Type>;
    /// Type and size of the receiver's items when its type has parameters.
    fn target_items(&self) -> Option<(Type, SizeEstimate)>;
    /// Like [`CallSizes::target_items`], of an argument.
    fn argument_items(&self, index: usize) -> Option<(Type, SizeEstimate)>;
    /// An argument that is a literal integer.
    fn literal_int(&self, index: usize) -> Option<i64>;
    /// Whether the size of an argument (of the receiver at None) is known from the expression itself or the schema.
    fn known(&self, index: Option<usize>) -> Option<SizeEstimate>;
}

/// What a call may cost, its arguments not counted, and how big its result may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEstimate {
    /// The cost.
    pub cost: CostEstimate,
    /// The size of the result, when it can be estimated.
    pub result: Option<SizeEstimate>,
}

impl CallEstimate {
    /// A cost without knowledge of the result's size.
    #[must_use]
    pub const fn cost(cost: CostEstimate) -> Self {
        Self { cost, result: None }
    }

    /// A cost, and the size of the result.
    #[must_use]
    pub const fn sized(cost: CostEstimate, result: SizeEstimate) -> Self {
        Self { cost, result: Some(result) }
    }
}

impl Function {
    /// A function with these overloads.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>, overloads: Vec<Overload>) -> Self {
        Self { name: name.into(), overloads }
    }
}

impl Overload {
    /// A global overload that is a closure: `name(a, b)`. [`Overload::on_receiver`] makes it `a.name(b)`.
    ///
    /// It is called whenever the expression is evaluated, unless it is declared [`Overload::pure`].
    pub fn new<F>(
        id: impl Into<Cow<'static, str>>,
        parameters: impl Into<Vec<Type>>,
        result: Type,
        run: F,
    ) -> Self
    where
        F: for<'c, 'v> Fn(&Call<'c, 'v>) -> Result<Value<'v>, EvalError> + Send + Sync + 'static,
    {
        Self {
            id: id.into(),
            receiver: false,
            parameters: parameters.into(),
            result,
            run: Run(Runs::Closure(Arc::new(run))),
            estimate: None,
            cost: None,
            cost_by_name: false,
            pure: false,
            asks: false,
        }
    }

    /// The same, called on a receiver, which is the first parameter.
    #[must_use]
    pub fn on_receiver(self) -> Self {
        Self { receiver: true, ..self }
    }

    /// The same, declared to return the same for the same arguments.
    #[must_use]
    pub fn pure(self) -> Self {
        Self { pure: true, ..self }
    }

    /// The same, whose cost is no measure of the work of the evaluation.
    #[must_use]
    pub fn asks(self) -> Self {
        Self { asks: true, ..self }
    }

    /// A global overload that is a function: `name(a, b)`.
    #[must_use]
    pub fn global(id: &'static str, parameters: Vec<Type>, result: Type, run: Implementation) -> Self {
        Self {
            id: Cow::Borrowed(id),
            receiver: false,
            parameters,
            result,
            run: Run(Runs::Function(run)),
            estimate: None,
            cost: None,
            cost_by_name: false,
            pure: false,
            asks: false,
        }
    }

    /// A receiver's overload: `a.name(b)`; the receiver is the first parameter.
    #[must_use]
    pub fn member(id: &'static str, parameters: Vec<Type>, result: Type, run: Implementation) -> Self {
        Self { receiver: true, ..Self::global(id, parameters, result, run) }
    }

    /// The same with costs that count only where the checker found this very overload.
    #[must_use]
    pub fn costs(self, estimate: EstimateFn, cost: CostFn) -> Self {
        Self { estimate: Some(estimate), cost: Some(cost), cost_by_name: false, ..self }
    }

    /// The same with costs that count wherever it runs (upstream's libraries cost by the function's name).
    #[must_use]
    pub fn costs_by_name(self, estimate: EstimateFn, cost: CostFn) -> Self {
        Self { estimate: Some(estimate), cost: Some(cost), cost_by_name: true, ..self }
    }

    /// Whether it takes the values that another one takes.
    pub(crate) fn collides(&self, other: &Self) -> bool {
        self.receiver == other.receiver && self.parameters == other.parameters
    }

    /// Names of the type parameters in its signature.
    #[must_use]
    pub fn type_parameters(&self) -> Vec<Arc<str>> {
        let mut names = Vec::new();
        for ty in self.parameters.iter().chain([&self.result]) {
            collect_parameters(ty, &mut names);
        }
        names
    }
}

fn collect_parameters(ty: &Type, into: &mut Vec<Arc<str>>) {
    if let Type::Param(name) = ty
        && !into.contains(name)
    {
        into.push(name.clone());
    }
    for parameter in ty.parameters() {
        collect_parameters(parameter, into);
    }
}
