//! MutatingAdmissionPolicies: expressions that change the written object, one after another (upstream's `mutating.dispatcher`).

use std::sync::Arc;

use portico_machinery::{Cursor, Object, Status};
use portico_policy::{
    Change, Expression, LazyObject, Matched, MutatingPolicy, MutatingSource, MutationSource, Problem, Subject,
};
use portico_registry::{Objects, Result, ServedResource, VersionError};
use portico_schema::Schema;
use portico_schema::merge::{self, PatchError};

use super::explain::Compiles;
use super::hooks::{Hook, Hooks};
use super::invocations::{self, Found, Invocation, Names};
use super::policy::{Common, Policy};
use super::refusal;
use crate::matching::{Match, MatchTarget, Pair};
use crate::metrics::{Counted, Metrics};
use crate::policy_metrics::{Checked, ErrorType};
use crate::rounds::{Reinvocation, Rounds};
use crate::shown::Shown;

/// Value of the metric label for policies.
const KIND: &str = "policy";

/// Compiled mutating policy with its reinvocation policy.
pub(crate) struct MutatingHook {
    policy: MutatingPolicy,
    reinvoked: bool,
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
struct Denial {
    message: String,
    reason: &'static str,
}

impl Hooks<MutatingHook> {
    /// Creates the source of all MutatingAdmissionPolicies that have bindings.
    pub(crate) fn mutating(metrics: Arc<Metrics>) -> Self {
        let compile =
            move |object: &Object| Policy::read(object, metrics.policies.compiling(|| compile(object)));
        Self::new("mutatingadmissionpolicies", "mutatingadmissionpolicybindings", compile)
    }
}

/// Evaluates the matches that are due in this round and whose selectors match.
///
/// # Errors
/// 403 with the failures of policies whose failure policy is `Fail`, 404 if the namespace does not exist.
pub(crate) async fn mutate(
    mut round: Round<'_>,
    matches: &[Match<Hook<MutatingHook>>],
    new: &mut Object,
    old: Option<&Object>,
) -> Result<()> {
    round.reinvocation.begin(round.rounds, Some(new));
    let (objects, target) = (round.objects, round.target);
    let found = invocations::find(objects, target, Pair { new: Some(new), old }, matches).await?;
    let namespace = if found.is_empty() { None } else { invocations::namespace(objects, target).await? };
    let mut denials = Vec::new();
    for found in found {
        match found {
            Found::Misconfigured(why) if why.policy.fails => {
                let message = denied(&why.names(), &why.message());
                denials.push(Denial { message, reason: "" });
            }
            Found::Misconfigured(_) => {}
            Found::Invocation(invocation) => {
                let failed = round.invoke(&invocation, new, old, namespace.as_ref()).await?;
                let reported = failed.into_iter().filter(|_| invocation.policy.fails);
                let denial =
                    |why: String| Denial { message: denied(&invocation.names(), &why), reason: "Invalid" };
                denials.extend(reported.map(denial));
            }
        }
    }
    round.reinvocation.end(round.rounds, Some(new));
    refused(target, Pair { new: Some(new), old }, &denials)
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
        let MutatingHook { policy, reinvoked } = &invocation.policy.evaluator;
        let matches =
            |policy: &Policy<MutatingHook>, subject: &Subject<'_>| policy.evaluator.policy.matches(subject);
        let (id, mut failed, mut changed) = (invocation.id(), Vec::new(), false);
        for index in 0..policy.mutations() {
            let pair = Pair { new: Some(new), old };
            let shown = Shown::of(objects, target, invocation.version.clone(), pair).await?;
            let params = invocation.param.as_deref();
            let subject = Subject { params, namespace, ..shown.subject(objects, target) };
            if index == 0 {
                let (matched, _) = target.evaluate(objects, invocation.policy, &subject, matches).await?;
                if !self.is_meant(invocation, &id, matched, &mut failed) {
                    return Ok(failed);
                }
            }
            let change = move |policy: &Policy<MutatingHook>, subject: &Subject<'_>| {
                policy.evaluator.policy.change(index, subject)
            };
            let (change, took) = target.evaluate(objects, invocation.policy, &subject, change).await?;
            drop(subject);
            self.metrics.policies.evaluated(took);
            let applied = match change {
                Ok(change) => carry_out(objects, target, &shown, change).await?,
                Err(why) => Err(why),
            };
            let checked = Checked { policy: &invocation.policy.name, binding: &invocation.binding.name };
            let error = applied.as_ref().err().map_or(ErrorType::None, |why| match policy.compiles(index) {
                true => ErrorType::of_problem(why),
                false => ErrorType::Compile,
            });
            self.metrics.policies.mutated(checked, error, took);
            match applied {
                Ok(next) => {
                    changed = true;
                    *new = next;
                }
                Err(problem) => failed.push(problem.message().to_owned()),
            }
        }
        if changed {
            self.reinvocation.changed();
            self.rounds.wanted = true;
        }
        if *reinvoked {
            self.reinvocation.asked(&id);
        }
        Ok(failed)
    }

    /// True if the match conditions hold and the policy is due in this round. Errors of conditions are added to `failed`.
    fn is_meant(
        &self,
        invocation: &Invocation<'_, MutatingHook>,
        id: &str,
        matched: Matched,
        failed: &mut Vec<String>,
    ) -> bool {
        let operation = self.target.attributes.operation_name();
        let counted = Counted { name: &invocation.policy.name, step: "validate", operation };
        match matched {
            Matched::Yes => self.reinvocation.is_due(self.rounds, id),
            Matched::No => {
                self.metrics.excluded(counted, KIND);
                false
            }
            Matched::Failed(why) => {
                self.metrics.condition_failed(counted, KIND);
                failed.push(why);
                false
            }
        }
    }
}

