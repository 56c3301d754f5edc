//! Which fields a write resets, so that whoever sends them does not own them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use portico_schema::apply::Filter;
use portico_schema::fields::Set;

/// The word that stands for the object itself among subresources.
const MAIN: &str = "main";

/// What managers may own, by what they write. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ownership {
    by_subresource: Arc<BTreeMap<String, Filter>>,
}

impl Ownership {
    /// Of a kind: `resets` and `keeps` by subresource, and for what they leave out what the status subresource implies.
    pub(crate) fn new<'d>(
        resets: impl IntoIterator<Item = (&'d String, &'d Vec<String>)>,
        keeps: impl IntoIterator<Item = (&'d String, &'d Vec<String>)>,
        status_owns: Option<&[String]>,
    ) -> Self {
        let mut by_subresource = BTreeMap::new();
        if let Some(owned) = status_owns {
            by_subresource.insert(String::new(), dropping(owned));
            by_subresource.insert("status".to_owned(), dropping(&["spec".to_owned()]));
        }
        let name = |name: &String| if name == MAIN { String::new() } else { name.clone() };
        for (subresource, fields) in resets {
            by_subresource.insert(name(subresource), dropping(fields));
        }
        for (subresource, fields) in keeps {
            let keeping = Filter::keeping(fields.iter().map(String::as_str));
            by_subresource.insert(name(subresource), keeping);
        }
        Self { by_subresource: Arc::new(by_subresource) }
    }

    /// Of a kind of which writes of these subresources (empty: the object itself) reset these top-level fields.
    #[must_use]
    pub fn dropping<'d>(resets: impl IntoIterator<Item = (&'d str, &'d [&'d str])>) -> Self {
        let drop = |(name, fields): (&str, &[&str])| {
            (name.to_owned(), Filter::Drop(Set::of_fields(fields.iter().copied())))
        };
        Self { by_subresource: Arc::new(resets.into_iter().map(drop).collect()) }
    }

    /// What a write of the object (empty) or of a subresource may make its manager own.
    #[must_use]
    pub fn filter(&self, subresource: &str) -> &Filter {
        static ALL: LazyLock<Filter> = LazyLock::new(Filter::default);
        self.by_subresource.get(subresource).unwrap_or(&ALL)
    }
}

fn dropping(fields: &[String]) -> Filter {
    Filter::Drop(Set::of_fields(fields.iter().map(String::as_str)))
}
