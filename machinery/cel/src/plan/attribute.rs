//! Attributes: from names, selections, indices and choices to ways that are taken as one.

use std::sync::Arc;

use super::{Attribute, Base, By, Node, Step};
use crate::value::Value;

impl Attribute {
    pub(super) fn variable(slot: usize) -> Self {
        Self { base: Base::Variable(slot), steps: Vec::new() }
    }

    pub(super) fn local(place: usize) -> Self {
        Self { base: Base::Local(place), steps: Vec::new() }
    }

    /// One of two ways: `condition ? a : b`.
    pub(super) fn either([condition, then, other]: [Node; 3]) -> Self {
        let ways = (condition, Self::of(then), Self::of(other));
        Self { base: Base::Either(Box::new(ways)), steps: Vec::new() }
    }

    /// The way that a node is, or that begins at what it computes. As a part of another way it has no free test.
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

    /// One step further, along a field.
    pub(super) fn named(self, field: Arc<str>, optional: bool, test: bool) -> Self {
        let free = test && self.is_choice();
        self.then(Step { by: By::Name(field), optional, test, free })
    }

    /// One step further, along an index.
    ///
    /// # Errors
    /// A constant that is no index.
    pub(super) fn indexed(self, index: Node, optional: bool) -> Result<Self, String> {
        let by = match index {
            Node::Constant(Value::String(name)) => By::Name(Arc::from(&*name)),
            Node::Constant(value) if value.is_index() => By::Constant(value),
            Node::Constant(value) => return Err(format!("invalid qualifier type: {}", value.go_type())),
            other => By::Attribute(Self::of(other)),
        };
        Ok(self.then(Step { by, optional, test: false, free: false }))
    }

    fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// True if it begins at one of two ways.
    pub(crate) fn is_choice(&self) -> bool {
        matches!(self.base, Base::Either(_))
    }

    /// True if it ends in a test of presence: `has(a.b)`.
    pub(crate) fn is_test(&self) -> bool {
        self.steps.last().is_some_and(|step| step.test)
    }

    /// The place of the local variable that is all that it names.
    pub(super) fn as_local(&self) -> Option<usize> {
        match self.base {
            Base::Local(place) if self.steps.is_empty() => Some(place),
            _ => None,
        }
    }
}

impl From<Attribute> for Node {
    fn from(attribute: Attribute) -> Self {
        Self::Attribute(Box::new(attribute))
    }
}
