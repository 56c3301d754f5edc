//! Calls: selection of the overload, its result and its cost.

use smallvec::SmallVec;

use super::{Evaluated, Evaluator};
use crate::error::EvalError;
use crate::function::Call;
use crate::library::uncounted_cost;
use crate::plan::{CallNode, IN_ERROR};
use crate::value::Value;

impl<'e, 'v> Evaluator<'e, 'v> {
    pub(super) fn call(&mut self, node: &'e CallNode) -> Evaluated<'v> {
        let mut arguments: SmallVec<[Value<'v>; 3]> = SmallVec::new();
        let (last, mut error) = (node.arguments.len().saturating_sub(1), None);
        for (index, argument) in node.arguments.iter().enumerate() {
            match self.run(argument) {
                Ok(value) => arguments.push(value),
                // If the remaining arguments are not evaluated, the call is free.
                Err(failure) if failure.is_absorbable() && (!node.stops_at_error || index == last) => {
                    arguments.push(IN_ERROR);
                    error = error.or(Some(failure));
                }
                Err(failure) => return Err(failure),
            }
        }
        if let Some(error) = error {
            self.charge_call(node.is_external(), node.cost(&arguments))?;
            return Err(error);
        }
        let overload = match node.overload_for(&arguments) {
            Ok(overload) => overload,
            Err(error) => {
                self.charge_call(node.is_external(), node.cost(&arguments))?;
                return Err(error);
            }
        };
        self.check_interrupted()?;
        self.take(|steps| steps.take_text(arguments.iter().map(Value::bytes).sum()))?;
        let budget = self.limit.saturating_sub(self.cost).min(self.meter.remaining());
        let call = Call::new(&arguments, budget).with_steps(&self.meter.steps);
        #[cfg(feature = "regex")]
        let call = call.with_pattern(node.regex.as_ref());
        let result = overload.run.call(&call);
        if matches!(result, Err(EvalError::Budget)) && self.meter.remaining() <= budget {
            // The call would have used up the meter.
            self.meter.set_remaining(0);
        }
        let cost = node.cost_fn().map_or(1, |cost| cost(&arguments, result.as_ref().unwrap_or(&IN_ERROR)));
        self.take(|_| Ok(()))?;
        self.charge_call(overload.external, cost)?;
        if result.is_err() {
            self.charge(texts(&arguments))?;
        }
        result
    }

    /// Charges a call. External calls are not charged to the meter.
    fn charge_call(&mut self, asks: bool, cost: u64) -> Result<(), EvalError> {
        if asks { self.charge_external(cost) } else { self.charge(cost) }
    }
}

/// Cost of reading long texts: a call that fails may have read them, and its cost depends on a result that it does not have.
fn texts(arguments: &[Value<'_>]) -> u64 {
    let texts = arguments.iter().filter(|argument| matches!(argument, Value::String(_) | Value::Bytes(_)));
    texts.map(|text| uncounted_cost(text.cost_size())).fold(0, u64::saturating_add)
}
