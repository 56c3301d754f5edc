//! Scopes of reads and watches.

use std::sync::Arc;

use portico_machinery::GroupResource;

use crate::key::Resource;
use crate::record::Record;

/// Objects that a read or watch covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Storage resource.
    pub resource: Resource,
    /// Namespace; `None` for all namespaces, and for cluster-scoped resources.
    pub namespace: Option<Arc<str>>,
    /// Condition on the objects.
    pub filter: ObjectFilter,
}

/// Condition of a watch on objects, in addition to their namespace. A watch receives a change if the object satisfies the
/// condition before or after the change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ObjectFilter {
    /// All objects.
    #[default]
    Any,
    /// The object with this name.
    Name(Arc<str>),
    /// Objects with this value of a selectable field ([`crate::Value::field`]); not empty.
    Field {
        /// Name of the field.
        name: Arc<str>,
        /// Value of the field.
        value: Arc<str>,
    },
}

impl ObjectFilter {
    /// True if a state satisfies the condition, or if this cannot be known.
    pub(crate) fn may_match(&self, record: &Record) -> bool {
        match self {
            Self::Any => true,
            Self::Name(name) => **name == *record.key.name(),
            Self::Field { name, value } => {
                record.value.is_unreadable() || record.value.field(name) == Some(value)
            }
        }
    }
}

impl Scope {
    /// Returns the scope of all objects of a resource.
    pub fn all(resource: &Resource) -> Self {
        Self { resource: resource.clone(), namespace: None, filter: ObjectFilter::Any }
    }

    /// Returns the scope of the objects of one namespace.
    pub fn namespace(resource: &Resource, namespace: &str) -> Self {
        Self { resource: resource.clone(), namespace: Some(namespace.into()), filter: ObjectFilter::Any }
    }
}

/// Condition on the resources of [`crate::Store::follow`].
pub type ResourceFilter = Arc<dyn Fn(&GroupResource) -> bool + Send + Sync>;
