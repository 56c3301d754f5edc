//! The one table of built-in resources: what code adds to the data of each, a row per resource.
//!
//! The registry knows no kind: whoever assembles it fills the table. Each part of a row is held where it is used:
//! strategies by what is served, hooks by the verbs, handlers by whoever answers calls.

use std::sync::Arc;

use portico_kinds::Kinds;

use crate::action::Action;
use crate::builtin::{KindIndexer, ResourceIndex, StrategyTable};
use crate::connection::Connection;
use crate::etcd_layout::EtcdLayout;
use crate::handlers::{Handler, HandlerTable};
use crate::hooks::{HookTable, TransactionHooks, WriteGuard, WritePermissions};
use crate::off_fields::OffField;
use crate::scale::ScaleSelector;
use crate::strategy::{
    ComputedStrategy, DecodeStrategy, DeleteStrategy, FieldStrategy, Strategies, Strategy,
    SubresourceStrategy, TableStrategy,
};

/// What code adds to a resource's data. By default nothing.
#[derive(Clone, Default)]
pub struct Row {
    strategies: Strategies,
    scale: Option<ScaleSelector>,
    hooks: Option<&'static dyn TransactionHooks>,
    guard: Option<&'static dyn WriteGuard>,
    permissions: Option<&'static dyn WritePermissions>,
    handlers: Vec<(&'static str, Handler)>,
}

impl Row {
    /// A row with this strategy for creates and updates.
    #[must_use]
    pub fn new(strategy: &'static dyn Strategy) -> Self {
        let mut row = Self::default();
        row.strategies.main = strategy;
        row
    }

    /// What the kind does with decoded bodies and between versions.
    #[must_use]
    pub fn decodes(mut self, strategy: &'static dyn DecodeStrategy) -> Self {
        self.strategies.decode = strategy;
        self
    }

    /// What the kind does when a subresource is written.
    #[must_use]
    pub fn subresources(mut self, strategy: &'static dyn SubresourceStrategy) -> Self {
        self.strategies.subresources = strategy;
        self
    }

    /// What the kind does when objects are deleted.
    #[must_use]
    pub fn deletes(mut self, strategy: &'static dyn DeleteStrategy) -> Self {
        self.strategies.delete = strategy;
        self
    }

    /// Which fields are selectable.
    #[must_use]
    pub fn fields(mut self, strategy: &'static dyn FieldStrategy) -> Self {
        self.strategies.fields = strategy;
        self
    }

    /// How the kind is shown in tables.
    #[must_use]
    pub fn shows(mut self, strategy: &'static dyn TableStrategy) -> Self {
        self.strategies.table = strategy;
        self
    }

    /// Computes the kind's objects whenever they are read.
    #[must_use]
    pub fn computed(mut self, strategy: &'static dyn ComputedStrategy) -> Self {
        self.strategies.computed = Some(strategy);
        self
    }

    /// Shows the object's numbers of replicas as a Scale, too.
    #[must_use]
    pub fn scale(self, selector: ScaleSelector) -> Self {
        Self { scale: Some(selector), ..self }
    }

    /// Lets writes of the kind involve other objects.
    #[must_use]
    pub fn hooks(self, hooks: &'static dyn TransactionHooks) -> Self {
        Self { hooks: Some(hooks), ..self }
    }

    /// Checks writers of the kind before anything is validated.
    #[must_use]
    pub fn guard(self, guard: &'static dyn WriteGuard) -> Self {
        Self { guard: Some(guard), ..self }
    }

    /// Requires further permissions of callers whose write is valid.
    #[must_use]
    pub fn permits(self, permissions: &'static dyn WritePermissions) -> Self {
        Self { permissions: Some(permissions), ..self }
    }

    /// Puts an action behind a subresource, or behind the collection when the name is empty.
    #[must_use]
    pub fn action(self, subresource: &'static str, action: impl Action + 'static) -> Self {
        self.handler(subresource, Handler::Action(Arc::new(action)))
    }

    /// Puts a connection behind a subresource.
    #[must_use]
    pub fn connection(self, subresource: &'static str, connection: impl Connection + 'static) -> Self {
        self.handler(subresource, Handler::Connection(Arc::new(connection)))
    }

    fn handler(mut self, subresource: &'static str, handler: Handler) -> Self {
        self.handlers.push((subresource, handler));
        self
    }
}

/// A row per resource for which there is code.
#[derive(Clone, Default)]
pub struct ResourceTable {
    pub(crate) strategies: StrategyTable,
    pub(crate) hooks: HookTable,
    pub(crate) handlers: HandlerTable,
}

impl ResourceTable {
    /// Adds the row of a resource.
    pub fn add(&mut self, group: &'static str, resource: &'static str, row: Row) {
        let Row { strategies, scale, hooks, guard, permissions, handlers } = row;
        self.strategies.add((group, resource), strategies, scale);
        if let Some(hooks) = hooks {
            self.hooks.add_transaction((group, resource), hooks);
        }
        if let Some(guard) = guard {
            self.hooks.add_guard((group, resource), guard);
        }
        if let Some(permissions) = permissions {
            self.hooks.add_permissions((group, resource), permissions);
        }
        for (subresource, handler) in handlers {
            self.handlers.add((group, resource, subresource), handler);
        }
    }

    /// Turns the fields of a feature off: writes do not set them, an object that has one of them keeps all. Fields are paths
    /// such as `spec.containers[].env`.
    pub fn turn_off<'a>(
        &mut self,
        group: &'static str,
        resource: &'static str,
        fields: impl IntoIterator<Item = &'a str>,
    ) {
        let feature = fields.into_iter().map(OffField::parse).collect();
        self.strategies.turn_off((group, resource), feature);
    }

    /// The indexer that a store of these kinds loads with.
    #[must_use]
    pub fn indexer(&self, kinds: &Kinds) -> KindIndexer {
        KindIndexer::new(kinds, &self.strategies)
    }

    /// How a store in etcd keeps objects, where events are kept for so long.
    ///
    /// # Errors
    /// [`portico_kinds::LoadError`] when the embedded data do not fit together.
    pub fn etcd_layout(
        &self,
        event_ttl: std::time::Duration,
    ) -> Result<EtcdLayout, portico_kinds::LoadError> {
        EtcdLayout::new(&self.strategies, event_ttl)
    }

    /// The built-in kinds as they are served, each with its row.
    #[must_use]
    pub fn resources(&self, kinds: &Kinds) -> ResourceIndex {
        ResourceIndex::new(kinds, &self.strategies)
    }

    /// Puts an action behind a resource's subresource, or behind its collection when the name is empty.
    pub fn add_action(
        &mut self,
        path: (&'static str, &'static str, &'static str),
        action: impl Action + 'static,
    ) {
        self.handlers.add(path, Handler::Action(Arc::new(action)));
    }
}
