//! Events that a subscription selects.

use std::sync::Arc;

use crate::event::Event;
use crate::key::Resource;
use crate::scope::{ResourceFilter, Scope};

/// Events that became visible together, in revision order, with all events of each revision.
pub(crate) type Batch = Arc<[Arc<Event>]>;

/// Events that a subscription selects.
#[derive(Clone)]
pub(crate) enum Selection {
    Scope(Scope),
    Filter(ResourceFilter),
}

impl Selection {
    pub(crate) fn selects_resource(&self, resource: &Resource) -> bool {
        match self {
            Self::Scope(scope) => scope.resource == *resource,
            Self::Filter(filter) => filter(resource),
        }
    }

    pub(crate) fn selects(&self, event: &Event) -> bool {
        let key = &event.record.key;
        match self {
            Self::Scope(scope) => {
                scope.resource == *key.resource()
                    && scope.namespace.as_deref().is_none_or(|namespace| namespace == key.namespace())
                    && event.states().any(|state| scope.filter.may_match(state))
            }
            Self::Filter(filter) => filter(key.resource()),
        }
    }

    /// Returns the namespace if the selection is limited to one.
    pub(crate) fn namespace(&self) -> Option<Arc<str>> {
        match self {
            Self::Scope(scope) => scope.namespace.clone(),
            Self::Filter(_) => None,
        }
    }
}
