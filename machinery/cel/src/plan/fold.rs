//! Comprehensions: their variables become indices into the locals in scope.

use super::build::Planner;
use super::{Fold, Node};
use crate::ast::Comprehension;

impl Planner<'_> {
    pub(super) fn fold(&mut self, fold: &Comprehension) -> Result<Node, String> {
        let range = self.node(&fold.range)?;
        let start = self.node(&fold.start)?;
        let base = self.locals.len();
        self.locals.push(fold.accumulator.clone());
        self.locals.push(fold.variable.clone());
        self.locals.extend(fold.second.clone());
        let condition = self.node(&fold.condition)?;
        let step = self.node(&fold.step)?;
        // The result can access only the accumulator.
        self.locals.truncate(base + 1);
        let result = self.node(&fold.result)?;
        self.locals.truncate(base);
        let (two, binds) = (fold.second.is_some(), fold.is_binding());
        Ok(Node::Fold(Box::new(Fold { base, range, two, start, condition, step, result, binds })))
    }
}
