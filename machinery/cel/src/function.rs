//! Declarations of functions: signatures for the checker, costs for the estimate, implementations for the evaluator.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

#[cfg(feature = "regex")]
use regex::Regex;

use crate::error::EvalError;
#[cfg(feature = "regex")]
use crate::pattern_cache::{self, CallPattern};
use crate::size::{CostEstimate, SizeEstimate};
use crate::types::Type;
use crate::value::{List, Map, Opaque, Steps, Value, equal, equal_within, same_key};

/// A function with its overloads.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name: `size`, `sets.contains`; operators have names such as `_+_`.
    pub name: Cow<'static, str>,
    /// Overloads, in the order in which they are tried.
    pub overloads: Vec<Overload>,
}

/// A signature of a function with its implementation.
#[derive(Clone, Debug)]
pub struct Overload {
    /// Unique id, such as `size_string`.
    pub id: Cow<'static, str>,
    /// True for member functions: the receiver is the first parameter.
    pub receiver: bool,
    /// Types of the parameters, the receiver first.
    pub parameters: Vec<Type>,
    /// Type of the result.
    pub result: Type,
    /// Implementation of the overload.
    pub run: Run,
    /// Estimate of the cost before a run. `None`: one unit, and an unknown size of the result.
    pub estimate: Option<EstimateFn>,
    /// Cost of a call. `None`: one unit.
    pub cost: Option<CostFn>,
    /// True if `cost` also applies if the overload is resolved at run time (for dynamic arguments), as in kube-apiserver's
    /// libraries; false if it applies only to an overload that the checker resolved, as for standard functions.
    pub cost_by_name: bool,
    /// True if equal arguments give equal results: calls with constant arguments are evaluated at compile time.
    pub pure: bool,
    /// True if the cost represents work outside of the evaluation, such as a request to an authorizer. Meters exclude it.
    pub external: bool,
}

/// Implementation of an overload. The arguments have the types of its parameters.
pub type Implementation = for<'c, 'v> fn(&Call<'c, 'v>) -> Result<Value<'v>, EvalError>;

/// Implementation of an overload: a function or a closure.
#[derive(Clone)]
pub struct Run(Callable);

#[derive(Clone)]
enum Callable {
    Function(Implementation),
    Closure(Arc<Closure>),
}

type Closure = dyn for<'c, 'v> Fn(&Call<'c, 'v>) -> Result<Value<'v>, EvalError> + Send + Sync;

impl Run {
    /// Calls the implementation.
    ///
    /// # Errors
    /// The error of the implementation.
    pub fn call<'v>(&self, call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
        match &self.0 {
            Callable::Function(function) => function(call),
            Callable::Closure(closure) => closure(call),
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self.0, Callable::Function(_)) { "Run(function)" } else { "Run(closure)" })
    }
}

/// Estimates the cost of a call. `None` means one unit.
pub type EstimateFn = fn(&dyn CallSizes) -> Option<CallEstimate>;

/// Returns the cost of a call from its arguments (the receiver first) and its result.
pub type CostFn = for<'v> fn(&[Value<'v>], &Value<'v>) -> u64;

/// A call of an overload: its arguments and remaining budget.
#[derive(Clone, Copy, Debug)]
pub struct Call<'c, 'v> {
    /// Arguments, the receiver first.
    pub arguments: &'c [Value<'v>],
    /// Remaining budget of the program. Loops in an implementation must not exceed it.
    pub budget: u64,
    steps: Option<&'c Steps>,
    #[cfg(feature = "regex")]
    pattern: Option<&'c CallPattern>,
}

impl<'c, 'v> Call<'c, 'v> {
    /// Returns a call with these arguments, the receiver first. Useful to test implementations.
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

    /// Sets the regular expression that is the second argument.
    #[cfg(feature = "regex")]
    pub(crate) fn with_pattern(self, pattern: Option<&'c CallPattern>) -> Self {
        Self { pattern, ..self }
    }

    /// Limits the call to the steps of an evaluation.
    pub(crate) fn with_steps(self, steps: &'c Steps) -> Self {
        Self { steps: Some(steps), ..self }
    }

    /// Counts items in advance that the call visits and its cost does not cover.
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

    /// Counts bytes in advance that the call reads or writes one by one.
    ///
    /// # Errors
    /// [`EvalError::Budget`] if the evaluation cannot pay for it.
    pub(crate) fn take_parse(&self, bytes: usize) -> Result<(), EvalError> {
        self.steps.map_or(Ok(()), |steps| steps.take_parse(bytes))
    }

