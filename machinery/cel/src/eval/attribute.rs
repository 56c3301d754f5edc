//! Attributes: paths of fields and indices that are evaluated as a unit.
//!
//! A variable costs one unit, and each step costs another. Absent optional values are free, as are the choice between two paths
//! and the presence test on the result of a choice.

use smallvec::{SmallVec, smallvec};

use super::{Evaluated, Evaluator};
use crate::decl::DeclKind;
use crate::error::EvalError;
use crate::plan::{Attribute, Base, Step, StepKey};
use crate::size::SELECT_AND_IDENT;
use crate::value::{List, Value, print_key};

impl<'e, 'v> Evaluator<'e, 'v> {
    pub(super) fn attribute(&mut self, attribute: &'e Attribute) -> Evaluated<'v> {
        let value = match self.resolve(attribute) {
            Err(stop) if !stop.is_absorbable() => return Err(stop),
            value => value,
        };
        let test = attribute.is_test();
        if !attribute.is_choice() && !test {
            self.charge(SELECT_AND_IDENT)?;
        }
        match value? {
            Value::Optional(inner) if test => Ok(Value::Bool(inner.is_some())),
            value => Ok(value),
        }
    }

    /// Resolves an attribute.
    fn resolve(&mut self, attribute: &'e Attribute) -> Evaluated<'v> {
        match &attribute.base {
            Base::Variable(slot) => match (self.variables)(self.name(*slot)) {
                Some(value) => self.follow(value, attribute.steps.iter()),
                None => self.resolve_any(attribute),
            },
            Base::Local(slot) => {
                let value = self.local(*slot)?;
                if attribute.steps.is_empty() && !matches!(value, Value::Optional(_)) {
                    return Ok(value);
                }
                self.follow(value, attribute.steps.iter())
            }
            Base::Computed(_) | Base::Either(_) => self.resolve_any(attribute),
        }
    }

    /// Resolves an attribute of any shape.
    fn resolve_any(&mut self, attribute: &'e Attribute) -> Evaluated<'v> {
        let mut paths: SmallVec<[&'e [Step]; 2]> = smallvec![];
        let mut current = attribute;
        let base = loop {
            paths.push(&current.steps);
            match &current.base {
                Base::Variable(slot) => break self.variable(*slot, &mut paths),
                Base::Local(slot) => break self.local(*slot),
                Base::Computed(node) => break self.run(node),
                Base::Either(parts) => {
                    let (condition, then, other) = &**parts;
                    current = if bool::try_from(&self.run(condition)?)? { then } else { other };
                }
            }
        };
        self.follow(base?, paths.into_iter().rev().flatten())
    }

    /// Returns the value of a variable. If the variable has lazy fields instead of a value, evaluates the first field of the
    /// path and removes that step from the path.
    fn variable(&mut self, slot: usize, paths: &mut SmallVec<[&'e [Step]; 2]>) -> Evaluated<'v> {
        let name = self.name(slot);
        if let Some(value) = (self.variables)(name) {
            return Ok(value);
        }
        self.first_field(name, paths)
            .unwrap_or_else(|| Err(EvalError::new(format!("no such attribute(s): {name}"))))
    }

    fn first_field(&mut self, name: &str, paths: &mut SmallVec<[&'e [Step]; 2]>) -> Option<Evaluated<'v>> {
        let path = paths.last_mut()?;
        let (Step { by: StepKey::Name(field), test, free, .. }, rest) = path.split_first()? else {
            return None;
        };
        let value = (self.fields)(name, field)?;
        *path = rest;
        let paid = if *free { Ok(()) } else { self.charge(SELECT_AND_IDENT) };
        Some(paid.and(value.map(|value| if *test { Value::Bool(true) } else { value })))
    }

    /// Follows steps from a value.
    fn follow(&mut self, base: Value<'v>, steps: impl Iterator<Item = &'e Step>) -> Evaluated<'v> {
        let (mut current, mut optional) = match base {
            Value::Optional(None) => return Ok(Value::NONE),
            // As upstream, unwraps an optional at the start of a path and drops the declaration of its value.
            Value::Optional(Some(inner)) => (inner.without_declaration()?, true),
            base => (base, false),
        };
        for step in steps {
            optional |= step.optional;
            match self.step(step, &current, optional)? {
                Some(next) => current = next,
                None => return Ok(Value::NONE),
            }
        }
        Ok(if optional { Value::some(current) } else { current })
    }

    /// Evaluates one step. Returns `None` if an optional step finds no value.
    fn step(
        &mut self,
        step: &'e Step,
        from: &Value<'v>,
        optional: bool,
    ) -> Result<Option<Value<'v>>, EvalError> {
        let (index, found) = match &step.by {
            StepKey::Name(name) => {
                self.look_up_name(name)?;
                (None, value_by_name(from, name))
            }
            StepKey::Constant(index) => (None, value_by_index(from, index)),
            StepKey::Attribute(attribute) => match self.resolve(attribute) {
                Ok(index) => {
                    self.look_up(&index)?;
                    let found = value_by_index(from, &index);
                    (Some(index), found)
                }
                Err(error) => (None, Err(error)),
            },
        };
        match &found {
            Ok(Some(value)) => self.take_decoded(value)?,
            Err(stop) if !stop.is_absorbable() => return found,
            _ => {}
        }
        if (!optional || matches!(found, Ok(Some(_)))) && !step.free {
            self.charge(SELECT_AND_IDENT)?;
        }
        match (found?, step.test) {
            (found, true) if !optional => Ok(Some(Value::Bool(found.is_some()))),
            (None, _) if !optional => Err(missing_error(from, step, index.as_ref())),
            (found, _) => Ok(found),
        }
    }
}

/// Returns the value of a field or of a string key.
fn value_by_name<'v>(from: &Value<'v>, name: &str) -> Result<Option<Value<'v>>, EvalError> {
    match from {
        Value::Map(map) => map.get_str(name),
        Value::List(_) => Err(unsupported("string")),
        _ => Ok(None),
    }
}

fn value_by_index<'v>(from: &Value<'v>, index: &Value<'v>) -> Result<Option<Value<'v>>, EvalError> {
    match (from, index) {
        (_, Value::String(name)) => value_by_name(from, name),
        _ if !index.is_index() => Err(EvalError::new(format!("invalid qualifier type: {}", index.go_type()))),
        (Value::Map(map), _) => map.get(index),
        (Value::List(list), _) => item(list, index),
        _ => Ok(None),
    }
}

/// Returns the item at an integer index of any numeric type. Declared lists accept signed integers only.
fn item<'v>(list: &List<'v>, index: &Value<'v>) -> Result<Option<Value<'v>>, EvalError> {
    let item = list_index(index)?.and_then(|position| list.get(position)).transpose()?;
    let declared = list.declared().is_some_and(|of| matches!(of.kind, DeclKind::List { .. }));
    match index {
        Value::Uint(_) | Value::Double(_) if declared && item.is_some() => {
            Err(EvalError::new(format!("unsupported index: {}", print_key(index))))
        }
        _ => Ok(item),
    }
}

/// Returns the index of a list, or `None` if it is negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "compared after the conversion"
)]
fn list_index(index: &Value<'_>) -> Result<Option<usize>, EvalError> {
    let lossy = || EvalError::new(format!("unsupported index value {} in list", print_key(index)));
    let number = match index {
        Value::Int(number) => *number,
        Value::Uint(number) => i64::try_from(*number).map_err(|_| lossy())?,
        Value::Double(number) if (*number as i64) as f64 == *number => *number as i64,
        Value::Double(_) => return Err(lossy()),
        other => return Err(unsupported(other.type_of().name())),
    };
    Ok(usize::try_from(number).ok())
}

fn unsupported(ty: &str) -> EvalError {
    EvalError::new(format!("unsupported index type '{ty}' in list"))
}

/// Returns the error of a step that finds no value.
fn missing_error(from: &Value<'_>, step: &Step, index: Option<&Value<'_>>) -> EvalError {
    let text = match (&step.by, index) {
        (StepKey::Name(name), _) => name.to_string(),
        (StepKey::Constant(index), _) | (_, Some(index)) => print_key(index),
        (StepKey::Attribute(_), None) => String::new(),
    };
    match from {
        Value::List(_) => EvalError::new(format!("index out of bounds: {text}")),
        _ => EvalError::no_such_key(&text),
    }
}
