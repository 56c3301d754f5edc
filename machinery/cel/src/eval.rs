//! The evaluator: runs a plan over values, counting what it costs.
//!
//! Costs are counted as cel-go's tracker counts them. Plans are bounded in depth, so this recurses; loops end when the
//! budget is used up or nobody waits any more.

mod access;
mod call;
mod fold;

use smallvec::SmallVec;

use crate::plan::{Node, is_attribute};
use crate::size::{LIST_CREATE, MAP_CREATE, SELECT_AND_IDENT, STRING_TRAVERSAL, scale};
use crate::value::{Key, MapBuilder, equal};
use crate::{EvalError, Value};

/// Values of an environment's variables, by slot.
pub(crate) type Slots<'v> = SmallVec<[Option<Value<'v>>; 4]>;

/// What a part evaluates to.
type Evaluated<'v> = Result<Value<'v>, EvalError>;

/// How often loops ask whether anybody still waits.
const CHECK_EVERY: u32 = 100;

/// One run of a plan.
pub(crate) struct Evaluator<'e, 'v> {
    slots: &'e Slots<'v>,
    names: &'e [std::sync::Arc<str>],
    locals: Vec<Evaluated<'v>>,
    cost: u64,
    limit: u64,
    interrupted: &'e dyn Fn() -> bool,
    iterations: u32,
}

impl<'e, 'v> Evaluator<'e, 'v> {
    pub(crate) fn new(
        slots: &'e Slots<'v>,
        names: &'e [std::sync::Arc<str>],
        limit: u64,
        interrupted: &'e dyn Fn() -> bool,
    ) -> Self {
        Self { slots, names, locals: Vec::new(), cost: 0, limit, interrupted, iterations: 0 }
    }

    /// What it cost so far.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(EvalError::Budget) } else { Ok(()) }
    }

    pub(crate) fn run(&mut self, node: &Node) -> Evaluated<'v> {
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Variable(slot) => self.variable(*slot),
            Node::Local(place) => self.local(*place),
            Node::Select(select) => self.select(select),
            Node::Index(index) => self.index(index),
            Node::Logic(and, pair) => self.logic(*and, pair),
            Node::Otherwise(value, pair) => self.otherwise(*value, pair),
            Node::Conditional(parts) => self.conditional(parts),
            Node::NotStrictlyFalse(inner) => self.not_strictly_false(inner),
            Node::Equality(equal, pair) => self.equality(*equal, pair),
            Node::OneOf(wanted, keys) => {
                let wanted = self.run(wanted)?;
                Ok(Value::Bool(Key::lookup(&wanted).is_some_and(|key| keys.contains(&key))))
            }
            Node::Call(call) => self.call(call),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Fold(fold) => self.fold(fold),
            Node::Append(place, item) => self.append(*place, item),
            Node::Insert(place, entry) => self.insert(*place, entry),
        }
    }

    /// A call whose argument is in error costs, too.
    fn failed(&mut self, error: EvalError) -> Evaluated<'v> {
        if error.is_absorbable() {
            self.charge(1)?;
        }
        Err(error)
    }

    fn variable(&mut self, slot: usize) -> Evaluated<'v> {
        self.charge(SELECT_AND_IDENT)?;
        match self.slots.get(slot) {
            Some(Some(value)) => Ok(value.clone()),
            _ => {
                let name = self.names.get(slot).map_or("", |name| name);
                Err(EvalError::new(format!("no such attribute(s): {name}")))
            }
        }
    }

    fn local(&mut self, place: usize) -> Evaluated<'v> {
        self.charge(SELECT_AND_IDENT)?;
        self.locals.get(place).cloned().unwrap_or_else(|| Err(EvalError::new("no such attribute(s)")))
    }

    /// `false && x` is false and `true || x` true, whatever `x` is; the first error stays otherwise.
    fn logic(&mut self, and: bool, pair: &[Node; 2]) -> Evaluated<'v> {
        let mut error = None;
        for side in pair {
            match self.run(side) {
                Ok(Value::Bool(value)) if value != and => return Ok(Value::Bool(value)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => error = error.or_else(|| Some(EvalError::no_such_overload())),
                Err(failure) if failure.is_absorbable() => error = error.or(Some(failure)),
                Err(stop) => return Err(stop),
            }
        }
        error.map_or(Ok(Value::Bool(and)), Err)
    }

    /// Costs nothing by itself. What is no optional stays what it is.
    fn otherwise(&mut self, value: bool, [optional, other]: &[Node; 2]) -> Evaluated<'v> {
        match self.run(optional)? {
            Value::Optional(None) => self.run(other),
            Value::Optional(Some(held)) if value => Ok((*held).clone()),
            held => Ok(held),
        }
    }

    fn conditional(&mut self, [condition, then, other]: &[Node; 3]) -> Evaluated<'v> {
        let branch = if self.run(condition)?.as_bool()? { then } else { other };
        let value = self.run(branch);
        // Naming the variable that a branch begins with is free.
        if is_attribute(branch) && !matches!(branch, Node::Conditional(_)) {
            self.cost = self.cost.saturating_sub(SELECT_AND_IDENT);
        }
        value
    }

    fn not_strictly_false(&mut self, inner: &Node) -> Evaluated<'v> {
        let value = match self.run(inner) {
            Ok(Value::Bool(value)) => value,
            Err(stop) if !stop.is_absorbable() => return Err(stop),
            _ => true,
        };
        self.charge(1)?;
        Ok(Value::Bool(value))
    }

    fn equality(&mut self, wanted: bool, [one, two]: &[Node; 2]) -> Evaluated<'v> {
        let (one, two) = (self.run(one), self.run(two));
        if let Err(stop @ (EvalError::Budget | EvalError::Interrupted)) = two {
            return Err(stop);
        }
        let (one, two) = match (one, two) {
            (Ok(one), Ok(two)) => (one, two),
            (Err(error), _) | (_, Err(error)) => return self.failed(error),
        };
        let cost = match one {
            Value::Opaque(_) if wanted => 1,
            _ => scale(one.cost_size().min(two.cost_size()), STRING_TRAVERSAL),
        };
        self.charge(cost)?;
        Ok(Value::Bool(equal(&one, &two)? == wanted))
    }

    fn list(&mut self, items: &[(Node, bool)]) -> Evaluated<'v> {
        let mut values = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match self.run(item)? {
                Value::Optional(held) if *optional => values.extend(held.map(|held| (*held).clone())),
                value if *optional => {
                    let found = value.type_of();
                    let message = "cannot initialize optional list element from non-optional value";
                    return Err(EvalError::new(format!("{message} {}", found.name())));
                }
                value => values.push(value),
            }
        }
        self.charge(LIST_CREATE)?;
        Ok(Value::list(values))
    }

    fn map(&mut self, entries: &[(Node, Node, bool)]) -> Evaluated<'v> {
        let mut built = MapBuilder::with_capacity(entries.len());
        for (key, value, optional) in entries {
            let key = self.run(key)?;
            let key = Key::from_value(&key)
                .ok_or_else(|| EvalError::new(format!("unsupported key type: {}", key.type_of().name())))?;
            let value = match self.run(value)? {
                Value::Optional(None) if *optional => {
                    built.shift_remove(&key);
                    continue;
                }
                Value::Optional(Some(held)) if *optional => (*held).clone(),
                value => value,
            };
            // Of entries with the same key the last stays, as in cel-go.
            built.insert(key, value);
        }
        self.charge(MAP_CREATE)?;
        Ok(Value::Map(built.into()))
    }
}
