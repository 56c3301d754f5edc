//! Compiled rules of a schema as a tree with the shape of the schema; nodes without rules in their subtree are omitted.

use std::sync::Arc;

use portico_cel::{DeclType, Meter};

use super::compiled::{Compiled, Environments, compile};
use super::types;
use crate::structural::languages;
use crate::structural::model::{Node, Rule};

/// Schema node with its compiled rules.
#[derive(Debug)]
pub(in crate::structural) struct Tree {
    pub node: Arc<Node>,
    pub rules: Box<[Ready]>,
    /// Type of the node; `None` if it has no rules or expressions cannot access it.
    pub declared: Option<Arc<DeclType>>,
    pub properties: Box<[(Arc<str>, Tree)]>,
    pub values: Option<Box<Tree>>,
    pub items: Option<Box<Tree>>,
}

/// Rule with the result of its compilation.
#[derive(Debug)]
pub(in crate::structural) struct Ready {
    pub rule: Rule,
    /// `None` for a blank rule.
    pub compiled: Result<Option<Compiled>, String>,
}

impl Tree {
    /// Compiles the rules of a node and below. Returns `None` if there are none. The meter pays for constants and patterns.
    pub fn compile(node: &Arc<Node>, resource: bool, meter: &Meter) -> Option<Self> {
        if !node.marks.rules {
            return None;
        }
        let below = |node: &Arc<Node>| Self::compile(node, false, meter);
        let (declared, rules) = ready(node, resource, meter);
        let named = node.properties.iter().filter(|(_, node)| sees(node));
        Some(Self {
            properties: named.filter_map(|(name, node)| Some((name.clone(), below(node)?))).collect(),
            values: node.additional.schema().and_then(below).map(Box::new),
            items: node.items.as_ref().and_then(below).map(Box::new),
            rules,
            declared,
            node: node.clone(),
        })
    }

    /// Returns the rules of a property.
    pub fn property(&self, name: &str) -> Option<&Self> {
        let at = self.properties.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        Some(&self.properties[at].1)
    }
}

/// True if expressions can access values of this node. Otherwise its rules do not run.
fn sees(node: &Node) -> bool {
    node.ty.is_some() || node.int_or_string
}

fn ready(node: &Node, resource: bool, meter: &Meter) -> (Option<Arc<DeclType>>, Box<[Ready]>) {
    if node.rules.is_empty() {
        return (None, Box::default());
    }
    let Some(declared) = types::declare(node, resource) else {
        let failed = |rule: &Rule| Ready {
            rule: rule.clone(),
            compiled: Err("failed to convert to declType for CEL validation rules".to_owned()),
        };
        return (None, node.rules.iter().map(failed).collect());
    };
    let environments = Environments::of(&declared, languages::stored_expressions());
    let rules = node.rules.iter().map(|rule| {
        let outcome = compile(rule, node, &declared, (&environments, meter));
        let compiled = outcome.error.map_or(Ok(outcome.compiled), Err);
        Ready { rule: rule.clone(), compiled }
    });
    let rules = rules.collect();
    (Some(declared), rules)
}
