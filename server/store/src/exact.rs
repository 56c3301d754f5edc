//! What an exact read looks at, as columns have it.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::key::split_path;
use crate::store::ListAt;

/// Which keys of a resource.
pub(crate) struct Range {
    /// With its closing '/'; None: all.
    pub(crate) namespace: Option<String>,
    /// Only what follows this namespace and name; within `namespace` the name alone counts.
    pub(crate) after: (String, String),
}

impl Range {
    /// None when nothing can be in it. `column` is how a text stands in a column.
    pub(crate) fn new(query: &ListAt, column: impl Fn(&str) -> Cow<'_, str>) -> Option<Self> {
        let (namespace, name) = split_path(query.after.as_deref().unwrap_or_default());
        let (namespace, name) = (column(namespace).into_owned(), column(name).into_owned());
        let Some(only) = query.scope.namespace.as_ref().map(|only| format!("{}/", column(only))) else {
            return Some(Self { namespace: None, after: (namespace, name) });
        };
        let after = match namespace.cmp(&only) {
            Ordering::Less => String::new(),
            Ordering::Equal => name,
            Ordering::Greater => return None,
        };
        Some(Self { after: (only.clone(), after), namespace: Some(only) })
    }
}
