//! Compiled rules of a schema as a tree with the shape of the schema; nodes without rules in their subtree are omitted.

use std::sync::Arc;

use portico_cel::{DeclType, Meter};

use super::compiled_rule::{CompiledRule, Environments, compile_rule};
use super::types;
use crate::structural::languages;
use crate::structural::model::{Rule, SchemaNode};

/// Schema node with its compiled rules.
#[derive(Debug)]
pub(in crate::structural) struct RuleTree {
    pub node: Arc<SchemaNode>,
    pub rules: Box<[TreeRule]>,
    /// Type of the node; `None` if it has no rules or expressions cannot access it.
    pub declared: Option<Arc<DeclType>>,
    pub properties: Box<[(Arc<str>, RuleTree)]>,
    pub values: Option<Box<RuleTree>>,
    pub items: Option<Box<RuleTree>>,
}

/// Rule with the result of its compilation.
#[derive(Debug)]
pub(in crate::structural) struct TreeRule {
    pub rule: Rule,
    /// `None` for a blank rule.
    pub compiled: Result<Option<CompiledRule>, String>,
}

impl RuleTree {
    /// Compiles the rules of a node and below. Returns `None` if there are none. The meter pays for constants and patterns.
    pub fn compile(node: &Arc<SchemaNode>, resource: bool, meter: &Meter) -> Option<Self> {
        if !node.subtree_flags.rules {
            return None;
        }
        let compile_child = |node: &Arc<SchemaNode>| Self::compile(node, false, meter);
        let (declared, rules) = compile_rules(node, resource, meter);
        let accessible = node.properties.iter().filter(|(_, node)| is_accessible(node));
        Some(Self {
            properties: accessible
                .filter_map(|(name, node)| Some((name.clone(), compile_child(node)?)))
                .collect(),
            values: node.additional.schema().and_then(compile_child).map(Box::new),
            items: node.items.as_ref().and_then(compile_child).map(Box::new),
            rules,
            declared,
            node: node.clone(),
        })
    }

    /// Returns the rules of a property.
    pub fn property(&self, name: &str) -> Option<&Self> {
        let index = self.properties.binary_search_by(|(key, _)| (**key).cmp(name)).ok()?;
        Some(&self.properties[index].1)
    }
}

/// True if expressions can access values of this node. Otherwise its rules do not run.
fn is_accessible(node: &SchemaNode) -> bool {
    node.ty.is_some() || node.int_or_string
}

fn compile_rules(
    node: &SchemaNode,
    resource: bool,
    meter: &Meter,
) -> (Option<Arc<DeclType>>, Box<[TreeRule]>) {
    if node.rules.is_empty() {
        return (None, Box::default());
    }
    let Some(declared) = types::declare(node, resource) else {
        let failed = |rule: &Rule| TreeRule {
            rule: rule.clone(),
            compiled: Err("failed to convert to declType for CEL validation rules".to_owned()),
        };
        return (None, node.rules.iter().map(failed).collect());
    };
    let environments = Environments::of(&declared, languages::stored_expressions());
    let rules = node.rules.iter().map(|rule| {
        let outcome = compile_rule(rule, node, &declared, (&environments, meter));
        let compiled = outcome.error.map_or(Ok(outcome.compiled), Err);
        TreeRule { rule: rule.clone(), compiled }
    });
    let rules = rules.collect();
    (Some(declared), rules)
}
