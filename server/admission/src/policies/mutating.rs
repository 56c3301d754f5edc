//! MutatingAdmissionPolicies: expressions that change the written object, one after another (upstream's `mutating.dispatcher`).

use std::sync::Arc;

use portico_machinery::{Cursor, Object, Status};
use portico_policy::{
    EvaluationInput, Expression, ExpressionError, LazyObject, MatchResult, MutatingPolicy,
    MutatingPolicySource, MutationResult, MutationSource,
};
use portico_registry::{Objects, Result, ServedResource, VersionError};
use portico_schema::Schema;
use portico_schema::merge::{self, PatchError};

use super::explain::CompiledPolicy;
use super::hooks::{Hook, Hooks};
use super::invocations::{self, Invocation, PolicyNames, ResolvedBinding};
use super::policy::{CommonExpressions, Policy};
use super::refusal;
use crate::matching::{MatchTarget, ObjectPair, RuleMatch};
use crate::metrics::{HookLabels, Metrics};
use crate::policy_metrics::{BindingLabels, ErrorType};
use crate::request_view::RequestView;
use crate::rounds::{Reinvocation, Rounds};

/// Value of the metric label for policies.
const KIND: &str = "policy";

/// Compiled mutating policy with its reinvocation policy.
pub(crate) struct MutatingHook {
    policy: MutatingPolicy,
    is_reinvocable: bool,
}

/// Request in one round of the mutating policies.
pub(crate) struct Round<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) target: &'a MatchTarget<'a>,
    pub(crate) metrics: &'a Metrics,
    pub(crate) rounds: &'a mut Rounds,
    pub(crate) reinvocation: &'a mut Reinvocation,
}

/// Failure of a policy whose failure policy is `Fail`.
struct PolicyDenial {
    message: String,
    reason: &'static str,
}

impl Hooks<MutatingHook> {
    /// Creates the source of all MutatingAdmissionPolicies that have bindings.
    pub(crate) fn mutating(metrics: Arc<Metrics>) -> Self {
        let compile = move |object: &Object| {
            Policy::read(object, metrics.policies.time_compilation(|| compile(object)))
        };
        Self::new("mutatingadmissionpolicies", "mutatingadmissionpolicybindings", compile)
    }
}

/// Evaluates the matches that are due in this round and whose selectors match.
///
/// # Errors
/// 403 with the failures of policies whose failure policy is `Fail`, 404 if the namespace does not exist.
pub(crate) async fn mutate(
    mut round: Round<'_>,
    matches: &[RuleMatch<Hook<MutatingHook>>],
    new: &mut Object,
    old: Option<&Object>,
) -> Result<()> {
    round.reinvocation.begin(round.rounds, Some(new));
    let (objects, target) = (round.objects, round.target);
    let found =
        invocations::resolve_invocations(objects, target, ObjectPair { new: Some(new), old }, matches)
            .await?;
    let namespace = if found.is_empty() { None } else { invocations::namespace(objects, target).await? };
    let mut denials = Vec::new();
    for found in found {
        match found {
            ResolvedBinding::Misconfigured(misconfiguration) if misconfiguration.policy.fails_closed => {
                let message = denial_message(&misconfiguration.names(), &misconfiguration.message());
                denials.push(PolicyDenial { message, reason: "" });
            }
            ResolvedBinding::Misconfigured(_) => {}
            ResolvedBinding::Invocation(invocation) => {
                let failed = round.invoke(&invocation, new, old, namespace.as_ref()).await?;
                let denied = failed.into_iter().filter(|_| invocation.policy.fails_closed);
                let denial = |detail: String| PolicyDenial {
                    message: denial_message(&invocation.names(), &detail),
                    reason: "Invalid",
                };
                denials.extend(denied.map(denial));
            }
        }
    }
    round.reinvocation.end(round.rounds, Some(new));
    reject(target, ObjectPair { new: Some(new), old }, &denials)
}

