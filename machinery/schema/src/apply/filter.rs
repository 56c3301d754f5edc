//! Filter of the fields that managers can own.

use crate::fields::{FieldSet, PathElement, SetNode};

/// Filter that removes fields that managers cannot own even if they send them: those that the write resets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldFilter {
    /// Removes these fields and everything below them.
    Drop(FieldSet),
    /// Keeps the fields at or below one of these paths, in which `None` matches any list element.
    Keep(Vec<Vec<Option<PathElement>>>),
}

impl Default for FieldFilter {
    fn default() -> Self {
        Self::Drop(FieldSet::default())
    }
}

impl FieldFilter {
    /// Creates a filter that keeps the fields at or below these dotted paths; `*` matches any list element.
    #[must_use]
    pub fn from_kept_paths<'p>(paths: impl IntoIterator<Item = &'p str>) -> Self {
        let step = |name: &str| (name != "*").then(|| PathElement::field(name));
        Self::Keep(paths.into_iter().map(|path| path.split('.').map(step).collect()).collect())
    }

    /// Returns the fields that pass the filter.
    #[must_use]
    pub fn apply(&self, mut set: FieldSet) -> FieldSet {
        match self {
            Self::Drop(dropped) => {
                set.subtract_recursive(dropped);
                set
            }
            Self::Keep(paths) => keep_paths(&set, &paths.iter().map(Vec::as_slice).collect::<Vec<_>>()),
        }
    }
}

fn keep_paths(set: &FieldSet, paths: &[&[Option<PathElement>]]) -> FieldSet {
    if paths.iter().any(|path| path.is_empty()) {
        return set.clone();
    }
    let nodes = set.nodes().iter().filter_map(|node| {
        let matches = |step: &Option<PathElement>| step.as_ref().is_none_or(|step| *step == node.element);
        let child_paths: Vec<_> = paths
            .iter()
            .filter_map(|path| path.split_first().filter(|(s, _)| matches(s)))
            .map(|p| p.1)
            .collect();
        (!child_paths.is_empty())
            .then(|| SetNode { children: keep_paths(&node.children, &child_paths), ..node.clone() })
    });
    FieldSet::from_nodes(nodes.collect())
}
