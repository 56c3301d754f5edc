//! Estimates of calls: the range of costs over all possible overloads.

use std::sync::Arc;

use super::node::Arguments;
use super::{Coster, EntrySize};
use crate::ast::{Expr, operator};
use crate::check::Reference;
use crate::function::{CallEstimate, Overload};
use crate::size::{CostEstimate, SizeEstimate};

impl Coster<'_> {
    pub(super) fn call(
        &mut self,
        expr: &Expr,
        function: &str,
        target: Option<&Expr>,
        arguments: &[Expr],
    ) -> CostEstimate {
        if let ("dyn", [argument]) = (function, arguments) {
            let cost = self.cost(argument);
            self.copy_sizes(expr, argument);
            return cost.plus(CostEstimate::ONE);
        }
        let costs: Vec<CostEstimate> = arguments.iter().map(|argument| self.cost(argument)).collect();
        let sum = costs.iter().fold(CostEstimate::ZERO, |sum, cost| sum.plus(*cost));
        if function == operator::OPTIONAL_FIELD {
            let size = self.size(expr);
            self.set_size(expr, size);
            return sum.plus(CostEstimate::ONE);
        }
        let Reference::Overloads(indices) = self.checked.reference(expr) else { return CostEstimate::ZERO };
        let Some(declared) = self.checked.language.function(function) else { return CostEstimate::ZERO };
        let receiver = target.map_or(CostEstimate::ZERO, |target| self.cost(target));
        let mut total: Option<CostEstimate> = None;
        let mut result: Option<SizeEstimate> = None;
        for overload in indices.iter().filter_map(|index| declared.overloads.get(*index)) {
            let estimate = self.overload(expr, overload, target, arguments, &costs, sum);
            total = Some(total.map_or(estimate.cost, |so_far| so_far.union(estimate.cost)));
            result = match (result, estimate.result) {
                (Some(one), Some(two)) => Some(one.union(two)),
                (one, two) => one.or(two),
            };
            result = self.indexed(expr, &overload.id, arguments, result);
        }
        self.set_size(expr, result);
        receiver.plus(total.unwrap_or(CostEstimate::ZERO))
    }

    /// Records the path of an indexed element and returns its estimated size; for other calls, keeps the size of the result if
    /// it is known.
    fn indexed(
        &mut self,
        expr: &Expr,
        id: &str,
        arguments: &[Expr],
        result: Option<SizeEstimate>,
    ) -> Option<SizeEstimate> {
        let step = match id {
            "index_list" => "@items",
            "index_map" => "@values",
            _ => return result.or_else(|| self.size(expr)),
        };
        let Some(operand) = arguments.first() else { return result };
        let mut path = self.path(operand);
        path.push(Arc::from(step));
        self.paths[expr.id] = path;
        let size = self.entries(operand).map(|entries| entries.value);
        size.or_else(|| self.size(expr))
    }

    fn overload(
        &mut self,
        expr: &Expr,
        overload: &Overload,
        target: Option<&Expr>,
        arguments: &[Expr],
        costs: &[CostEstimate],
        sum: CostEstimate,
    ) -> CallEstimate {
        match (&*overload.id, arguments, costs) {
            ("logical_and" | "logical_or", _, [left, right]) => {
                return CallEstimate::cost(CostEstimate::new(left.min, left.plus(*right).max));
            }
            ("conditional", [_, then, other], [condition, if_true, if_false]) => {
                let size = self.size_or_unknown(then).union(self.size_or_unknown(other));
                let entries = EntrySize::union(self.entries(then), self.entries(other));
                self.set_entries(expr, entries);
                return CallEstimate::sized(condition.plus(if_true.union(*if_false)), size);
            }
            ("add_list" | "add_string" | "add_bytes", [one, two], _) => {
                let entries = EntrySize::union(self.entries(one), self.entries(two));
                self.set_entries(expr, entries);
            }
            _ => {}
        }
        let sized_arguments = Arguments::of(self, target, arguments);
        let estimate = overload.estimate.and_then(|estimate| estimate(&sized_arguments));
        let estimate = estimate.unwrap_or(CallEstimate::cost(CostEstimate::ONE));
        CallEstimate { cost: estimate.cost.plus(sum), ..estimate }
    }
}