impl Round<'_> {
    /// Applies the changes of a policy; returns the messages of its failures.
    async fn invoke(
        &mut self,
        invocation: &Invocation<'_, MutatingHook>,
        new: &mut Object,
        old: Option<&Object>,
        namespace: Option<&LazyObject>,
    ) -> Result<Vec<String>> {
        let (objects, target) = (self.objects, self.target);
        let MutatingHook { policy, is_reinvocable } = &invocation.policy.evaluator;
        let matches = |policy: &Policy<MutatingHook>, subject: &EvaluationInput<'_>| {
            policy.evaluator.policy.matches(subject)
        };
        let (id, mut failed, mut changed) = (invocation.id(), Vec::new(), false);
        for index in 0..policy.mutation_count() {
            let pair = ObjectPair { new: Some(new), old };
            let view = RequestView::convert(objects, target, invocation.version.clone(), pair).await?;
            let params = invocation.param.as_deref();
            let subject = EvaluationInput { params, namespace, ..view.subject(objects, target) };
            if index == 0 {
                let (matched, _) = target.evaluate(objects, invocation.policy, &subject, matches).await?;
                if !self.should_evaluate(invocation, &id, matched, &mut failed) {
                    return Ok(failed);
                }
            }
            let change = move |policy: &Policy<MutatingHook>, subject: &EvaluationInput<'_>| {
                policy.evaluator.policy.evaluate_mutation(index, subject)
            };
            let (change, duration) = target.evaluate(objects, invocation.policy, &subject, change).await?;
            drop(subject);
            self.metrics.policies.observe_evaluation(duration);
            let applied = match change {
                Ok(change) => apply_change(objects, target, &view, change).await?,
                Err(error) => Err(error),
            };
            let checked =
                BindingLabels { policy: &invocation.policy.name, binding: &invocation.binding.name };
            let error =
                applied.as_ref().err().map_or(ErrorType::None, |error| match policy.is_valid(index) {
                    true => ErrorType::from_problem(error),
                    false => ErrorType::Compile,
                });
            self.metrics.policies.observe_mutation(checked, error, duration);
            match applied {
                Ok(next) => {
                    changed = true;
                    *new = next;
                }
                Err(problem) => failed.push(problem.message().to_owned()),
            }
        }
        if changed {
            self.reinvocation.require_reinvoking();
            self.rounds.should_reinvoke = true;
        }
        if *is_reinvocable {
            self.reinvocation.add_invoked(&id);
        }
        Ok(failed)
    }

    /// True if the match conditions hold and the policy is due in this round. Errors of conditions are added to `failed`.
    fn should_evaluate(
        &self,
        invocation: &Invocation<'_, MutatingHook>,
        id: &str,
        matched: MatchResult,
        failed: &mut Vec<String>,
    ) -> bool {
        let operation = self.target.attributes.operation_name();
        let labels = HookLabels { name: &invocation.policy.name, step: "validate", operation };
        match matched {
            MatchResult::Yes => self.reinvocation.is_due(self.rounds, id),
            MatchResult::No => {
                self.metrics.count_exclusion(labels, KIND);
                false
            }
            MatchResult::Failed(error) => {
                self.metrics.count_condition_error(labels, KIND);
                failed.push(error);
                false
            }
        }
    }
}

impl CompiledPolicy for MutatingHook {
    const MUTATES: bool = true;

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.policy.expressions()
    }

    fn has_conditions(&self) -> bool {
        self.policy.has_match_conditions()
    }
}

fn compile(object: &Object) -> MutatingHook {
    let spec = object.at(&["spec"]);
    let CommonExpressions { conditions: match_conditions, variables } = CommonExpressions::read(&spec);
    let policy = MutatingPolicy::compile(&MutatingPolicySource {
        has_params: spec.field("paramKind").is_present(),
        match_conditions,
        variables,
        mutations: spec.field("mutations").items().map(|at| mutation(&at)).collect(),
    });
    MutatingHook { policy, is_reinvocable: spec.field("reinvocationPolicy").str() == "IfNeeded" }
}

fn mutation<'s>(at: &Cursor<'s>) -> MutationSource<'s> {
    match at.field("patchType").str() {
        "JSONPatch" => MutationSource::JsonPatch(at.field("jsonPatch").field("expression").str()),
        _ => MutationSource::ApplyConfiguration(at.field("applyConfiguration").field("expression").str()),
    }
}