impl Compiles for MutatingHook {
    const MUTATES: bool = true;

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.policy.expressions()
    }

    fn has_conditions(&self) -> bool {
        self.policy.has_conditions()
    }
}

fn compile(object: &Object) -> MutatingHook {
    let spec = object.at(&["spec"]);
    let Common { conditions, variables } = Common::read(&spec);
    let policy = MutatingPolicy::compile(&MutatingSource {
        params: spec.field("paramKind").is_present(),
        conditions,
        variables,
        mutations: spec.field("mutations").items().map(|at| mutation(&at)).collect(),
    });
    MutatingHook { policy, reinvoked: spec.field("reinvocationPolicy").str() == "IfNeeded" }
}

fn mutation<'s>(at: &Cursor<'s>) -> MutationSource<'s> {
    match at.field("patchType").str() {
        "JSONPatch" => MutationSource::Patch(at.field("jsonPatch").field("expression").str()),
        _ => MutationSource::Configuration(at.field("applyConfiguration").field("expression").str()),
    }
}

/// Applies a change to the object of the request. The inner error is a failure of the policy.
async fn carry_out(
    objects: &Objects,
    target: &MatchTarget<'_>,
    shown: &Shown<'_>,
    change: Change,
) -> Result<Result<Object, Problem>> {
    let Some(object) = shown.new.as_deref() else {
        return Ok(Err(Problem::Failed("no object to change".to_owned())));
    };
    let served = shown.version.served(target);
    let (is_patch, is_typed) = (matches!(change, Change::Patch(_)), !served.is_custom());
    let changed = match change {
        Change::Apply(config) => apply(target.attributes.schema_in(served)?, object, config),
        Change::Patch(patch) => patched(object, &patch),
    };
    let changed = match changed {
        Ok(changed) => changed,
        Err(why) => return Ok(Err(Problem::Failed(why))),
    };
    let (next, dropped) = match target.attributes.from_version(objects, served, &changed).await {
        Err(VersionError::Undecodable(why)) if is_typed && !is_patch => {
            return Ok(Err(Problem::Failed(inconvertible(served, &why))));
        }
        read => read?,
    };
    // Unknown fields of custom resources are pruned.
    if is_patch && is_typed && !dropped.is_empty() {
        let why = format!("strict decoding error: {}", dropped.join(", "));
        return Err(Box::new(Status::internal(why)));
    }
    Ok(Ok(next))
}

/// Message about an applied configuration whose result cannot be decoded as the kind of the object.
fn inconvertible(served: &ServedResource, why: &str) -> String {
    let (version, kind) = (served.info.gvk.group_version(), &served.info.gvk.kind);
    let slash = if version.group.is_empty() { "/" } else { "" };
    format!("unable to convert unstructured object to {slash}{version}, Kind={kind}: {why}")
}

fn apply(schema: &Schema, object: &Object, mut config: Object) -> Result<Object, String> {
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
fn patched(object: &Object, patch: &[u8]) -> Result<Object, String> {
    match merge::json_patch(object, patch) {
        Ok(patched) => Ok(patched),
        Err(PatchError::TestFailed(_)) => Ok(object.clone()),
        Err(PatchError::Failed(why)) => Err(format!("JSON Patch: {why}")),
        Err(error) => Err(format!("JSON Patch: {error}")),
    }
}

fn denied(names: &Names<'_>, message: &str) -> String {
    let policy = names.policy;
    match names.binding {
        Some(binding) => format!("policy '{policy}' with binding '{binding}' denied request: {message}"),
        None => format!("policy {policy:?} denied request: {message}"),
    }
}

/// Returns 403 with all denials as causes, and with the message and reason of the first one.
fn refused(target: &MatchTarget<'_>, pair: Pair<'_>, denials: &[Denial]) -> Result<()> {
    let Some(first) = denials.first() else { return Ok(()) };
    let mut status = refusal::forbidden(target, pair, "admission request denied by policy");
    status.message.clone_from(&first.message);
    if !first.reason.is_empty() {
        first.reason.clone_into(&mut status.reason);
    }
    let causes = denials.iter().map(|denial| refusal::cause(&denial.message));
    Err(Box::new(causes.fold(status, Status::with_cause)))
}
