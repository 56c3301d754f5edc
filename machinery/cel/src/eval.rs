//! Evaluator: runs a plan with values and counts the cost.
//!
//! Costs are counted like cel-go's tracker does. Plans are limited in depth, so the evaluator is recursive. Loops end when the
//! budget is used up or the caller interrupts them.

mod attribute;
mod call;
mod fold;

use crate::error::EvalError;
use crate::library::uncounted_cost;
use crate::meter::Meter;
use crate::plan::Node;
use crate::size::{LIST_CREATE, MAP_CREATE, STRING_TRAVERSAL, STRUCT_CREATE, scale};
use crate::value::{Key, Map, MapBuilder, Steps, Value, equal_within, print_key};

/// Returns the value of a variable by name, if it has one.
pub type Variables<'f, 'v> = dyn Fn(&str) -> Option<Value<'v>> + 'f;

/// Returns a field of a variable without a value, given the names of the variable and the field; `None` if the field is unknown.
pub type Fields<'f, 'v> = dyn Fn(&str, &str) -> Option<Result<Value<'v>, EvalError>> + 'f;

/// Result of a node.
type Evaluated<'v> = Result<Value<'v>, EvalError>;

/// Number of loop iterations between two checks for an interruption. Calls and comparisons check each time.
const INTERRUPT_CHECK_INTERVAL: u32 = 10;

/// Length of a name in bytes up to which the lookup is included in the cost of a step.
const SHORT_NAME: usize = 256;

/// Value of a local variable.
enum Local<'e, 'v> {
    /// A known value.
    Known(Evaluated<'v>),
    /// A node that is evaluated when the variable is read.
    Lazy(&'e Node),
}

/// One run of a plan.
pub(crate) struct Evaluator<'e, 'v> {
    variables: &'e Variables<'e, 'v>,
    names: &'e [std::sync::Arc<str>],
    fields: &'e Fields<'e, 'v>,
    locals: Vec<Local<'e, 'v>>,
    cost: u64,
    limit: u64,
    meter: &'e Meter,
    interrupted: &'e dyn Fn() -> bool,
    iterations: u32,
}

impl<'e, 'v> Evaluator<'e, 'v> {
    pub(crate) fn new(
        variables: &'e Variables<'e, 'v>,
        names: &'e [std::sync::Arc<str>],
        fields: &'e Fields<'e, 'v>,
        limit: u64,
        meter: &'e Meter,
        interrupted: &'e dyn Fn() -> bool,
    ) -> Self {
        meter.steps.set_limit(limit.min(meter.remaining()));
        Self {
            variables,
            names,
            fields,
            locals: Vec::new(),
            cost: 0,
            limit,
            meter,
            interrupted,
            iterations: 0,
        }
    }

    /// Returns the cost so far.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Charges work of the evaluation, including its steps.
    fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.meter.steps.allow(cost);
        self.pay(cost)
    }

    fn pay(&mut self, cost: u64) -> Result<(), EvalError> {
        let left = self.meter.remaining();
        self.meter.set_remaining(left.saturating_sub(cost));
        if cost > left {
            self.cost = self.cost.saturating_add(cost);
            return Err(EvalError::Budget);
        }
        self.charge_external(cost)
    }

    /// Charges external work, which the meter does not count.
    fn charge_external(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(EvalError::Budget) } else { Ok(()) }
    }

    /// Takes steps, and charges those that exceed the free steps and the steps included in costs.
    ///
    /// # Errors
    /// [`EvalError::Budget`], or an error of `take`.
    fn take<T>(&mut self, take: impl FnOnce(&Steps) -> Result<T, EvalError>) -> Result<T, EvalError> {
        let result = take(&self.meter.steps);
        let cost = self.meter.steps.charge();
        self.pay(cost).and(result)
    }

