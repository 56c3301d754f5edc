//! Fields that a write resets. The manager that sends such a field does not become its owner.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use portico_schema::apply::FieldFilter;
use portico_schema::fields::FieldSet;

/// Name of the object itself among subresources in data files.
const MAIN: &str = "main";

/// Filters for the fields that a write can make its manager own, by subresource (upstream's reset fields). Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnershipFilters {
    by_subresource: Arc<BTreeMap<String, FieldFilter>>,
}

impl OwnershipFilters {
    /// Creates the filters of a kind from `resets` and `keeps` by subresource. Without these, the filters follow from the fields
    /// that the `status` subresource owns.
    pub(crate) fn new<'d>(
        resets: impl IntoIterator<Item = (&'d String, &'d Vec<String>)>,
        keeps: impl IntoIterator<Item = (&'d String, &'d Vec<String>)>,
        status_owns: Option<&[String]>,
    ) -> Self {
        let mut by_subresource = BTreeMap::new();
        if let Some(owned) = status_owns {
            by_subresource.insert(String::new(), drop_filter(owned));
            by_subresource.insert("status".to_owned(), drop_filter(&["spec".to_owned()]));
        }
        let name = |name: &String| if name == MAIN { String::new() } else { name.clone() };
        for (subresource, fields) in resets {
            by_subresource.insert(name(subresource), drop_filter(fields));
        }
        for (subresource, fields) in keeps {
            let keeping = FieldFilter::from_kept_paths(fields.iter().map(String::as_str));
            by_subresource.insert(name(subresource), keeping);
        }
        Self { by_subresource: Arc::new(by_subresource) }
    }

    /// Creates filters for a kind. Writes of each subresource (empty: the object itself) reset the listed top-level fields.
    #[must_use]
    pub fn with_reset_fields<'d>(resets: impl IntoIterator<Item = (&'d str, &'d [&'d str])>) -> Self {
        let drop = |(name, fields): (&str, &[&str])| {
            (name.to_owned(), FieldFilter::Drop(FieldSet::from_dotted_paths(fields.iter().copied())))
        };
        Self { by_subresource: Arc::new(resets.into_iter().map(drop).collect()) }
    }

    /// Returns the filter for a write of a subresource, or of the object itself (empty).
    #[must_use]
    pub fn filter(&self, subresource: &str) -> &FieldFilter {
        static ALL: LazyLock<FieldFilter> = LazyLock::new(FieldFilter::default);
        self.by_subresource.get(subresource).unwrap_or(&ALL)
    }
}

fn drop_filter(fields: &[String]) -> FieldFilter {
    FieldFilter::Drop(FieldSet::from_dotted_paths(fields.iter().map(String::as_str)))
}
