//! Evaluation of comprehensions.

use std::sync::Arc;

use super::{Evaluated, Evaluator, INTERRUPT_CHECK_INTERVAL, Local};
use crate::error::EvalError;
use crate::plan::{Fold, Node};
use crate::size::{LIST_CREATE, SELECT_AND_IDENT};
use crate::value::{Key, List, Map, Value, print_key};

impl<'e, 'v> Evaluator<'e, 'v> {
    pub(super) fn fold(&mut self, fold: &'e Fold) -> Evaluated<'v> {
        let range = self.run(&fold.range)?;
        self.locals.truncate(fold.base);
        if fold.binds {
            self.locals.push(Local::Lazy(&fold.start));
        } else {
            let start = self.run_to_result(&fold.start)?;
            self.locals.truncate(fold.base);
            self.locals.push(Local::Known(start));
            self.locals.push(Local::Known(Ok(Value::Null)));
            if fold.two {
                self.locals.push(Local::Known(Ok(Value::Null)));
            }
            self.iterate(fold, &range)?;
        }
        let result = self.run(&fold.result);
        self.locals.truncate(fold.base);
        result
    }

    fn iterate(&mut self, fold: &'e Fold, range: &Value<'v>) -> Result<(), EvalError> {
        match range {
            Value::List(list) => {
                for (index, item) in list.iter().enumerate() {
                    let index = Value::Int(i64::try_from(index).unwrap_or(i64::MAX));
                    let (first, second) = if fold.two { (Ok(index), item) } else { (item, Ok(Value::Null)) };
                    if !self.iterate_once(fold, first, second)? {
                        break;
                    }
                }
                Ok(())
            }
            Value::Map(map) => self.iterate_map(fold, map),
            other if fold.two => {
                Err(EvalError::new(format!("unsupported comprehension range type: {}", other.go_type())))
            }
            other => Err(EvalError::new(format!("got '{}', expected iterable type", other.go_type()))),
        }
    }

    fn iterate_map(&mut self, fold: &'e Fold, map: &Map<'v>) -> Result<(), EvalError> {
        for key in map.keys() {
            let second = if fold.two {
                self.look_up(&key)?;
                map.get(&key).and_then(|value| value.ok_or_else(EvalError::no_such_overload))
            } else {
                Ok(Value::Null)
            };
            if !self.iterate_once(fold, Ok(key), second)? {
                break;
            }
        }
        Ok(())
    }

    /// Runs one iteration. Returns false if the condition ends the loop.
    fn iterate_once(
        &mut self,
        fold: &'e Fold,
        first: Evaluated<'v>,
        second: Evaluated<'v>,
    ) -> Result<bool, EvalError> {
        // Limits loops whose parts are free.
        self.take(|steps| steps.take(1))?;
        for value in [&first, &second].into_iter().flatten() {
            self.take_decoded(value)?;
        }
        self.locals.truncate(fold.base + 2 + usize::from(fold.two));
        if let Some(local) = self.locals.get_mut(fold.base + 1) {
            *local = Local::Known(first);
        }
        if fold.two
            && let Some(local) = self.locals.get_mut(fold.base + 2)
        {
            *local = Local::Known(second);
        }
        if matches!(self.run_to_result(&fold.condition)?, Ok(Value::Bool(false))) {
            return Ok(false);
        }
        let next = self.run_to_result(&fold.step)?;
        if let Some(local) = self.locals.get_mut(fold.base) {
            *local = Local::Known(next);
        }
        self.iterations += 1;
        if self.iterations.is_multiple_of(INTERRUPT_CHECK_INTERVAL) {
            self.check_interrupted()?;
        }
        Ok(true)
    }

    /// Runs a node whose error can be stored in a variable.
    ///
    /// # Errors
    /// A failure that ends the run.
    fn run_to_result(&mut self, node: &'e Node) -> Result<Evaluated<'v>, EvalError> {
        let result = self.run(node);
        if let Err(failure) = &result {
            self.absorb(failure)?;
        }
        Ok(result)
    }

    /// Takes the value of an accumulator in order to change it.
    fn take_accumulator(&mut self, slot: usize) -> Evaluated<'v> {
        match self.locals.get_mut(slot) {
            Some(Local::Known(value)) => std::mem::replace(value, Ok(Value::Null)),
            _ => Err(EvalError::no_such_overload()),
        }
    }

    /// Returns the earlier error of an accumulator, otherwise `next`.
    fn unless_failed(&self, slot: usize, next: Evaluated<'v>) -> Evaluated<'v> {
        match (self.locals.get(slot), next) {
            (_, Err(stop)) if !stop.is_absorbable() => Err(stop),
            (Some(Local::Known(Err(error))), _) => Err(error.clone()),
            (_, next) => next,
        }
    }

    pub(super) fn append(&mut self, slot: usize, item: &'e Node) -> Evaluated<'v> {
        let literal = if matches!(item, Node::Constant(_)) { 0 } else { LIST_CREATE };
        let item = self.run_to_result(item)?;
        self.charge(SELECT_AND_IDENT + literal + 1)?;
        let item = self.unless_failed(slot, item)?;
        let Value::List(List::Computed { mut items, of }) = self.take_accumulator(slot)? else {
            return Err(EvalError::no_such_overload());
        };
        Arc::make_mut(&mut items).push(item);
        Ok(Value::List(List::Computed { items, of }))
    }

    pub(super) fn insert(&mut self, slot: usize, (key, value): &'e (Node, Option<Node>)) -> Evaluated<'v> {
        self.charge(SELECT_AND_IDENT)?;
        let Some(value) = value else {
            let more = self.run_to_result(key)?;
            self.charge(1)?;
            let more = self.unless_failed(slot, more)?;
            let more = <&Map<'v>>::try_from(&more)?;
            self.take(|steps| steps.take_items(more.len()))?;
            return self.insert_all(slot, more.iter());
        };
        self.unless_failed(slot, Ok(Value::Null))?;
        let key = self.run(key)?;
        let value = self.run_to_result(value)?;
        self.charge(1)?;
        self.insert_all(slot, std::iter::once(Ok((key, value?))))
    }

    fn insert_all(
        &mut self,
        slot: usize,
        entries: impl Iterator<Item = Result<(Value<'v>, Value<'v>), EvalError>>,
    ) -> Evaluated<'v> {
        let Value::Map(Map::Computed(mut map)) = self.take_accumulator(slot)? else {
            return Err(EvalError::no_such_overload());
        };
        let built = Arc::make_mut(&mut map);
        for entry in entries {
            let (name, value) = entry?;
            self.look_up(&name)?;
            let key = Key::from_value(&name)
                .ok_or_else(|| EvalError::new(format!("unsupported key type: {}", name.type_of().name())))?;
            if built.insert(key, value).is_some() {
                let name = print_key(&name);
                return Err(EvalError::new(format!("insert failed: key {name} already exists")));
            }
        }
        Ok(Value::Map(Map::Computed(map)))
    }
}
