//! Attributes: paths that combine names, selections, indices and choices.

use std::sync::Arc;

use super::{Attribute, Base, Node, Step, StepKey};
use crate::value::Value;

impl Attribute {
    pub(super) fn variable(slot: usize) -> Self {
        Self { base: Base::Variable(slot), steps: Vec::new() }
    }

    pub(super) fn local(slot: usize) -> Self {
        Self { base: Base::Local(slot), steps: Vec::new() }
    }

    /// Creates a choice of two paths: `condition ? a : b`.
    pub(super) fn either([condition, then, other]: [Node; 3]) -> Self {
        let branches = (condition, Self::of(then), Self::of(other));
        Self { base: Base::Either(Box::new(branches)), steps: Vec::new() }
    }

    /// Returns the path of a node, or a path that starts at its computed value. Inside another path, its test is not free.
    pub(super) fn of(node: Node) -> Self {
        match node {
            Node::Attribute(mut attribute) => {
                if let Some(last) = attribute.steps.last_mut() {
                    last.free = false;
                }
                *attribute
            }
            computed => Self { base: Base::Computed(computed), steps: Vec::new() },
        }
    }

    /// Adds a step by field.
    pub(super) fn with_field(self, field: Arc<str>, optional: bool, test: bool) -> Self {
        let free = test && self.is_choice();
        self.with_step(Step { by: StepKey::Name(field), optional, test, free })
    }

    /// Adds a step by index.
    ///
    /// # Errors
    /// The constant cannot be an index.
    pub(super) fn with_index(self, index: Node, optional: bool) -> Result<Self, String> {
        let by = match index {
            Node::Constant(Value::String(name)) => StepKey::Name(Arc::from(&*name)),
            Node::Constant(value) if value.is_index() => StepKey::Constant(value),
            Node::Constant(value) => return Err(format!("invalid qualifier type: {}", value.go_type())),
            other => StepKey::Attribute(Self::of(other)),
        };
        Ok(self.with_step(Step { by, optional, test: false, free: false }))
    }

    fn with_step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// True if the path starts at a choice.
    pub(crate) fn is_choice(&self) -> bool {
        matches!(self.base, Base::Either(_))
    }

    /// True if the path ends in a presence test: `has(a.b)`.
    pub(crate) fn is_test(&self) -> bool {
        self.steps.last().is_some_and(|step| step.test)
    }

    /// Returns the index of the local variable if the path has no steps.
    pub(super) fn as_local(&self) -> Option<usize> {
        match self.base {
            Base::Local(slot) if self.steps.is_empty() => Some(slot),
            _ => None,
        }
    }
}

impl From<Attribute> for Node {
    fn from(attribute: Attribute) -> Self {
        Self::Attribute(Box::new(attribute))
    }
}
