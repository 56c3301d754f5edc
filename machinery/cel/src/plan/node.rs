//! Nodes of plans.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use indexmap::IndexSet;

use crate::function::Overload;
#[cfg(feature = "regex")]
use crate::pattern_cache::CallPattern;
use crate::value::{Key, List, Value};

/// A node of a plan.
#[derive(Debug)]
pub(crate) enum Node {
    /// A constant; costs nothing.
    Constant(Value<'static>),
    /// Result of a call with constant arguments. Has the cost of the call.
    Computed(Box<ComputedConstant>),
    /// Value with a path of steps: `self.a[0].?b`, `has(self.a)`, `c ? a : b`.
    Attribute(Box<Attribute>),
    /// `&&` (true) or `||` (false): absorbs errors of one side.
    Logic(bool, Box<[Node; 2]>),
    /// `optional.or(optional)`, or `optional.orValue(value)` (true): the argument is evaluated only if the optional is empty.
    OptionalOr(bool, Box<[Node; 2]>),
    /// Condition of a quantifier: true for every value except false, and for errors.
    NotStrictlyFalse(Box<Node>),
    /// `==` (true) or `!=`.
    Equality(bool, Box<[Node; 2]>),
    /// `x in [constants]`.
    InSet(Box<Node>, Box<Constants>),
    /// Any other call.
    Call(Box<CallNode>),
    /// `[a, ?b]`.
    List(Box<[(Node, bool)]>),
    /// `{k: v, ?k: v}`.
    Map(Box<[(Node, Node, bool)]>),
    /// `Name{field: value, ?field: value}`.
    Object(Arc<str>, Box<[(Node, Node, bool)]>),
    /// A comprehension.
    Fold(Box<Fold>),
    /// Adds an item to the list in a local variable, which is not shared.
    Append(usize, Box<Node>),
    /// Adds an entry (key and value) or the entries of a map to the map in a local variable.
    Insert(usize, Box<(Node, Option<Node>)>),
}

/// Computed constant with its cost.
#[derive(Debug)]
pub(crate) struct ComputedConstant {
    pub value: Value<'static>,
    pub cost: u64,
}

/// Value with a path that is evaluated as a unit: the steps after an optional step are also optional.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub base: Base,
    pub steps: Vec<Step>,
}

/// Start of an attribute.
#[derive(Debug)]
pub(crate) enum Base {
    /// Variable of the environment.
    Variable(usize),
    /// Variable of a comprehension, by its index among the locals in scope.
    Local(usize),
    /// A computed value.
    Computed(Node),
    /// One of two attributes, selected by a condition.
    Either(Box<(Node, Attribute, Attribute)>),
}

/// Step of a path.
#[derive(Debug)]
pub(crate) struct Step {
    pub by: StepKey,
    /// True if the step may find no value: `.?`, `[?_]`.
    pub optional: bool,
    /// True for a test of presence: `has()`.
    pub test: bool,
    /// Costs nothing: the test of the result of a choice, `has((c ? a : b).z)`.
    pub free: bool,
}

/// Key of a step.
#[derive(Debug)]
pub(crate) enum StepKey {
    /// A name.
    Name(Arc<str>),
    /// Any other constant.
    Constant(Value<'static>),
    /// Value of an attribute.
    Attribute(Attribute),
}

/// Set of constants for the operator `in`.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    keys: IndexSet<Key<'static>>,
    /// The bits of floats; zero has one sign.
    numbers: HashSet<u64>,
}

impl Constants {
    /// Creates a set from a list. Returns `None` if the list contains values other than Booleans, numbers and strings.
    pub(super) fn of(list: &List<'static>) -> Option<Self> {
        let mut constants = Self::default();
        for item in list.iter() {
            match item.ok()? {
                Value::Double(number) => {
                    constants.numbers.extend(bits(number));
                    constants.keys.extend(Key::from_integral_double(number));
                }
                Value::Null | Value::Timestamp(_) | Value::Duration(_) | Value::Type(_) => return None,
                other => {
                    constants.keys.insert(Key::from_value(&other)?);
                }
            }
        }
        Some(constants)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.numbers.is_empty()
    }

    /// True if a value is one of the constants.
    pub fn contain(&self, value: &Value<'_>) -> bool {
        match value {
            Value::Double(number) if bits(*number).is_some_and(|bits| self.numbers.contains(&bits)) => true,
            other => Key::lookup(other).is_some_and(|key| self.keys.contains(&key)),
        }
    }
}

/// Returns equal bits for equal floats; `None` for NaN.
fn bits(number: f64) -> Option<u64> {
    (!number.is_nan()).then(|| if number == 0.0 { 0 } else { number.to_bits() })
}

/// A comprehension over locals that start at `base`: the accumulator, the variable, the second variable.
#[derive(Debug)]
pub(crate) struct Fold {
    pub base: usize,
    pub range: Node,
    pub two: bool,
    pub start: Node,
    pub condition: Node,
    pub step: Node,
    pub result: Node,
    /// True if the fold binds a name and does not loop.
    pub binds: bool,
}

/// A call.
#[derive(Debug)]
pub(crate) struct CallNode {
    pub name: Cow<'static, str>,
    /// Possible overloads, in order.
    pub overloads: Vec<Arc<Overload>>,
    pub arguments: Vec<Node>,
    /// Literal regular expression in the second argument.
    #[cfg(feature = "regex")]
    pub regex: Option<CallPattern>,
    /// True if the arguments after a failed one are not evaluated: calls with three or more arguments, and calls with a
    /// precompiled regular expression.
    pub stops_at_error: bool,
}
