//! Policies that a write would be subject to, and their state. Only rules are compared; no expression is evaluated.

use std::sync::Arc;

use portico_policy::Expression;
use portico_registry::{Objects, Operation, Result};

use super::binding::Binding;
use super::exclusion::is_excluded;
use super::hooks::{Hook, Hooks};
use super::params::ParamKind;
use crate::matching::{Constraints, HookSource, MatchTarget};
use crate::write_target::{ExplainedRequests, WriteTarget};

/// Policy whose rules match a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedPolicy {
    /// True if the policy may change the object.
    pub mutates: bool,
    pub name: String,
    /// Operations for which the rules of the policy match.
    pub operations: Vec<&'static str>,
    /// True if selectors or match conditions may exclude a request that the rules match.
    pub selective: bool,
    /// True if a request fails when the policy cannot be evaluated.
    pub fails_closed: bool,
    /// Errors that prevent the evaluation of the policy.
    pub problems: Vec<String>,
    /// Bindings whose rules match, sorted by name.
    pub bindings: Vec<ExplainedBinding>,
}

/// Binding whose rules match a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedBinding {
    pub name: String,
    /// Operations for which the rules of the binding and of the policy match.
    pub operations: Vec<&'static str>,
    /// True if selectors may exclude a request that the rules match.
    pub selective: bool,
    /// Consequences of a failed validation; empty for mutating policies.
    pub actions: Vec<&'static str>,
    /// Error that prevents the use of the binding.
    pub problem: Option<String>,
}

/// Compiled expressions of a policy.
pub(crate) trait CompiledPolicy {
    /// True if the policy may change the object. Such policies do not apply to deletes.
    const MUTATES: bool;

    /// Returns all expressions of the policy.
    fn expressions(&self) -> impl Iterator<Item = &Expression>;

    /// True if match conditions may exclude a request.
    fn has_conditions(&self) -> bool;
}

impl<E: CompiledPolicy + Send + Sync + 'static> Hooks<E> {
    /// Returns the policies that have a binding such that the rules of both match a write, in order.
    ///
    /// # Errors
    /// Policies or bindings cannot be read.
    pub(crate) async fn explain(
        &self,
        objects: &Objects,
        write_target: WriteTarget<'_>,
    ) -> Result<Vec<ExplainedPolicy>> {
        if is_excluded(write_target.served) {
            return Ok(Vec::new());
        }
        let all = self.load(objects).await?;
        Ok(explain(objects, Self::items(&all), write_target).await)
    }
}

async fn explain<'h, E: CompiledPolicy + 'h>(
    objects: &Objects,
    hooks: impl Iterator<Item = &'h Arc<Hook<E>>>,
    write_target: WriteTarget<'_>,
) -> Vec<ExplainedPolicy> {
    let requests = ExplainedRequests::new();
    let mut targets = requests.targets(write_target);
    targets.retain(|target| !E::MUTATES || target.attributes.operation != Operation::Delete);
    let mut explained = Vec::new();
    for hook in hooks {
        let policy = &*hook.policy;
        let operations = operations(objects, &targets, &[&policy.constraints]);
        let mut bindings = Vec::new();
        for binding in &hook.bindings {
            let both: Vec<_> = [&policy.constraints].into_iter().chain(&binding.constraints).collect();
            let operations = self::operations(objects, &targets, &both);
            if !operations.is_empty() {
                let problem = problem(objects, policy.params.as_ref(), binding, write_target).await;
                bindings.push(binding.to_explained(operations, problem));
            }
        }
        if bindings.is_empty() {
            continue;
        }
        let evaluator = &policy.evaluator;
        let params = policy.params.as_ref().and_then(|kind| kind.served(objects).err());
        let compile = |expression: &Expression| {
            expression.error().map(|error| format!("{:?} does not compile: {error}", expression.text()))
        };
        explained.push(ExplainedPolicy {
            mutates: E::MUTATES,
            name: policy.name.clone(),
            operations,
            selective: policy.constraints.has_selectors() || evaluator.has_conditions(),
            fails_closed: policy.fails_closed,
            problems: params.into_iter().chain(evaluator.expressions().filter_map(compile)).collect(),
            bindings,
        });
    }
    explained
}

/// Returns the operations for which all given rules match.
fn operations(
    objects: &Objects,
    targets: &[MatchTarget<'_>],
    constraints: &[&Constraints],
) -> Vec<&'static str> {
    let matches = |target: &&MatchTarget<'_>| {
        constraints.iter().all(|constraint| constraint.match_rules(objects, target).is_some())
    };
    targets.iter().filter(matches).map(|target| target.attributes.operation_name()).collect()
}

/// Returns the reason why a binding has no parameters for a write. For a write in all namespaces this is not known.
async fn problem(
    objects: &Objects,
    kind: Option<&ParamKind>,
    binding: &Binding,
    write_target: WriteTarget<'_>,
) -> Option<String> {
    let (kind, reference) = kind.and_then(|kind| kind.served(objects).ok()).zip(binding.params.as_ref())?;
    if write_target.served.info.namespaced && write_target.namespace.is_empty() {
        return None;
    }
    reference.collect(objects, &kind, write_target.namespace).await.err()
}

impl Binding {
    fn to_explained(&self, operations: Vec<&'static str>, problem: Option<String>) -> ExplainedBinding {
        ExplainedBinding {
            name: self.name.clone(),
            operations,
            selective: self.constraints.as_ref().is_some_and(Constraints::has_selectors),
            actions: self.actions.iter().map(|action| action.name()).collect(),
            problem,
        }
    }
}
