//! Estimates of comprehensions: the cost of one iteration times the length of the range.

use std::sync::Arc;

use super::scopes::Local;
use super::{Coster, Path};
use crate::ast::{Comprehension, Expr, ExprKind};
use crate::size::{CostEstimate, SizeEstimate};
use crate::types::Type;

impl Coster<'_> {
    pub(super) fn fold(&mut self, expr: &Expr, fold: &Comprehension) -> CostEstimate {
        let before = self.cost(&fold.range).plus(self.cost(&fold.start));
        self.push_binding(&fold.accumulator, &fold.start);
        self.push_iteration_variables(fold);
        let iteration_cost = self.cost(&fold.condition);
        let iteration_cost = self.cost(&fold.step).plus(iteration_cost);
        self.scopes.pop();
        if fold.second.is_some() {
            self.scopes.pop();
        }
        let result = self.cost(&fold.result);
        self.scopes.pop();
        let count = self.size_or_unknown(&fold.range);
        self.fold_size(expr, fold, count);
        before.plus(result).plus(count.times_cost(iteration_cost))
    }

    fn fold_size(&mut self, expr: &Expr, fold: &Comprehension, count: SizeEstimate) {
        match &fold.start.kind {
            ExprKind::Literal(_) => {
                let size = self.size(&fold.start);
                self.set_size(expr, size);
            }
            ExprKind::List(_) | ExprKind::Map(_) => {
                self.set_size(expr, Some(count));
                let entries = self.entries(&fold.step);
                self.set_entries(expr, entries);
            }
            _ => {}
        }
    }

    /// Estimates a binding such as that of `optMap`: a name for a value that is evaluated once.
    pub(super) fn binding(&mut self, expr: &Expr, fold: &Comprehension) -> CostEstimate {
        let before = self.cost(&fold.range).plus(self.cost(&fold.start));
        self.push_binding(&fold.accumulator, &fold.start);
        let result = self.cost(&fold.result);
        self.scopes.pop();
        self.copy_sizes(expr, &fold.result);
        before.plus(result)
    }

    fn push_binding(&mut self, name: &Arc<str>, value: &Expr) {
        let (path, entries) = (self.path(value), self.entries(value));
        let size = self.size(value);
        self.scopes.push(Local { name: name.clone(), path, size, entries });
    }

    /// Adds the variables of a comprehension, with the paths of their values.
    fn push_iteration_variables(&mut self, fold: &Comprehension) {
        let entries = self.entries(&fold.range);
        let list = match entries {
            Some(entries) => entries.list,
            None => matches!(self.checked.type_of(&fold.range), Type::List(_)),
        };
        let path = self.path(&fold.range);
        let local = |name: &Arc<str>, step: &str, size| Local {
            name: name.clone(),
            path: extend(&path, step),
            size,
            entries: None,
        };
        let (key, value) = (entries.map(|entries| entries.key), entries.map(|entries| entries.value));
        match &fold.second {
            Some(second) => {
                let values = if list { "@items" } else { "@values" };
                let keys = match is_overwritten(&path) {
                    true => values,
                    false if list => "@indices",
                    false => "@keys",
                };
                let first = local(&fold.variable, keys, key);
                let second = local(second, values, value);
                self.scopes.push(first);
                self.scopes.push(second);
            }
            None if list => {
                let first = local(&fold.variable, "@items", value);
                self.scopes.push(first);
            }
            None => {
                let first = local(&fold.variable, "@keys", key);
                self.scopes.push(first);
            }
        }
    }
}

/// True if the path of the keys becomes the path of the values. Upstream extends one slice two times, and the second extension
/// overwrites the first if the slice has spare capacity (its capacity is the next power of two). Estimates are part of the API.
fn is_overwritten(path: &Path) -> bool {
    !path.is_empty() && !path.len().is_power_of_two()
}

fn extend(path: &Path, step: &str) -> Path {
    path.iter().cloned().chain([Arc::from(step)]).collect()
}