    /// Evaluates a whole plan.
    pub(crate) fn evaluate(&mut self, root: &'e Node) -> Evaluated<'v> {
        self.check_interrupted()?;
        self.run(root)
    }

    fn check_interrupted(&self) -> Result<(), EvalError> {
        if (self.interrupted)() { Err(EvalError::Interrupted) } else { Ok(()) }
    }

    fn run(&mut self, node: &'e Node) -> Evaluated<'v> {
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Computed(computed) => {
                self.charge(computed.cost)?;
                Ok(computed.value.clone())
            }
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::Logic(and, pair) => self.logic(*and, pair),
            Node::OptionalOr(value, pair) => self.optional_or(*value, pair),
            Node::NotStrictlyFalse(inner) => self.not_strictly_false(inner),
            Node::Equality(equal, pair) => self.equality(*equal, pair),
            Node::InSet(item, constants) => {
                let item = self.run(item)?;
                self.look_up(&item)?;
                Ok(Value::Bool(constants.contain(&item)))
            }
            Node::Call(call) => self.call(call),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Object(name, fields) => self.object(name, fields),
            Node::Fold(fold) => self.fold(fold),
            Node::Append(slot, item) => self.append(*slot, item),
            Node::Insert(slot, entry) => self.insert(*slot, entry),
        }
    }

    /// Counts the steps of hashing a key.
    fn look_up(&mut self, key: &Value<'v>) -> Result<(), EvalError> {
        if let Value::String(key) = key { self.look_up_name(key) } else { Ok(()) }
    }

    /// Counts the steps of hashing a name, unless it is short.
    fn look_up_name(&mut self, name: &str) -> Result<(), EvalError> {
        if name.len() < SHORT_NAME {
            return Ok(());
        }
        self.take(|steps| steps.take_key(name.len()))
    }

    /// Counts the steps of decoding data: bytes are base64 in JSON.
    fn take_decoded(&mut self, value: &Value<'v>) -> Result<(), EvalError> {
        let Value::Bytes(bytes) = value else { return Ok(()) };
        self.take(|steps| steps.take_parse(bytes.len()))
    }

    fn name(&self, slot: usize) -> &'e str {
        self.names.get(slot).map_or("", |name| name)
    }

