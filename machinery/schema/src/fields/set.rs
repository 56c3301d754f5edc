//! A set of fields as a trie: each node is a step, says whether the field itself belongs to the set, and holds what
//! belongs to it below.
//!
//! All operations walk both tries side by side, as nodes are sorted.

use std::cmp::Ordering;

use super::element::PathElement;

/// How many times smaller a set must be for its nodes to be looked up one by one in the other.
const FEW: usize = 16;

/// A set of fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Sorted by element; no node is empty.
    nodes: Vec<Node>,
}

/// A step and what belongs to the set there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) element: PathElement,
    /// Whether the field itself belongs to the set.
    pub(crate) member: bool,
    /// What belongs to the set below.
    pub(crate) children: Set,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

/// What becomes of nodes that stand in one of two sets, or in both.
struct Rule {
    left: bool,
    right: bool,
    both: fn(&Node, &Node) -> Option<Node>,
}

impl Set {
    /// A set of nodes, put in order; of an element that stands there twice the later children count.
    pub(crate) fn from_nodes(mut nodes: Vec<Node>) -> Self {
        nodes.retain(|node| !node.is_empty());
        if !nodes.is_sorted_by(|a, b| a.element < b.element) {
            nodes.sort_by(|a, b| a.element.cmp(&b.element));
            nodes.dedup_by(|later, kept| {
                let same = later.element == kept.element;
                if same {
                    kept.member |= later.member;
                    kept.children = std::mem::take(&mut later.children);
                }
                same
            });
        }
        Self { nodes }
    }

    /// A set of dotted paths of fields, `metadata.name`.
    #[must_use]
    pub fn of_fields<'p>(paths: impl IntoIterator<Item = &'p str>) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<PathElement> = path.split('.').map(PathElement::field).collect();
            set.insert(&path);
        }
        set
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Whether nothing belongs to it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        self.nodes.binary_search_by(|node| node.element.cmp(element))
    }

    pub(crate) fn node(&self, element: &PathElement) -> Option<&Node> {
        self.find(element).ok().map(|at| &self.nodes[at])
    }

    /// The node of this step, made when it is not there.
    pub(super) fn node_mut(&mut self, element: PathElement) -> &mut Node {
        // Steps mostly arrive in order.
        let at = match self.nodes.last() {
            Some(last) if last.element < element => Err(self.nodes.len()),
            _ => self.find(&element),
        };
        let at = at.unwrap_or_else(|at| {
            self.nodes.insert(at, Node { element, member: false, children: Self::default() });
            at
        });
        &mut self.nodes[at]
    }

    /// Adds a field; the fields that it is in are not added. The empty path, which is the whole object, is nobody's.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let node = self.node_mut(first.clone());
        if rest.is_empty() {
            node.member = true;
        } else {
            node.children.insert(rest);
        }
    }

    /// Whether a field belongs to it.
    #[must_use]
    pub fn has(&self, path: &[&PathElement]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        let node = self.node(first);
        node.is_some_and(|node| if rest.is_empty() { node.member } else { node.children.has(rest) })
    }

    fn joined(&self, other: &Self, rule: &Rule) -> Self {
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
                Ordering::Less => nodes.extend(left.next().filter(|_| rule.left).cloned()),
                Ordering::Greater => nodes.extend(right.next().filter(|_| rule.right).cloned()),
                Ordering::Equal => {
                    let both = left.next().zip(right.next()).and_then(|(a, b)| (rule.both)(a, b));
                    nodes.extend(both.filter(|node| !node.is_empty()));
                }
            }
        }
    }

    /// What belongs to either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.joined(
            other,
            &Rule {
                left: true,
                right: true,
                both: |a, b| {
                    let (member, children) = (a.member || b.member, a.children.union(&b.children));
                    Some(Node { element: a.element.clone(), member, children })
                },
            },
        )
    }

    /// What belongs to any of many, joined in pairs: one after the other, each would copy all before it.
    #[must_use]
    pub fn union_of(mut sets: Vec<Self>) -> Self {
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

    /// What belongs to both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        // A thousand managers that own little each are compared with one large change.
        if self.nodes.len() < other.nodes.len() / FEW {
            return self.intersection_of_few(other);
        }
        self.joined(
            other,
            &Rule {
                left: false,
                right: false,
                both: |a, b| {
                    let (member, children) = (a.member && b.member, a.children.intersection(&b.children));
                    Some(Node { element: a.element.clone(), member, children })
                },
            },
        )
    }

    /// As [`Self::intersection`]: looks up each node of this set in a much larger one.
    fn intersection_of_few(&self, other: &Self) -> Self {
        let nodes = self.nodes.iter().filter_map(|a| {
            let b = other.node(&a.element)?;
            let (member, children) = (a.member && b.member, a.children.intersection(&b.children));
            Some(Node { element: a.element.clone(), member, children }).filter(|node| !node.is_empty())
        });
        Self { nodes: nodes.collect() }
    }

    /// What belongs to this and not to the other. A field in the other takes away itself, not what is below it.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.joined(
            other,
            &Rule {
                left: true,
                right: false,
                both: |a, b| {
                    let (member, children) = (a.member && !b.member, a.children.difference(&b.children));
                    Some(Node { element: a.element.clone(), member, children })
                },
            },
        )
    }

    /// As [`Self::difference`], but a field in the other takes away everything below it, too.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.joined(
            other,
            &Rule {
                left: true,
                right: false,
                both: |a, b| {
                    let children = || a.children.recursive_difference(&b.children);
                    (!b.member).then(|| Node {
                        element: a.element.clone(),
                        member: a.member,
                        children: children(),
                    })
                },
            },
        )
    }

    /// Adds what belongs to the other.
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

    /// As [`Self::difference`], in place: what costs is the smaller set and, where a node goes, one walk over this one.
    pub fn subtract(&mut self, other: &Self) {
        self.take_away(other, |node, gone| {
            node.member &= !gone.member;
            node.children.subtract(&gone.children);
        });
    }

    /// As [`Self::recursive_difference`], in place.
    pub fn subtract_below(&mut self, other: &Self) {
        self.take_away(other, |node, gone| {
            if gone.member {
                (node.member, node.children) = (false, Self::default());
            } else {
                node.children.subtract_below(&gone.children);
            }
        });
    }

    /// Changes the nodes that stand in both sets; those that are empty then go, all at once.
    fn take_away(&mut self, other: &Self, change: impl Fn(&mut Node, &Node)) {
        let mut emptied = false;
        if self.nodes.len() < other.nodes.len() / FEW {
            for node in &mut self.nodes {
                let Some(gone) = other.node(&node.element) else { continue };
                change(node, gone);
                emptied |= node.is_empty();
            }
        } else {
            for gone in &other.nodes {
                let Ok(at) = self.find(&gone.element) else { continue };
                let node = &mut self.nodes[at];
                change(node, gone);
                emptied |= node.is_empty();
            }
        }
        if emptied {
            self.nodes.retain(|node| !node.is_empty());
        }
    }

    /// Visits each field, those of a level before those below it.
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