/// Applies a change to the object of the request. The inner error is a failure of the policy.
async fn apply_change(
    objects: &Objects,
    target: &MatchTarget<'_>,
    view: &RequestView<'_>,
    change: MutationResult,
) -> Result<Result<Object, ExpressionError>> {
    let Some(object) = view.new.as_deref() else {
        return Ok(Err(ExpressionError::Failed("no object to change".to_owned())));
    };
    let served = view.version.served(target);
    let (is_patch, is_typed) = (matches!(change, MutationResult::Patch(_)), !served.is_custom());
    let changed = match change {
        MutationResult::Apply(config) => {
            apply_configuration(target.attributes.schema_in(served)?, object, config)
        }
        MutationResult::Patch(patch) => apply_json_patch(object, &patch),
    };
    let changed = match changed {
        Ok(changed) => changed,
        Err(error) => return Ok(Err(ExpressionError::Failed(error))),
    };
    let (next, dropped) = match target.attributes.from_version(objects, served, &changed).await {
        Err(VersionError::Undecodable(error)) if is_typed && !is_patch => {
            return Ok(Err(ExpressionError::Failed(conversion_error(served, &error))));
        }
        read => read?,
    };
    // Unknown fields of custom resources are pruned.
    if is_patch && is_typed && !dropped.is_empty() {
        let message = format!("strict decoding error: {}", dropped.join(", "));
        return Err(Box::new(Status::internal(message)));
    }
    Ok(Ok(next))
}

/// Message about an applied configuration whose result cannot be decoded as the kind of the object.
fn conversion_error(served: &ServedResource, message: &str) -> String {
    let (version, kind) = (served.info.gvk.group_version(), &served.info.gvk.kind);
    let slash = if version.group.is_empty() { "/" } else { "" };
    format!("unable to convert unstructured object to {slash}{version}, Kind={kind}: {message}")
}

fn apply_configuration(schema: &Schema, object: &Object, mut config: Object) -> Result<Object, String> {
    for field in ["kind", "apiVersion"] {
        config.copy_from(object, &[field]);
    }
    schema.check_applied(&config).map_err(|misfits| {
        format!("error applying patch: failed to convert patch object to typed object: {misfits}")
    })?;
    let atomics = schema.atomics_of(&config);
    if !atomics.is_empty() {
        return Err(format!(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomics.join(", ")
        ));
    }
    let merged = schema.merge_applied(object, &config);
    merged.map_err(|error| format!("error applying patch: failed to merge patch: {error}"))
}

/// Applies a JSON patch. If a test operation fails, the object is not changed.
fn apply_json_patch(object: &Object, patch: &[u8]) -> Result<Object, String> {
    match merge::json_patch(object, patch) {
        Ok(patched) => Ok(patched),
        Err(PatchError::TestFailed(_)) => Ok(object.clone()),
        Err(PatchError::Failed(error)) => Err(format!("JSON Patch: {error}")),
        Err(error) => Err(format!("JSON Patch: {error}")),
    }
}

fn denial_message(names: &PolicyNames<'_>, message: &str) -> String {
    let policy = names.policy;
    match names.binding {
        Some(binding) => format!("policy '{policy}' with binding '{binding}' denied request: {message}"),
        None => format!("policy {policy:?} denied request: {message}"),
    }
}

/// Returns 403 with all denials as causes, and with the message and reason of the first one.
fn reject(target: &MatchTarget<'_>, pair: ObjectPair<'_>, denials: &[PolicyDenial]) -> Result<()> {
    let Some(first) = denials.first() else { return Ok(()) };
    let mut status = refusal::forbidden(target, pair, "admission request denied by policy");
    status.message.clone_from(&first.message);
    if !first.reason.is_empty() {
        first.reason.clone_into(&mut status.reason);
    }
    let causes = denials.iter().map(|denial| refusal::cause(&denial.message));
    Err(Box::new(causes.fold(status, Status::with_cause)))
}
