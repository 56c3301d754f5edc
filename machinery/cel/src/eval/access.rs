//! Fields and indices.

use std::sync::Arc;

use super::{Evaluated, Evaluator};
use crate::plan::{Ask, Index, Select};
use crate::value::print_key;
use crate::{EvalError, Value};

impl<'v> Evaluator<'_, 'v> {
    pub(super) fn select(&mut self, select: &Select) -> Evaluated<'v> {
        let operand = self.run(&select.operand)?;
        let (operand, optional) = match operand {
            Value::Optional(held) => match held {
                Some(held) => ((*held).clone(), true),
                None => return Ok(absent(select.ask)),
            },
            operand => (operand, false),
        };
        let found = match &operand {
            Value::Map(map) => map.get_str(&select.field)?,
            Value::List(_) if select.ask != Ask::Presence => {
                return Err(EvalError::new("unsupported index type 'string' in list"));
            }
            _ => None,
        };
        // What is optional and absent is not looked at.
        let looked = found.is_some() || !(optional || select.ask == Ask::Optional);
        self.charge(if looked { select.cost } else { select.cost.saturating_sub(1) })?;
        match (select.ask, found) {
            (Ask::Presence, found) => Ok(Value::Bool(found.is_some())),
            (Ask::Value, Some(value)) if !optional => Ok(value),
            (Ask::Value, None) if !optional => Err(EvalError::no_such_key(&select.field)),
            (_, found) => Ok(Value::Optional(found.map(Arc::new))),
        }
    }

    pub(super) fn index(&mut self, node: &Index) -> Evaluated<'v> {
        let operand = self.run(&node.operand)?;
        let index = self.run(&node.index)?;
        let (operand, optional) = match operand {
            Value::Optional(None) => return Ok(Value::NONE),
            Value::Optional(Some(held)) => ((*held).clone(), true),
            operand => (operand, node.optional),
        };
        let found = match &operand {
            Value::Map(map) => map.get(&index)?,
            Value::List(list) => match place(&index)? {
                Some(place) => list.get(place).transpose()?,
                None => None,
            },
            _ => None,
        };
        self.charge(if found.is_some() || !optional { node.cost } else { node.cost.saturating_sub(1) })?;
        match found {
            Some(value) if optional => Ok(Value::some(value)),
            Some(value) => Ok(value),
            None if optional => Ok(Value::NONE),
            None if matches!(operand, Value::List(_)) => {
                Err(EvalError::new(format!("index out of bounds: {}", print_key(&index))))
            }
            None => Err(EvalError::no_such_key(&print_key(&index))),
        }
    }
}

fn absent<'v>(ask: Ask) -> Value<'v> {
    if ask == Ask::Presence { Value::Bool(false) } else { Value::NONE }
}

/// An index of a list: whole numbers of any type; None for negative ones.
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
        other => {
            return Err(EvalError::new(format!(
                "unsupported index type '{}' in list",
                other.type_of().name()
            )));
        }
    };
    Ok(usize::try_from(number).ok())
}