    /// Returns the string at an index and counts parsing it.
    ///
    /// # Errors
    /// `no such overload`; [`EvalError::Budget`] if the evaluation cannot pay for it.
    pub(crate) fn str_to_parse(&self, index: usize) -> Result<&'c str, EvalError> {
        let text = self.str(index)?;
        self.take_parse(text.len())?;
        Ok(text)
    }

    /// Counts items in advance that the call copies and its cost does not cover.
    ///
    /// # Errors
    /// [`EvalError::Budget`] if the evaluation cannot pay for it.
    pub(crate) fn take_items(&self, items: usize) -> Result<(), EvalError> {
        self.steps.map_or(Ok(()), |steps| steps.take_items(items))
    }

    /// Counts a piece of text in advance that the call copies. The cost of a call that fails later does not cover it.
    ///
    /// # Errors
    /// [`EvalError::Budget`] if the evaluation cannot pay for it.
    pub(crate) fn take_text(&self, bytes: usize) -> Result<(), EvalError> {
        self.steps.map_or(Ok(()), |steps| steps.take(1).and_then(|()| steps.take_text(bytes)))
    }

    /// Compares two values like the operator `==`.
    ///
    /// # Errors
    /// JSON does not match its declaration; [`EvalError::Budget`] if the evaluation cannot pay for the comparison.
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

    /// Returns the argument at an index; the receiver of a member function has index 0.
    ///
    /// # Errors
    /// `no such overload` if there are fewer arguments.
    pub fn argument(&self, index: usize) -> Result<&'c Value<'v>, EvalError> {
        self.arguments.get(index).ok_or_else(EvalError::no_such_overload)
    }

    /// Returns the boolean at an index.
    ///
    /// # Errors
    /// `no such overload` if there is no such argument, or it has another type.
    pub fn bool(&self, index: usize) -> Result<bool, EvalError> {
        self.argument(index)?.try_into()
    }

    /// Returns the signed integer at an index.
    ///
    /// # Errors
    /// See [`Call::bool`].
    pub fn int(&self, index: usize) -> Result<i64, EvalError> {
        self.argument(index)?.try_into()
    }

    /// Returns the string at an index.
    ///
    /// # Errors
    /// See [`Call::bool`].
    pub fn str(&self, index: usize) -> Result<&'c str, EvalError> {
        self.argument(index)?.try_into()
    }

    /// Returns the list at an index.
    ///
    /// # Errors
    /// See [`Call::bool`].
    pub fn list(&self, index: usize) -> Result<&'c List<'v>, EvalError> {
        self.argument(index)?.try_into()
    }

    /// Returns the map or object at an index.
    ///
    /// # Errors
    /// See [`Call::bool`].
    pub fn map(&self, index: usize) -> Result<&'c Map<'v>, EvalError> {
        self.argument(index)?.try_into()
    }

    /// Returns the value of a library at an index, as its Rust type.
    ///
    /// # Errors
    /// See [`Call::bool`].
    pub fn opaque<T: Opaque>(&self, index: usize) -> Result<&'c T, EvalError> {
        self.argument(index)?.as_opaque().ok_or_else(EvalError::no_such_overload)
    }

    /// Returns the regular expression that is the second argument, to be searched in the first. Calls of `matches`, `find` and
    /// `findAll` use the cache of their [`Language`](crate::Language); for other functions the pattern is compiled on each call.
    ///
    /// # Errors
    /// The pattern cannot be compiled, or an argument is no string; [`EvalError::Budget`] if the evaluation cannot pay for it.
    #[cfg(feature = "regex")]
    pub fn regex(&self) -> Result<Arc<Regex>, EvalError> {
        let (pattern, take) = (self.str(1)?, |steps| self.take(steps));
        let (regex, bytes) = match self.pattern {
            Some(cache) => cache.compiled_pattern(pattern, &take)?,
            None => {
                pattern_cache::compile(pattern, &take)?.map_err(|error| EvalError::new(error.to_string()))?
            }
        };
        self.take(pattern_cache::search_steps(self.str(0)?.len(), bytes))?;
        Ok(regex)
    }
}

