//! Comprehensions.

use std::sync::Arc;

use super::{CHECK_EVERY, Evaluated, Evaluator};
use crate::plan::{Fold, Node};
use crate::size::{LIST_CREATE, SELECT_AND_IDENT};
use crate::value::{Key, List, Map};
use crate::{EvalError, Value};

impl<'v> Evaluator<'_, 'v> {
    pub(super) fn fold(&mut self, fold: &Fold) -> Evaluated<'v> {
        let range = self.run(&fold.range)?;
        let start = stopped(self.run(&fold.start))?;
        self.locals.truncate(fold.base);
        self.locals.push(start);
        if !fold.binds {
            self.locals.push(Ok(Value::Null));
            if fold.two {
                self.locals.push(Ok(Value::Null));
            }
            self.iterate(fold, &range)?;
        }
        let result = self.run(&fold.result);
        self.locals.truncate(fold.base);
        result
    }

    fn iterate(&mut self, fold: &Fold, range: &Value<'v>) -> Result<(), EvalError> {
        match range {
            Value::List(list) => {
                for (index, item) in list.iter().enumerate() {
                    let index = Value::Int(i64::try_from(index).unwrap_or(i64::MAX));
                    let (first, second) = if fold.two { (Ok(index), item) } else { (item, Ok(Value::Null)) };
                    if !self.turn(fold, first, second)? {
                        break;
                    }
                }
                Ok(())
            }
            Value::Map(map) => self.iterate_map(fold, map),
            other => Err(EvalError::new(format!("got '{}', expected iterable type", go_type(other)))),
        }
    }

    fn iterate_map(&mut self, fold: &Fold, map: &Map<'v>) -> Result<(), EvalError> {
        for key in map.keys() {
            let second = if fold.two {
                map.get(&key).and_then(|value| value.ok_or_else(EvalError::no_such_overload))
            } else {
                Ok(Value::Null)
            };
            if !self.turn(fold, Ok(key), second)? {
                break;
            }
        }
        Ok(())
    }

    /// One turn; false when the condition ends the loop.
    fn turn(&mut self, fold: &Fold, first: Evaluated<'v>, second: Evaluated<'v>) -> Result<bool, EvalError> {
        self.locals.truncate(fold.base + 2 + usize::from(fold.two));
        if let Some(place) = self.locals.get_mut(fold.base + 1) {
            *place = first;
        }
        if fold.two
            && let Some(place) = self.locals.get_mut(fold.base + 2)
        {
            *place = second;
        }
        if matches!(stopped(self.run(&fold.condition))?, Ok(Value::Bool(false))) {
            return Ok(false);
        }
        let next = stopped(self.run(&fold.step))?;
        if let Some(place) = self.locals.get_mut(fold.base) {
            *place = next;
        }
        self.iterations += 1;
        if self.iterations.is_multiple_of(CHECK_EVERY) && (self.interrupted)() {
            return Err(EvalError::Interrupted);
        }
        Ok(true)
    }

    /// Takes what a local holds, to change it.
    fn taken(&mut self, place: usize) -> Evaluated<'v> {
        let slot = self.locals.get_mut(place).ok_or_else(EvalError::no_such_overload)?;
        std::mem::replace(slot, Ok(Value::Null))
    }

    pub(super) fn append(&mut self, place: usize, item: &Node) -> Evaluated<'v> {
        let literal = if matches!(item, Node::Constant(_)) { 0 } else { LIST_CREATE };
        let item = self.run(item)?;
        self.charge(SELECT_AND_IDENT + literal + 1)?;
        let Value::List(List::Computed { mut items, of }) = self.taken(place)? else {
            return Err(EvalError::no_such_overload());
        };
        Arc::make_mut(&mut items).push(item);
        Ok(Value::List(List::Computed { items, of }))
    }

    pub(super) fn insert(&mut self, place: usize, (key, value): &(Node, Option<Node>)) -> Evaluated<'v> {
        let first = self.run(key)?;
        let entries = match value {
            Some(value) => vec![(first, self.run(value)?)],
            None => first.as_map()?.entries()?,
        };
        self.charge(SELECT_AND_IDENT + 1)?;
        let Value::Map(Map::Computed(mut map)) = self.taken(place)? else {
            return Err(EvalError::no_such_overload());
        };
        let built = Arc::make_mut(&mut map);
        for (key, value) in entries {
            let key = Key::from_value(&key)
                .ok_or_else(|| EvalError::new(format!("unsupported key type: {}", key.type_of().name())))?;
            let name = crate::value::print_key(&key.to_value());
            if built.insert(key, value).is_some() {
                return Err(EvalError::new(format!("insert failed: key {name} already exists")));
            }
        }
        Ok(Value::Map(Map::Computed(map)))
    }
}

/// What cel-go's values are called in Go.
fn go_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::String(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Duration(_) => "types.Duration",
        Value::Type(_) => "*types.Type",
        Value::Optional(_) => "*types.Optional",
        _ => "ref.Val",
    }
}

/// Splits what ends the run from errors that a variable may hold.
fn stopped(result: Evaluated<'_>) -> Result<Evaluated<'_>, EvalError> {
    match result {
        Err(stop) if !stop.is_absorbable() => Err(stop),
        other => Ok(other),
    }
}
