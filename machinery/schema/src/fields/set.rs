//! Set of fields as a trie: each node is a path element, with a flag if the field itself is a member of the set, and with
//! the members below.
//!
//! All operations walk both tries in parallel, because nodes are sorted.

use std::cmp::Ordering;

use super::element::PathElement;

/// Ratio of the sizes of two sets from which the nodes of the smaller one are looked up in the larger one.
const LOOKUP_RATIO: usize = 16;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by element, without empty nodes.
    nodes: Vec<SetNode>,
}

/// Path element with its members of the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetNode {
    pub(crate) element: PathElement,
    /// True if the field itself is a member of the set.
    pub(crate) member: bool,
    /// Members of the set below this field.
    pub(crate) children: FieldSet,
}

impl SetNode {
    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

/// Rule of a set operation for nodes that exist in one or both of two sets.
struct SetOperation {
    keep_left: bool,
    keep_right: bool,
    combine_both: fn(&SetNode, &SetNode) -> Option<SetNode>,
}

impl FieldSet {
    /// Creates a set from nodes in any order. If an element occurs more than once, the last children win.
    pub(crate) fn from_nodes(mut nodes: Vec<SetNode>) -> Self {
        nodes.retain(|node| !node.is_empty());
        if !nodes.is_sorted_by(|a, b| a.element < b.element) {
            nodes.sort_by(|a, b| a.element.cmp(&b.element));
            nodes.dedup_by(|later, existing| {
                let same = later.element == existing.element;
                if same {
                    existing.member |= later.member;
                    existing.children = std::mem::take(&mut later.children);
                }
                same
            });
        }
        Self { nodes }
    }