/// Sizes and types of the arguments of a call, for estimates.
pub trait CallSizes {
    /// Returns the size of the receiver; `None` for a global function.
    fn target(&self) -> Option<SizeEstimate>;
    /// Returns the number of arguments without the receiver.
    fn arguments(&self) -> usize;
    /// Returns the size of an argument (the receiver is not counted), or [`SizeEstimate::UNKNOWN`].
    fn argument(&self, index: usize) -> SizeEstimate;
    /// Returns the type of the receiver.
    fn target_type(&self) -> Option<&Type>;
    /// Returns the type of an argument.
    fn argument_type(&self, index: usize) -> Option<&Type>;
    /// Returns the type and size of the receiver's items, if its type has parameters.
    fn target_items(&self) -> Option<(Type, SizeEstimate)>;
    /// Returns the type and size of an argument's items, if its type has parameters.
    fn argument_items(&self, index: usize) -> Option<(Type, SizeEstimate)>;
    /// Returns the value of an argument that is a literal integer.
    fn literal_int(&self, index: usize) -> Option<i64>;
    /// Returns the size of an argument (of the receiver for `None`) if the expression or the schema determines it.
    fn known_size(&self, index: Option<usize>) -> Option<SizeEstimate>;
}

/// Estimate of a call without its arguments: cost, and size of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEstimate {
    /// Cost of the call.
    pub cost: CostEstimate,
    /// Size of the result, if it can be estimated.
    pub result: Option<SizeEstimate>,
}

impl CallEstimate {
    /// Returns an estimate with an unknown size of the result.
    #[must_use]
    pub const fn cost(cost: CostEstimate) -> Self {
        Self { cost, result: None }
    }

    /// Returns an estimate with the size of the result.
    #[must_use]
    pub const fn sized(cost: CostEstimate, result: SizeEstimate) -> Self {
        Self { cost, result: Some(result) }
    }
}

impl Function {
    /// Returns a function with these overloads.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>, overloads: Vec<Overload>) -> Self {
        Self { name: name.into(), overloads }
    }
}

impl Overload {
    /// Returns an overload of a global function, `name(a, b)`, implemented by a closure. [`Overload::on_receiver`] makes it a
    /// member function, `a.name(b)`.
    ///
    /// The closure is called in each evaluation, unless the overload is declared [`pure`](Overload::pure).
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
            run: Run(Callable::Closure(Arc::new(run))),
            estimate: None,
            cost: None,
            cost_by_name: false,
            pure: false,
            external: false,
        }
    }

    /// Makes this a member function: the first parameter is the receiver.
    #[must_use]
    pub fn on_receiver(self) -> Self {
        Self { receiver: true, ..self }
    }

    /// Declares that equal arguments give equal results. Calls with constant arguments are then evaluated at compile time.
    #[must_use]
    pub fn pure(self) -> Self {
        Self { pure: true, ..self }
    }

    /// Declares that the cost represents work outside of the evaluation. Meters exclude it.
    #[must_use]
    pub fn external(self) -> Self {
        Self { external: true, ..self }
    }

    /// Returns an overload of a global function, `name(a, b)`, implemented by a function pointer.
    #[must_use]
    pub fn global(id: &'static str, parameters: Vec<Type>, result: Type, run: Implementation) -> Self {
        Self {
            id: Cow::Borrowed(id),
            receiver: false,
            parameters,
            result,
            run: Run(Callable::Function(run)),
            estimate: None,
            cost: None,
            cost_by_name: false,
            pure: false,
            external: false,
        }
    }

    /// Returns an overload of a member function, `a.name(b)`, implemented by a function pointer. Its first parameter
    /// is the receiver.
    #[must_use]
    pub fn member(id: &'static str, parameters: Vec<Type>, result: Type, run: Implementation) -> Self {
        Self { receiver: true, ..Self::global(id, parameters, result, run) }
    }

    /// Sets costs that apply if the checker resolves the call to this overload.
    #[must_use]
    pub fn costs(self, estimate: EstimateFn, cost: CostFn) -> Self {
        Self { estimate: Some(estimate), cost: Some(cost), cost_by_name: false, ..self }
    }

    /// Sets costs that apply wherever the overload runs, as in kube-apiserver's libraries.
    #[must_use]
    pub fn costs_by_name(self, estimate: EstimateFn, cost: CostFn) -> Self {
        Self { estimate: Some(estimate), cost: Some(cost), cost_by_name: true, ..self }
    }

    /// True if another overload has the same parameters.
    pub(crate) fn collides(&self, other: &Self) -> bool {
        self.receiver == other.receiver && self.parameters == other.parameters
    }

    /// Returns the names of the type parameters in the signature.
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