    fn local(&mut self, slot: usize) -> Evaluated<'v> {
        let node = match self.locals.get(slot) {
            Some(Local::Known(value)) => return value.clone(),
            Some(Local::Lazy(node)) => *node,
            None => return Err(EvalError::new("no such attribute(s)")),
        };
        // The node is evaluated with the variables that existed before it.
        let newer_locals = self.locals.split_off(slot + 1);
        self.locals.truncate(slot);
        let value = self.run(node);
        self.locals.truncate(slot);
        self.locals.push(Local::Known(value.clone()));
        self.locals.extend(newer_locals);
        value
    }

    /// Evaluates `&&` or `||`: `false && x` is false and `true || x` is true, even if `x` is an error. Otherwise the first
    /// error wins.
    fn logic(&mut self, and: bool, pair: &'e [Node; 2]) -> Evaluated<'v> {
        let mut error = None;
        for operand in pair {
            match self.run(operand) {
                Ok(Value::Bool(value)) if value != and => return Ok(Value::Bool(value)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => error = error.or_else(|| Some(EvalError::no_such_overload())),
                Err(failure) => {
                    self.absorb(&failure)?;
                    error = error.or(Some(failure));
                }
            }
        }
        error.map_or(Ok(Value::Bool(and)), Err)
    }

    /// Charges the text of an error after which the evaluation continues: the next iteration may create as much text.
    ///
    /// # Errors
    /// The failure, if it cannot be absorbed.
    fn absorb(&mut self, failure: &EvalError) -> Result<(), EvalError> {
        match failure {
            EvalError::Failed(text) => self.charge(uncounted_cost(text.len() as u64)),
            stop => Err(stop.clone()),
        }
    }

    /// Evaluates `or` or `orValue`, without a cost for the operator. A value that is not an optional is returned unchanged.
    fn optional_or(&mut self, value: bool, [optional, other]: &'e [Node; 2]) -> Evaluated<'v> {
        match self.run(optional)? {
            Value::Optional(None) => self.run(other),
            Value::Optional(Some(inner)) if value => Ok((*inner).clone()),
            result => Ok(result),
        }
    }

    fn not_strictly_false(&mut self, inner: &'e Node) -> Evaluated<'v> {
        let value = match self.run(inner) {
            Ok(Value::Bool(value)) => value,
            Ok(_) => true,
            Err(failure) => {
                self.absorb(&failure)?;
                true
            }
        };
        self.charge(1)?;
        Ok(Value::Bool(value))
    }

    fn equality(&mut self, expected: bool, [one, two]: &'e [Node; 2]) -> Evaluated<'v> {
        let (one, two) = (self.run(one), self.run(two));
        for operand in [&one, &two] {
            if let Err(failure) = operand {
                self.absorb(failure)?;
            }
        }
        self.check_interrupted()?;
        // The characters of both values are counted, including those of the longer one.
        let read = [&one, &two].map(|operand| operand.as_ref().map_or(0, Value::bytes)).into_iter().sum();
        self.take(|steps| steps.take_text(read))?;
        let size = |operand: &Evaluated<'v>| operand.as_ref().map_or(1, Value::cost_size);
        let cost = match &one {
            Ok(Value::Opaque(_)) if expected => 1,
            one => scale(size(one).min(size(&two)), STRING_TRAVERSAL),
        };
        self.charge(cost)?;
        let (one, two) = (one?, two?);
        match self.take(|steps| equal_within(&one, &two, steps)) {
            Ok(equal) => Ok(Value::Bool(equal == expected)),
            // Values that cannot be compared are unequal.
            Err(error) if !expected && error.is_absorbable() => Ok(Value::Bool(true)),
            Err(error) => Err(error),
        }
    }

    fn list(&mut self, items: &'e [(Node, bool)]) -> Evaluated<'v> {
        let list = self.items(items);
        self.charge_literal(list, LIST_CREATE)
    }

    fn items(&mut self, items: &'e [(Node, bool)]) -> Evaluated<'v> {
        let mut values = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match self.run(item)? {
                Value::Optional(inner) if *optional => values.extend(inner.map(|inner| (*inner).clone())),
                value if *optional => {
                    let message = "cannot initialize optional list element from non-optional value";
                    return Err(EvalError::new(format!("{message} {}", print_key(&value))));
                }
                value => values.push(value),
            }
        }
        Ok(Value::list(values))
    }

    fn map(&mut self, entries: &'e [(Node, Node, bool)]) -> Evaluated<'v> {
        let map = self.entries(entries);
        self.charge_literal(map, MAP_CREATE)
    }

    fn object(&mut self, name: &std::sync::Arc<str>, fields: &'e [(Node, Node, bool)]) -> Evaluated<'v> {
        let object = self.entries(fields).map(|entries| match entries {
            Value::Map(Map::Computed(fields)) => {
                Value::Map(Map::Object { name: std::sync::Arc::clone(name), fields })
            }
            other => other,
        });
        self.charge_literal(object, STRUCT_CREATE)
    }

    fn entries(&mut self, entries: &'e [(Node, Node, bool)]) -> Evaluated<'v> {
        let mut built = MapBuilder::with_capacity(entries.len());
        for (key, value, optional) in entries {
            let key = self.run(key)?;
            let value = self.run(value)?;
            self.look_up(&key)?;
            if *optional && !matches!(value, Value::Optional(_)) {
                let (key, value) = (print_key(&key), print_key(&value));
                let message = "from non-optional value";
                return Err(EvalError::new(format!(
                    "cannot initialize optional entry '{key}' {message} {value}"
                )));
            }
            let key = Key::from_value(&key)
                .ok_or_else(|| EvalError::new(format!("unsupported key type: {}", key.type_of().name())))?;
            let value = match value {
                Value::Optional(None) if *optional => {
                    built.shift_remove(&key);
                    continue;
                }
                Value::Optional(Some(inner)) if *optional => (*inner).clone(),
                value => value,
            };
            // If several entries have the same key, the last one wins, as in cel-go.
            built.insert(key, value);
        }
        Ok(Value::Map(built.into()))
    }

    /// Charges a list or map literal, also if one of its parts is an error.
    fn charge_literal(&mut self, value: Evaluated<'v>, cost: u64) -> Evaluated<'v> {
        if value.as_ref().err().is_none_or(EvalError::is_absorbable) {
            self.charge(cost)?;
        }
        value
    }
}
