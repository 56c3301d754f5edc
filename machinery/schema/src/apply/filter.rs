//! Filter of the fields that managers can own.

use crate::fields::{Node, PathElement, Set};

/// Filter that removes fields that managers cannot own even if they send them: those that the write resets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Removes these fields and everything below them.
    Drop(Set),
    /// Keeps the fields at or below one of these paths, in which `None` matches any list element.
    Keep(Vec<Vec<Option<PathElement>>>),
}

impl Default for Filter {
    fn default() -> Self {
        Self::Drop(Set::default())
    }
}

impl Filter {
    /// Creates a filter that keeps the fields at or below these dotted paths; `*` matches any list element.
    #[must_use]
    pub fn keeping<'p>(paths: impl IntoIterator<Item = &'p str>) -> Self {
        let step = |name: &str| (name != "*").then(|| PathElement::field(name));
        Self::Keep(paths.into_iter().map(|path| path.split('.').map(step).collect()).collect())
    }

    /// Returns the fields that pass the filter.
    #[must_use]
    pub fn of(&self, mut set: Set) -> Set {
        match self {
            Self::Drop(gone) => {
                set.subtract_below(gone);
                set
            }
            Self::Keep(paths) => kept(&set, &paths.iter().map(Vec::as_slice).collect::<Vec<_>>()),
        }
    }
}

fn kept(set: &Set, paths: &[&[Option<PathElement>]]) -> Set {
    if paths.iter().any(|path| path.is_empty()) {
        return set.clone();
    }
    let nodes = set.nodes().iter().filter_map(|node| {
        let matches = |step: &Option<PathElement>| step.as_ref().is_none_or(|step| *step == node.element);
        let below: Vec<_> = paths
            .iter()
            .filter_map(|path| path.split_first().filter(|(s, _)| matches(s)))
            .map(|p| p.1)
            .collect();
        (!below.is_empty()).then(|| Node { children: kept(&node.children, &below), ..node.clone() })
    });
    Set::from_nodes(nodes.collect())
}
