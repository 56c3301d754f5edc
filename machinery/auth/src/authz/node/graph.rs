//! Graph of the relations between objects and nodes. Stores only edges, no contents of objects.
//!
//! A pod, an attachment or a slice belongs to its node. A pod makes the objects that it references accessible to its node. A
//! volume is accessible to the nodes that can access its claim, and its secrets to the nodes that can access the volume. An
//! object shared by many pods has one count per node, so that a lookup costs the same for ten pods and for ten thousand.

use std::collections::HashMap;
use std::sync::Arc;

use super::source::EdgeSource;
pub use super::source::VertexKind;

/// Object that exists or is only referenced.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Vertex {
    kind: VertexKind,
    namespace: Box<str>,
    name: Box<str>,
}

impl Vertex {
    /// Returns the vertex of this kind and name; `namespace` is empty at cluster scope.
    #[must_use]
    pub fn new(kind: VertexKind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.into(), name: name.into() }
    }
}

/// Relation that an object defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeFact {
    /// The object belongs to a node, which can access the objects that it references.
    Bound {
        /// Name of the node.
        node: Arc<str>,
        /// Referenced objects, without duplicates.
        references: Vec<Vertex>,
    },
    /// The object and its secrets are accessible to nodes that can access its claim.
    Claimed {
        /// Claim of the volume.
        claim: Vertex,
        /// Secrets of the volume, without duplicates.
        secrets: Vec<Vertex>,
    },
}

/// Outgoing edges of one object; targets are shared with edges of other objects.
#[derive(Debug)]
enum Edges {
    Bound { node: Arc<str>, references: Vec<Arc<Vertex>> },
    Claimed { claim: Vertex, secrets: Vec<Arc<Vertex>> },
}

/// Incoming edges of an object.
#[derive(Debug, Default)]
struct IncomingEdges {
    /// Nodes with the number of their pods that reference the object.
    nodes: HashMap<Arc<str>, usize>,
    /// Volumes of which the object is a secret.
    volumes: Vec<Vertex>,
}

/// Relations between objects and nodes.
#[derive(Debug, Default)]
pub struct Graph {
    edges: HashMap<Vertex, Edges>,
    incoming: HashMap<Arc<Vertex>, IncomingEdges>,
}

impl Graph {
    /// Sets the relation of an object; `None` removes it.
    pub fn set(&mut self, object: Vertex, fact: Option<NodeFact>) {
        self.remove_edges(&object);
        let edges = match fact {
            None => return,
            Some(NodeFact::Bound { node, references }) => {
                let targets = references.into_iter().map(|target| {
                    let (target, incoming) = self.incoming_entry(target);
                    *incoming.nodes.entry(Arc::clone(&node)).or_default() += 1;
                    target
                });
                Edges::Bound { references: targets.collect(), node }
            }
            Some(NodeFact::Claimed { claim, secrets }) => {
                let secrets = secrets.into_iter().map(|target| {
                    let (target, incoming) = self.incoming_entry(target);
                    incoming.volumes.push(object.clone());
                    target
                });
                Edges::Claimed { secrets: secrets.collect(), claim }
            }
        };
        self.edges.insert(object, edges);
    }

    /// Replaces the relations of all objects of a source.
    pub fn replace(
        &mut self,
        source: EdgeSource,
        facts: impl IntoIterator<Item = (Vertex, Option<NodeFact>)>,
    ) {
        let kind = source.kind();
        let old: Vec<Vertex> = self.edges.keys().filter(|object| object.kind == kind).cloned().collect();
        old.iter().for_each(|object| self.remove_edges(object));
        facts.into_iter().for_each(|(object, fact)| self.set(object, fact));
    }

    /// True if the node can access the object.
    #[must_use]
    pub fn is_related(&self, node: &str, object: &Vertex) -> bool {
        match self.edges.get(object) {
            Some(Edges::Bound { node: bound_node, .. }) => **bound_node == *node,
            // A claim is never the source of an edge, so this does not recurse.
            Some(Edges::Claimed { claim, .. }) => {
                self.incoming.get(claim).is_some_and(|r| r.nodes.contains_key(node))
            }
            None => self.incoming.get(object).is_some_and(|incoming| {
                incoming.nodes.contains_key(node)
                    || incoming.volumes.iter().any(|volume| self.is_related(node, volume))
            }),
        }
    }

    /// True if the graph has no edges.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty() && self.incoming.is_empty()
    }

    fn incoming_entry(&mut self, target: Vertex) -> (Arc<Vertex>, &mut IncomingEdges) {
        let target = match self.incoming.get_key_value(&target) {
            Some((existing, _)) => Arc::clone(existing),
            None => Arc::new(target),
        };
        (Arc::clone(&target), self.incoming.entry(target).or_default())
    }

    fn remove_edges(&mut self, object: &Vertex) {
        match self.edges.remove(object) {
            None => {}
            Some(Edges::Bound { node, references }) => references.iter().for_each(|target| {
                self.remove_incoming(target, |incoming| {
                    if let Some(count) = incoming.nodes.get_mut(&node) {
                        *count -= 1;
                        if *count == 0 {
                            incoming.nodes.remove(&node);
                        }
                    }
                });
            }),
            Some(Edges::Claimed { secrets, .. }) => secrets.iter().for_each(|target| {
                self.remove_incoming(target, |incoming| incoming.volumes.retain(|volume| volume != object));
            }),
        }
    }

    fn remove_incoming(&mut self, target: &Arc<Vertex>, drop_edge: impl FnOnce(&mut IncomingEdges)) {
        let Some(incoming) = self.incoming.get_mut(target) else { return };
        drop_edge(incoming);
        if incoming.nodes.is_empty() && incoming.volumes.is_empty() {
            self.incoming.remove(target);
        }
    }
}
