//! Table of built-in resources: the code that supplements the data of each resource, one row per resource.
//!
//! The registry contains no code for single kinds; the caller that assembles the server fills the table. Served resources hold
//! the strategies, verbs the hooks, and the call handler the handlers.

use std::sync::Arc;

use portico_kinds::Kinds;

use crate::action::Action;
use crate::builtin::{KindIndexer, ResourceIndex, StrategyTable};
use crate::connection::Connection;
use crate::disabled_fields::DisabledField;
use crate::etcd_layout::EtcdLayout;
use crate::handlers::{Handler, HandlerTable};
use crate::hooks::{HookTable, TransactionHooks, WriteGuard, WritePermissions};
use crate::scale::ScaleSelector;
use crate::strategy::{
    ComputedStrategy, DecodeStrategy, DeleteStrategy, FieldStrategy, Strategies, Strategy,
    SubresourceStrategy, TableStrategy,
};

/// Code of a resource; empty by default.
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
    /// Row with this strategy for creates and updates.
    #[must_use]
    pub fn new(strategy: &'static dyn Strategy) -> Self {
        let mut row = Self::default();
        row.strategies.main = strategy;
        row
    }

    /// Sets the strategy of decoded bodies and versions.
    #[must_use]
    pub fn decode(mut self, strategy: &'static dyn DecodeStrategy) -> Self {
        self.strategies.decode = strategy;
        self
    }

    /// Sets the strategy of the status and other subresources.
    #[must_use]
    pub fn subresources(mut self, strategy: &'static dyn SubresourceStrategy) -> Self {
        self.strategies.subresources = strategy;
        self
    }

    /// Sets the strategy of deletes.
    #[must_use]
    pub fn delete(mut self, strategy: &'static dyn DeleteStrategy) -> Self {
        self.strategies.delete = strategy;
        self
    }

    /// Sets the strategy of selectable fields.
    #[must_use]
    pub fn fields(mut self, strategy: &'static dyn FieldStrategy) -> Self {
        self.strategies.fields = strategy;
        self
    }

    /// Sets the strategy of tables.
    #[must_use]
    pub fn table(mut self, strategy: &'static dyn TableStrategy) -> Self {
        self.strategies.table = strategy;
        self
    }

    /// Sets the strategy that computes the objects of a kind that is not stored.
    #[must_use]
    pub fn with_computed(mut self, strategy: &'static dyn ComputedStrategy) -> Self {
        self.strategies.computed = Some(strategy);
        self
    }

    /// Adds the view `scale`.
    #[must_use]
    pub fn scale(self, selector: ScaleSelector) -> Self {
        Self { scale: Some(selector), ..self }
    }

    /// Sets the transaction hooks.
    #[must_use]
    pub fn hooks(self, hooks: &'static dyn TransactionHooks) -> Self {
        Self { hooks: Some(hooks), ..self }
    }

    /// Sets the permission check before validation.
    #[must_use]
    pub fn guard(self, guard: &'static dyn WriteGuard) -> Self {
        Self { guard: Some(guard), ..self }
    }

    /// Sets the permission check after validation.
    #[must_use]
    pub fn permissions(self, permissions: &'static dyn WritePermissions) -> Self {
        Self { permissions: Some(permissions), ..self }
    }

    /// Adds an action for a subresource, or for the collection if the name is empty.
    #[must_use]
    pub fn action(self, subresource: &'static str, action: impl Action + 'static) -> Self {
        self.handler(subresource, Handler::Action(Arc::new(action)))
    }

    /// Adds a connection for a subresource.
    #[must_use]
    pub fn connection(self, subresource: &'static str, connection: impl Connection + 'static) -> Self {
        self.handler(subresource, Handler::Connection(Arc::new(connection)))
    }

    fn handler(mut self, subresource: &'static str, handler: Handler) -> Self {
        self.handlers.push((subresource, handler));
        self
    }
}

/// Rows of all resources that have code.
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

    /// Disables the fields of a feature: writes do not set them, but an object that has one of them keeps all. Fields are paths
    /// such as `spec.containers[].env`.
    pub fn turn_off<'a>(
        &mut self,
        group: &'static str,
        resource: &'static str,
        fields: impl IntoIterator<Item = &'a str>,
    ) {
        let feature = fields.into_iter().map(DisabledField::parse).collect();
        self.strategies.turn_off((group, resource), feature);
    }

    /// Indexer for a store of these kinds.
    #[must_use]
    pub fn indexer(&self, kinds: &Kinds) -> KindIndexer {
        KindIndexer::new(kinds, &self.strategies)
    }

    /// Layout of objects in etcd; `event_ttl` is the lifetime of events.
    ///
    /// # Errors
    /// [`portico_kinds::LoadError`] if the embedded data are inconsistent.
    pub fn etcd_layout(
        &self,
        event_ttl: std::time::Duration,
    ) -> Result<EtcdLayout, portico_kinds::LoadError> {
        EtcdLayout::new(&self.strategies, event_ttl)
    }

    /// Index of the built-in kinds with their rows.
    #[must_use]
    pub fn resources(&self, kinds: &Kinds) -> ResourceIndex {
        ResourceIndex::new(kinds, &self.strategies)
    }

    /// Adds an action for a resource's subresource, or for its collection if the name is empty.
    pub fn add_action(
        &mut self,
        path: (&'static str, &'static str, &'static str),
        action: impl Action + 'static,
    ) {
        self.handlers.add(path, Handler::Action(Arc::new(action)));
    }
}