    /// Creates a set from dotted field paths such as `metadata.name`.
    #[must_use]
    pub fn from_dotted_paths<'p>(paths: impl IntoIterator<Item = &'p str>) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<PathElement> = path.split('.').map(PathElement::field).collect();
            set.insert(&path);
        }
        set
    }

    pub(crate) fn nodes(&self) -> &[SetNode] {
        &self.nodes
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        self.nodes.binary_search_by(|node| node.element.cmp(element))
    }

    pub(crate) fn node(&self, element: &PathElement) -> Option<&SetNode> {
        self.find(element).ok().map(|index| &self.nodes[index])
    }

    /// Returns the node of this element, and inserts it if it does not exist.
    pub(super) fn node_mut(&mut self, element: PathElement) -> &mut SetNode {
        // Elements mostly arrive in order.
        let index = match self.nodes.last() {
            Some(last) if last.element < element => Err(self.nodes.len()),
            _ => self.find(&element),
        };
        let index = index.unwrap_or_else(|index| {
            self.nodes.insert(index, SetNode { element, member: false, children: Self::default() });
            index
        });
        &mut self.nodes[index]
    }

    /// Adds a field, without its parents. The empty path (the whole object) cannot be owned and is ignored.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let node = self.node_mut(first.clone());
        if rest.is_empty() {
            node.member = true;
        } else {
            node.children.insert(rest);
        }
    }

    /// True if the field is a member of the set.
    #[must_use]
    pub fn contains(&self, path: &[&PathElement]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        let node = self.node(first);
        node.is_some_and(|node| if rest.is_empty() { node.member } else { node.children.contains(rest) })
    }

    fn combine(&self, other: &Self, rule: &SetOperation) -> Self {
        let (mut left, mut right) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        let mut nodes = Vec::new();
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) => a.element.cmp(&b.element),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return Self { nodes },
            };
            match order {
                Ordering::Less => nodes.extend(left.next().filter(|_| rule.keep_left).cloned()),
                Ordering::Greater => nodes.extend(right.next().filter(|_| rule.keep_right).cloned()),
                Ordering::Equal => {
                    let both = left.next().zip(right.next()).and_then(|(a, b)| (rule.combine_both)(a, b));
                    nodes.extend(both.filter(|node| !node.is_empty()));
                }
            }
        }
    }

    /// Returns the members of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.combine(
            other,
            &SetOperation {
                keep_left: true,
                keep_right: true,
                combine_both: |a, b| {
                    let (member, children) = (a.member || b.member, a.children.union(&b.children));
                    Some(SetNode { element: a.element.clone(), member, children })
                },
            },
        )
    }

    /// Returns the union of many sets, merged in pairs: merging one after the other would copy all previous sets each time.
    #[must_use]
    pub fn union_all(mut sets: Vec<Self>) -> Self {
        while sets.len() > 1 {
            let mut pairs = sets.into_iter();
            let mut joined = Vec::with_capacity(pairs.len().div_ceil(2));
            while let Some(mut one) = pairs.next() {
                one.extend(pairs.next().unwrap_or_default());
                joined.push(one);
            }
            sets = joined;
        }
        sets.pop().unwrap_or_default()
    }

    /// Returns the members of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        // Applies when a thousand managers with few fields each are compared with one large change.
        if self.nodes.len() < other.nodes.len() / LOOKUP_RATIO {
            return self.intersection_of_few(other);
        }
        self.combine(
            other,
            &SetOperation {
                keep_left: false,
                keep_right: false,
                combine_both: |a, b| {
                    let (member, children) = (a.member && b.member, a.children.intersection(&b.children));
                    Some(SetNode { element: a.element.clone(), member, children })
                },
            },
        )
    }

    /// Computes the [`Self::intersection`] with a much larger set by looking up each node of this set.
    fn intersection_of_few(&self, other: &Self) -> Self {
        let nodes = self.nodes.iter().filter_map(|a| {
            let b = other.node(&a.element)?;
            let (member, children) = (a.member && b.member, a.children.intersection(&b.children));
            Some(SetNode { element: a.element.clone(), member, children }).filter(|node| !node.is_empty())
        });
        Self { nodes: nodes.collect() }
    }

    /// Returns the members of this set that are not members of the other. A member of the other set does not remove the
    /// fields below it.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combine(
            other,
            &SetOperation {
                keep_left: true,
                keep_right: false,
                combine_both: |a, b| {
                    let (member, children) = (a.member && !b.member, a.children.difference(&b.children));
                    Some(SetNode { element: a.element.clone(), member, children })
                },
            },
        )
    }

    /// Returns the [`Self::difference`], where a member of the other set also removes all fields below it.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.combine(
            other,
            &SetOperation {
                keep_left: true,
                keep_right: false,
                combine_both: |a, b| {
                    let children = || a.children.recursive_difference(&b.children);
                    (!b.member).then(|| SetNode {
                        element: a.element.clone(),
                        member: a.member,
                        children: children(),
                    })
                },
            },
        )
    }

    /// Adds the members of the other set.
    pub fn extend(&mut self, other: Self) {
        if other.nodes.is_empty() {
            return;
        }
        if self.nodes.is_empty() {
            *self = other;
            return;
        }
        let mine = std::mem::take(&mut self.nodes);
        self.nodes.reserve(mine.len().max(other.nodes.len()));
        let (mut left, mut right) = (mine.into_iter().peekable(), other.nodes.into_iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) => a.element.cmp(&b.element),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return,
            };
            match order {
                Ordering::Less => self.nodes.extend(left.next()),
                Ordering::Greater => self.nodes.extend(right.next()),
                Ordering::Equal => self.nodes.extend(left.next().zip(right.next()).map(|(mut a, b)| {
                    a.member |= b.member;
                    a.children.extend(b.children);
                    a
                })),
            }
        }
    }

    /// Computes the [`Self::difference`] in place. The cost is that of the smaller set plus, if nodes are removed, one pass over
    /// this set.
    pub fn subtract(&mut self, other: &Self) {
        self.subtract_nodes(other, |node, removed| {
            node.member &= !removed.member;
            node.children.subtract(&removed.children);
        });
    }

    /// Computes the [`Self::recursive_difference`] in place.
    pub fn subtract_recursive(&mut self, other: &Self) {
        self.subtract_nodes(other, |node, removed| {
            if removed.member {
                (node.member, node.children) = (false, Self::default());
            } else {
                node.children.subtract_recursive(&removed.children);
            }
        });
    }

    /// Changes the nodes that exist in both sets, then removes all empty nodes in one pass.
    fn subtract_nodes(&mut self, other: &Self, change: impl Fn(&mut SetNode, &SetNode)) {
        let mut emptied = false;
        if self.nodes.len() < other.nodes.len() / LOOKUP_RATIO {
            for node in &mut self.nodes {
                let Some(removed) = other.node(&node.element) else { continue };
                change(node, removed);
                emptied |= node.is_empty();
            }
        } else {
            for removed in &other.nodes {
                let Ok(index) = self.find(&removed.element) else { continue };
                let node = &mut self.nodes[index];
                change(node, removed);
                emptied |= node.is_empty();
            }
        }
        if emptied {
            self.nodes.retain(|node| !node.is_empty());
        }
    }

    /// Visits each field, the fields of a level before the fields below it.
    pub fn visit<'s>(&'s self, visit: &mut impl FnMut(&[&'s PathElement])) {
        self.visit_below(&mut Vec::new(), visit);
    }

    fn visit_below<'s>(
        &'s self,
        path: &mut Vec<&'s PathElement>,
        visit: &mut impl FnMut(&[&'s PathElement]),
    ) {
        for node in self.nodes.iter().filter(|node| node.member) {
            path.push(&node.element);
            visit(path);
            path.pop();
        }
        for node in &self.nodes {
            path.push(&node.element);
            node.children.visit_below(path, visit);
            path.pop();
        }
    }
}
