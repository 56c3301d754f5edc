//! Interner of nodes: equal schemas share one node.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::model::{Additional, Bound, Checks, Rule, SchemaNode};
use super::pattern::Pattern;

/// Interned nodes, checks and texts.
#[derive(Default)]
pub(super) struct Interner {
    nodes: HashMap<u64, Vec<Arc<SchemaNode>>>,
    checks: HashMap<u64, Vec<Arc<Checks>>>,
    texts: HashMap<Box<str>, Arc<str>>,
    patterns: HashMap<Box<str>, Arc<Pattern>>,
    count: usize,
}

impl Interner {
    /// Interns a node, whose children must have been interned here.
    pub(super) fn node(&mut self, node: SchemaNode) -> Arc<SchemaNode> {
        let bucket = self.nodes.entry(hash_of_node(&node)).or_default();
        if let Some(same) = bucket.iter().find(|shared| ***shared == node) {
            return same.clone();
        }
        self.count += 1;
        bucket.push(Arc::new(node));
        bucket[bucket.len() - 1].clone()
    }

    /// Interns a set of checks. Returns `None` if the set is empty.
    pub(super) fn checks(&mut self, checks: Checks) -> Option<Arc<Checks>> {
        if checks == Checks::default() {
            return None;
        }
        let bucket = self.checks.entry(hash_of_checks(&checks)).or_default();
        if let Some(same) = bucket.iter().find(|shared| ***shared == checks) {
            return Some(same.clone());
        }
        let shared = Arc::new(checks);
        bucket.push(shared.clone());
        Some(shared)
    }

    pub(super) fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.texts.get(text) {
            return shared.clone();
        }
        let shared: Arc<str> = text.into();
        self.texts.insert(text.into(), shared.clone());
        shared
    }

    pub(super) fn pattern(&mut self, text: &str) -> Arc<Pattern> {
        self.patterns.entry(text.into()).or_insert_with(|| Arc::new(Pattern::new(text))).clone()
    }

    /// Returns the number of distinct nodes.
    pub(super) fn count(&self) -> usize {
        self.count
    }
}

/// Hashes a node. Children are hashed by address, because equal children are the same node.
fn hash_of_node(node: &SchemaNode) -> u64 {
    let mut hasher = DefaultHasher::new();
    let h = &mut hasher;
    (node.ty, node.nullable, node.int_or_string, node.preserve_unknown, node.embedded).hash(h);
    node.default.hash(h);
    for (name, child) in &node.properties {
        name.hash(h);
        hash_address(child, h);
    }
    std::mem::discriminant(&node.additional).hash(h);
    if let Additional::Schema(child) = &node.additional {
        hash_address(child, h);
    }
    node.items.iter().for_each(|child| hash_address(child, h));
    node.list_type.map(|ty| ty as u8).hash(h);
    node.list_keys.hash(h);
    (node.map_type as u8).hash(h);
    node.checks.iter().for_each(|checks| (Arc::as_ptr(checks) as usize).hash(h));
    node.rules.iter().for_each(|rule: &Rule| rule.hash(h));
    hasher.finish()
}

fn hash_address(node: &Arc<SchemaNode>, hasher: &mut DefaultHasher) {
    (Arc::as_ptr(node) as usize).hash(hasher);
}

fn hash_of_checks(checks: &Checks) -> u64 {
    let mut hasher = DefaultHasher::new();
    let h = &mut hasher;
    checks.format.hash(h);
    checks.enumeration.hash(h);
    let bits = |bound: &Option<Bound>| bound.map(|b| (b.value.to_bits(), b.exclusive));
    (bits(&checks.maximum), bits(&checks.minimum), checks.multiple_of.map(f64::to_bits)).hash(h);
    (checks.max_length, checks.min_length, checks.max_items, checks.min_items).hash(h);
    (checks.max_properties, checks.min_properties).hash(h);
    checks.pattern.as_ref().map(|pattern| pattern.text()).hash(h);
    checks.required.hash(h);
    checks.branches().for_each(|branch| hash_address(branch, h));
    hasher.finish()
}
