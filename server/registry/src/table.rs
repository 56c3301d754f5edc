//! The one table of built-in resources: what code adds to the data of each, a row per resource.
//!
//! The registry knows no kind: whoever assembles it fills the table.

use std::collections::HashMap;
use std::sync::Arc;

use crate::action::Action;
use crate::connection::Connection;
use crate::strategy::{self, Strategy};
use crate::views::ScaleSelector;

/// What stands behind a subresource, or behind a POST to a collection that keeps nothing.
#[derive(Clone)]
pub enum Handler {
    /// A POST that keeps no object of its own kind.
    Action(Arc<dyn Action>),
    /// A connection to what runs elsewhere.
    Connection(Arc<dyn Connection>),
    /// A part of the object, shown as a Scale.
    Scale(ScaleSelector),
}

/// What code adds to a resource's data.
#[derive(Clone)]
pub struct Row {
    strategy: &'static dyn Strategy,
    handlers: Vec<(&'static str, Handler)>,
}

impl Default for Row {
    /// A resource of which data says everything.
    fn default() -> Self {
        Self { strategy: strategy::plain(), handlers: Vec::new() }
    }
}

impl Row {
    /// A row with this strategy.
    #[must_use]
    pub fn new(strategy: &'static dyn Strategy) -> Self {
        Self { strategy, handlers: Vec::new() }
    }

    /// Puts an action behind a subresource, or behind the collection when the name is empty.
    #[must_use]
    pub fn action(self, subresource: &'static str, action: impl Action + 'static) -> Self {
        self.with(subresource, Handler::Action(Arc::new(action)))
    }

    /// Puts a connection behind a subresource.
    #[must_use]
    pub fn connection(self, subresource: &'static str, connection: impl Connection + 'static) -> Self {
        self.with(subresource, Handler::Connection(Arc::new(connection)))
    }

    /// Shows the object's numbers of replicas as a Scale, too.
    #[must_use]
    pub fn scale(self, selector: ScaleSelector) -> Self {
        self.with("scale", Handler::Scale(selector))
    }

    fn with(mut self, subresource: &'static str, handler: Handler) -> Self {
        self.handlers.push((subresource, handler));
        self
    }

    pub(crate) fn strategy(&self) -> &'static dyn Strategy {
        self.strategy
    }

    pub(crate) fn handler(&self, subresource: &str) -> Option<&Handler> {
        self.handlers.iter().find(|(name, _)| *name == subresource).map(|(_, handler)| handler)
    }

    pub(crate) fn action_of(&self, subresource: &str) -> Option<&Arc<dyn Action>> {
        match self.handler(subresource) {
            Some(Handler::Action(action)) => Some(action),
            _ => None,
        }
    }

    pub(crate) fn connection_of(&self, subresource: &str) -> Option<&Arc<dyn Connection>> {
        match self.handler(subresource) {
            Some(Handler::Connection(connection)) => Some(connection),
            _ => None,
        }
    }
}

/// A row per resource for which there is code.
#[derive(Clone, Default)]
pub struct ResourceTable {
    rows: HashMap<(&'static str, &'static str), Row>,
}

impl ResourceTable {
    /// Adds the row of a resource.
    pub fn add(&mut self, group: &'static str, resource: &'static str, row: Row) {
        self.rows.insert((group, resource), row);
    }

    /// Puts an action behind a resource's subresource, or behind its collection when the name is empty.
    pub fn add_action(
        &mut self,
        (group, resource, subresource): (&'static str, &'static str, &'static str),
        action: impl Action + 'static,
    ) {
        let row = self.rows.entry((group, resource)).or_default();
        row.handlers.push((subresource, Handler::Action(Arc::new(action))));
    }

    /// The row of a resource; nothing when data says everything.
    pub(crate) fn row<'a>(&'a self, group: &'a str, resource: &'a str) -> Option<&'a Row> {
        let rows: &HashMap<(&'a str, &'a str), Row> = &self.rows;
        rows.get(&(group, resource))
    }
}
