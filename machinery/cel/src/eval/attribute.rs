//! Attributes: ways along fields and indices, taken as one.
//!
//! Naming a value costs a unit and each step another; what is optional and not there costs nothing, and neither does
//! choosing between two ways, or the test whether what was chosen has a field.

use smallvec::{SmallVec, smallvec};

use super::{Evaluated, Evaluator};
use crate::decl::DeclKind;
use crate::error::EvalError;
use crate::plan::{Attribute, Base, By, Step};
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
            Value::Optional(held) if test => Ok(Value::Bool(held.is_some())),
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
            Base::Local(place) => {
                let value = self.local(*place)?;
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
        let mut ways: SmallVec<[&'e [Step]; 2]> = smallvec![];
        let mut at = attribute;
        let base = loop {
            ways.push(&at.steps);
            match &at.base {
                Base::Variable(slot) => break self.variable(*slot, &mut ways),
                Base::Local(place) => break self.local(*place),
                Base::Computed(node) => break self.run(node),
                Base::Either(parts) => {
                    let (condition, then, other) = &**parts;
                    at = if bool::try_from(&self.run(condition)?)? { then } else { other };
                }
            }
        };
        self.follow(base?, ways.into_iter().rev().flatten())
    }

    /// The value of a variable; where it has none, the field that the way begins with, if somebody makes it, taken off the way.
    fn variable(&mut self, slot: usize, ways: &mut SmallVec<[&'e [Step]; 2]>) -> Evaluated<'v> {
        let name = self.name(slot);
        if let Some(value) = (self.variables)(name) {
            return Ok(value);
        }
        self.first_field(name, ways)
            .unwrap_or_else(|| Err(EvalError::new(format!("no such attribute(s): {name}"))))
    }

    fn first_field(&mut self, name: &str, ways: &mut SmallVec<[&'e [Step]; 2]>) -> Option<Evaluated<'v>> {
        let way = ways.last_mut()?;
        let (Step { by: By::Name(field), test, free, .. }, rest) = way.split_first()? else { return None };
        let made = (self.fields)(name, field)?;
        *way = rest;
        let paid = if *free { Ok(()) } else { self.charge(SELECT_AND_IDENT) };
        Some(paid.and(made.map(|made| if *test { Value::Bool(true) } else { made })))
    }

    /// Follows steps from a value.
    fn follow(&mut self, base: Value<'v>, steps: impl Iterator<Item = &'e Step>) -> Evaluated<'v> {
        let (mut at, mut optional) = match base {
            Value::Optional(None) => return Ok(Value::NONE),
            // Upstream opens an optional that a way begins with, and forgets what the schema says of what is in it.
            Value::Optional(Some(held)) => (held.erased()?, true),
            base => (base, false),
        };
        for step in steps {
            optional |= step.optional;
            match self.step(step, &at, optional)? {
                Some(next) => at = next,
                None => return Ok(Value::NONE),
            }
        }
        Ok(if optional { Value::some(at) } else { at })
    }

    /// One step; None where an optional one leads nowhere.
    fn step(
        &mut self,
        step: &'e Step,
        from: &Value<'v>,
        optional: bool,
    ) -> Result<Option<Value<'v>>, EvalError> {
        let (index, found) = match &step.by {
            By::Name(name) => {
                self.look_up_name(name)?;
                (None, named(from, name))
            }
            By::Constant(index) => (None, indexed(from, index)),
            By::Attribute(attribute) => match self.resolve(attribute) {
                Ok(index) => {
                    self.look_up(&index)?;
                    let found = indexed(from, &index);
                    (Some(index), found)
                }
                Err(error) => (None, Err(error)),
            },
        };
        match &found {
            Ok(Some(value)) => self.take_read(value)?,
            Err(stop) if !stop.is_absorbable() => return found,
            _ => {}
        }
        if (!optional || matches!(found, Ok(Some(_)))) && !step.free {
            self.charge(SELECT_AND_IDENT)?;
        }
        match (found?, step.test) {
            (found, true) if !optional => Ok(Some(Value::Bool(found.is_some()))),
            (None, _) if !optional => Err(missing(from, step, index.as_ref())),
            (found, _) => Ok(found),
        }
    }
}

/// The value of a field or of a key that is text.
fn named<'v>(from: &Value<'v>, name: &str) -> Result<Option<Value<'v>>, EvalError> {
    match from {
        Value::Map(map) => map.get_str(name),
        Value::List(_) => Err(unsupported("string")),
        _ => Ok(None),
    }
}

fn indexed<'v>(from: &Value<'v>, index: &Value<'v>) -> Result<Option<Value<'v>>, EvalError> {
    match (from, index) {
        (_, Value::String(name)) => named(from, name),
        _ if !index.is_index() => Err(EvalError::new(format!("invalid qualifier type: {}", index.go_type()))),
        (Value::Map(map), _) => map.get(index),
        (Value::List(list), _) => item(list, index),
        _ => Ok(None),
    }
}

/// An item by a whole number of any type. Declared lists take signed integers alone.
fn item<'v>(list: &List<'v>, index: &Value<'v>) -> Result<Option<Value<'v>>, EvalError> {
    let item = place(index)?.and_then(|place| list.get(place)).transpose()?;
    let declared = list.declared().is_some_and(|of| matches!(of.kind, DeclKind::List { .. }));
    match index {
        Value::Uint(_) | Value::Double(_) if declared && item.is_some() => {
            Err(EvalError::new(format!("unsupported index: {}", print_key(index))))
        }
        _ => Ok(item),
    }
}

/// An index of a list; None for negative ones.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "compared after the conversion"
)]
fn place(index: &Value<'_>) -> Result<Option<usize>, EvalError> {
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

/// The error of a step that leads nowhere.
fn missing(from: &Value<'_>, step: &Step, index: Option<&Value<'_>>) -> EvalError {
    let shown = match (&step.by, index) {
        (By::Name(name), _) => name.to_string(),
        (By::Constant(index), _) | (_, Some(index)) => print_key(index),
        (By::Attribute(_), None) => String::new(),
    };
    match from {
        Value::List(_) => EvalError::new(format!("index out of bounds: {shown}")),
        _ => EvalError::no_such_key(&shown),
    }
}
