//! Which policies a write would meet, and how they are: their rules are compared with it, nothing is evaluated.

use std::sync::Arc;

use portico_policy::Expression;
use portico_registry::{Objects, Operation, Result};

use super::binding::Binding;
use super::exclusion::is_excluded;
use super::hooks::{Hook, Hooks};
use super::params::ParamKind;
use crate::matching::{Configured, Constraints, MatchTarget};
use crate::write_target::{ExplainedRequests, WriteTarget};

/// A policy that a write would meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedPolicy {
    /// Whether it may change the object.
    pub mutates: bool,
    /// Its name.
    pub name: String,
    /// For which operations its rules match.
    pub operations: Vec<&'static str>,
    /// Whether selectors or match conditions may leave a request out that its rules match.
    pub selective: bool,
    /// Whether a request fails when it cannot be evaluated.
    pub fails: bool,
    /// Why it cannot be evaluated as it is written.
    pub problems: Vec<String>,
    /// Its bindings whose rules match, by name.
    pub bindings: Vec<ExplainedBinding>,
}

/// A binding of such a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedBinding {
    /// Its name.
    pub name: String,
    /// For which operations its rules and those of the policy match.
    pub operations: Vec<&'static str>,
    /// Whether selectors may leave a request out that its rules match.
    pub selective: bool,
    /// What follows from a validation that does not hold; nothing for policies that change.
    pub actions: Vec<&'static str>,
    /// Why it cannot be used now.
    pub problem: Option<String>,
}

/// What is compiled of a policy.
pub(crate) trait Compiles {
    /// Whether it may change the object; then it is not asked about deletes.
    const MUTATES: bool;

    /// Its expressions.
    fn expressions(&self) -> impl Iterator<Item = &Expression>;

    /// Whether conditions may leave out a request.
    fn has_conditions(&self) -> bool;
}

impl<E: Compiles + Send + Sync + 'static> Hooks<E> {
    /// Those that a write would meet, in order: their rules and those of a binding match.
    ///
    /// # Errors
    /// Policies or bindings cannot be read.
    pub(crate) async fn explain(
        &self,
        objects: &Objects,
        written: WriteTarget<'_>,
    ) -> Result<Vec<ExplainedPolicy>> {
        if is_excluded(written.served) {
            return Ok(Vec::new());
        }
        let all = self.read(objects).await?;
        Ok(explain(objects, Self::items(&all), written).await)
    }
}

async fn explain<'h, E: Compiles + 'h>(
    objects: &Objects,
    hooks: impl Iterator<Item = &'h Arc<Hook<E>>>,
    written: WriteTarget<'_>,
) -> Vec<ExplainedPolicy> {
    let requests = ExplainedRequests::new();
    let mut targets = requests.targets(written);
    targets.retain(|target| !E::MUTATES || target.attributes.operation != Operation::Delete);
    let mut met = Vec::new();
    for hook in hooks {
        let policy = &*hook.policy;
        let operations = operations(objects, &targets, &[&policy.constraints]);
        let mut bindings = Vec::new();
        for binding in &hook.bindings {
            let both: Vec<_> = [&policy.constraints].into_iter().chain(&binding.constraints).collect();
            let operations = self::operations(objects, &targets, &both);
            if !operations.is_empty() {
                let problem = problem(objects, policy.params.as_ref(), binding, written).await;
                bindings.push(binding.explained(operations, problem));
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
        met.push(ExplainedPolicy {
            mutates: E::MUTATES,
            name: policy.name.clone(),
            operations,
            selective: policy.constraints.selects() || evaluator.has_conditions(),
            fails: policy.fails,
            problems: params.into_iter().chain(evaluator.expressions().filter_map(compile)).collect(),
            bindings,
        });
    }
    met
}

/// The operations for which all these rules match.
fn operations(
    objects: &Objects,
    targets: &[MatchTarget<'_>],
    constraints: &[&Constraints],
) -> Vec<&'static str> {
    let matches =
        |target: &&MatchTarget<'_>| constraints.iter().all(|one| one.match_rules(objects, target).is_some());
    targets.iter().filter(matches).map(|target| target.attributes.operation_name()).collect()
}

/// Why a binding has no parameters for a write. What is written in all namespaces is not known to have none.
async fn problem(
    objects: &Objects,
    kind: Option<&ParamKind>,
    binding: &Binding,
    written: WriteTarget<'_>,
) -> Option<String> {
    let (kind, reference) = kind.and_then(|kind| kind.served(objects).ok()).zip(binding.params.as_ref())?;
    if written.served.info.namespaced && written.namespace.is_empty() {
        return None;
    }
    reference.collect(objects, &kind, written.namespace).await.err()
}

impl Binding {
    fn explained(&self, operations: Vec<&'static str>, problem: Option<String>) -> ExplainedBinding {
        ExplainedBinding {
            name: self.name.clone(),
            operations,
            selective: self.constraints.as_ref().is_some_and(Constraints::selects),
            actions: self.actions.iter().map(|action| action.name()).collect(),
            problem,
        }
    }
}
