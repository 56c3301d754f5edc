//! Graph of the relations between objects and nodes. Stores only edges, no contents of objects.
//!
//! A pod, an attachment or a slice belongs to its node. A pod makes the objects that it references accessible to its node. A
//! volume is accessible to the nodes that can access its claim, and its secrets to the nodes that can access the volume. An
//! object shared by many pods has one count per node, so that a lookup costs the same for ten pods and for ten thousand.

use std::collections::HashMap;
use std::sync::Arc;

pub use super::source::Kind;
use super::source::Source;

/// Object that exists or is only referenced.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Vertex {
    kind: Kind,
    namespace: Box<str>,
    name: Box<str>,
}

impl Vertex {
    /// Returns the vertex of this kind and name; `namespace` is empty at cluster scope.
    #[must_use]
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.into(), name: name.into() }
    }
}

/// Relation that an object defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The object belongs to a node, which can access the objects that it references.
    Bound {
        /// Name of the node.
        node: Arc<str>,
        /// Referenced objects, without duplicates.
        refers: Vec<Vertex>,
    },
    /// The object and its secrets are accessible to nodes that can access its claim.
    Claimed {
        /// Claim of the volume.
        by: Vertex,
        /// Secrets of the volume, without duplicates.
        secrets: Vec<Vertex>,
    },
}

/// Outgoing edges of one object; targets are shared with edges of other objects.
#[derive(Debug)]
enum Edges {
    Bound { node: Arc<str>, refers: Vec<Arc<Vertex>> },
    Claimed { by: Vertex, secrets: Vec<Arc<Vertex>> },
}

/// Incoming edges of an object.
#[derive(Debug, Default)]
struct Reached {
    /// Nodes with the number of their pods that reference the object.
    nodes: HashMap<Arc<str>, usize>,
    /// Volumes of which the object is a secret.
    volumes: Vec<Vertex>,
}

/// Relations between objects and nodes.
#[derive(Debug, Default)]
pub struct Graph {
    edges: HashMap<Vertex, Edges>,
    reached: HashMap<Arc<Vertex>, Reached>,
}

impl Graph {
    /// Sets the relation of an object; `None` removes it.
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

    /// Replaces the relations of all objects of a source.
    pub fn replace(&mut self, source: Source, facts: impl IntoIterator<Item = (Vertex, Option<Fact>)>) {
        let kind = source.kind();
        let old: Vec<Vertex> = self.edges.keys().filter(|object| object.kind == kind).cloned().collect();
        old.iter().for_each(|object| self.withdraw(object));
        facts.into_iter().for_each(|(object, fact)| self.set(object, fact));
    }

    /// True if the node can access the object.
    #[must_use]
    pub fn relates(&self, node: &str, object: &Vertex) -> bool {
        match self.edges.get(object) {
            Some(Edges::Bound { node: own, .. }) => **own == *node,
            // A claim is never the source of an edge, so this does not recurse.
            Some(Edges::Claimed { by, .. }) => {
                self.reached.get(by).is_some_and(|r| r.nodes.contains_key(node))
            }
            None => self.reached.get(object).is_some_and(|reached| {
                reached.nodes.contains_key(node)
                    || reached.volumes.iter().any(|volume| self.relates(node, volume))
            }),
        }
    }

    /// True if the graph has no edges.
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
