//! Which objects have to do with which node: edges and nothing else of the objects.
//!
//! A pod, an attachment, a slice is its node's; what a pod refers to is reached by the pod's node; a volume is reached by
//! whoever reaches its claim, and its secrets by whoever reaches the volume. What many pods share keeps one count for each
//! node, so that a look costs the same with ten pods and with ten thousand.

use std::collections::HashMap;
use std::sync::Arc;

pub use super::source::Kind;
use super::source::Source;

/// An object, there or only referred to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Vertex {
    kind: Kind,
    namespace: Box<str>,
    name: Box<str>,
}

impl Vertex {
    /// The object of this kind and name; `namespace` is empty at cluster scope.
    #[must_use]
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.into(), name: name.into() }
    }
}

/// What an object says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// It is this node's, and so is what it refers to.
    Bound {
        /// The node's name.
        node: Arc<str>,
        /// Each once.
        refers: Vec<Vertex>,
    },
    /// It is reached by whoever reaches its claim, and its secrets with it.
    Claimed {
        /// The claim.
        by: Vertex,
        /// Each once.
        secrets: Vec<Vertex>,
    },
}

/// The edges of one object, its ends shared with those of others.
#[derive(Debug)]
enum Edges {
    Bound { node: Arc<str>, refers: Vec<Arc<Vertex>> },
    Claimed { by: Vertex, secrets: Vec<Arc<Vertex>> },
}

/// What leads to an object.
#[derive(Debug, Default)]
struct Reached {
    /// Nodes, with the number of pods there that refer to it.
    nodes: HashMap<Arc<str>, usize>,
    /// Volumes that it is a secret of.
    volumes: Vec<Vertex>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Graph {
    edges: HashMap<Vertex, Edges>,
    reached: HashMap<Arc<Vertex>, Reached>,
}

impl Graph {
    /// Takes up the edges of an object; nothing stands for one that is gone, or that has to do with no node.
    pub fn set(&mut self, object: Vertex, fact: Option<Fact>) {
        self.withdraw(&object);
        let edges = match fact {
            None => return,
            Some(Fact::Bound { node, refers }) => {
                let refers = refers.into_iter().map(|to| {
                    let (to, reached) = self.reach(to);
                    *reached.nodes.entry(Arc::clone(&node)).or_default() += 1;
                    to
                });
                Edges::Bound { refers: refers.collect(), node }
            }
            Some(Fact::Claimed { by, secrets }) => {
                let secrets = secrets.into_iter().map(|to| {
                    let (to, reached) = self.reach(to);
                    reached.volumes.push(object.clone());
                    to
                });
                Edges::Claimed { secrets: secrets.collect(), by }
            }
        };
        self.edges.insert(object, edges);
    }

    /// Takes up all objects of a source, and forgets those that are not there any more.
    pub fn replace(&mut self, source: Source, facts: impl IntoIterator<Item = (Vertex, Option<Fact>)>) {
        let kind = source.kind();
        let old: Vec<Vertex> = self.edges.keys().filter(|object| object.kind == kind).cloned().collect();
        old.iter().for_each(|object| self.withdraw(object));
        facts.into_iter().for_each(|(object, fact)| self.set(object, fact));
    }

    /// Whether the node has to do with the object.
    #[must_use]
    pub fn relates(&self, node: &str, object: &Vertex) -> bool {
        match self.edges.get(object) {
            Some(Edges::Bound { node: own, .. }) => **own == *node,
            // A claim says nothing of itself: this ends.
            Some(Edges::Claimed { by, .. }) => {
                self.reached.get(by).is_some_and(|r| r.nodes.contains_key(node))
            }
            None => self.reached.get(object).is_some_and(|reached| {
                reached.nodes.contains_key(node)
                    || reached.volumes.iter().any(|volume| self.relates(node, volume))
            }),
        }
    }

    /// Whether no edge is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty() && self.reached.is_empty()
    }

    fn reach(&mut self, to: Vertex) -> (Arc<Vertex>, &mut Reached) {
        let to = match self.reached.get_key_value(&to) {
            Some((known, _)) => Arc::clone(known),
            None => Arc::new(to),
        };
        (Arc::clone(&to), self.reached.entry(to).or_default())
    }

    fn withdraw(&mut self, object: &Vertex) {
        match self.edges.remove(object) {
            None => {}
            Some(Edges::Bound { node, refers }) => refers.iter().for_each(|to| {
                self.leave(to, |reached| {
                    if let Some(count) = reached.nodes.get_mut(&node) {
                        *count -= 1;
                        if *count == 0 {
                            reached.nodes.remove(&node);
                        }
                    }
                });
            }),
            Some(Edges::Claimed { secrets, .. }) => secrets.iter().for_each(|to| {
                self.leave(to, |reached| reached.volumes.retain(|volume| volume != object));
            }),
        }
    }

    fn leave(&mut self, to: &Arc<Vertex>, drop_edge: impl FnOnce(&mut Reached)) {
        let Some(reached) = self.reached.get_mut(to) else { return };
        drop_edge(reached);
        if reached.nodes.is_empty() && reached.volumes.is_empty() {
            self.reached.remove(to);
        }
    }
}
