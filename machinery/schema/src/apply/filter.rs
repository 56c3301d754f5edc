//! Which fields managers may own at all.

use crate::fields::{Node, PathElement, Set};

/// Fields that managers do not own, whatever they send: those that the write resets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All but these and what is below them.
    Drop(Set),
    /// Only what is at or below one of these paths, in which `None` is any element of a list.
    Keep(Vec<Vec<Option<PathElement>>>),
}

impl Default for Filter {
    fn default() -> Self {
        Self::Drop(Set::default())
    }
}

impl Filter {
    /// Keeps what is at or below these dotted paths, `*` for any element of a list.
    #[must_use]
    pub fn keeping<'p>(paths: impl IntoIterator<Item = &'p str>) -> Self {
        let step = |name: &str| (name != "*").then(|| PathElement::field(name));
        Self::Keep(paths.into_iter().map(|path| path.split('.').map(step).collect()).collect())
    }

    /// What passes.
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
