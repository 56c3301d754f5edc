//! What a read or a watch is about.

use std::sync::Arc;

use portico_machinery::GroupResource;

use crate::key::Resource;
use crate::record::Record;

/// What a watch is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The storage resource.
    pub resource: Resource,
    /// Only this namespace; None: all, and cluster-scoped resources.
    pub namespace: Option<Arc<str>>,
    /// Which of these objects.
    pub only: Only,
}

/// What a watch says of the objects that it is about, besides where they are: a change reaches it when that holds of the object
/// before the change or after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Only {
    /// Nothing.
    #[default]
    Any,
    /// Their name.
    Name(Arc<str>),
    /// The value of a selectable field ([`crate::Value::field`]); not empty.
    Field {
        /// The field.
        name: Arc<str>,
        /// Its value.
        value: Arc<str>,
    },
}

impl Only {
    /// Whether it holds of a state; yes if that cannot be known.
    pub(crate) fn may_hold(&self, record: &Record) -> bool {
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
    /// All objects of a resource.
    pub fn all(resource: &Resource) -> Self {
        Self { resource: resource.clone(), namespace: None, only: Only::Any }
    }

    /// The objects of one namespace.
    pub fn namespace(resource: &Resource, namespace: &str) -> Self {
        Self { resource: resource.clone(), namespace: Some(namespace.into()), only: Only::Any }
    }
}

/// Which resources a [`crate::Store::follow`] is about.
pub type ResourceFilter = Arc<dyn Fn(&GroupResource) -> bool + Send + Sync>;
