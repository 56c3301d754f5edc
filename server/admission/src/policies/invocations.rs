//! Selection of the policies and parameters that are evaluated for a request (upstream's `policyDispatcher`).

use std::sync::Arc;

use portico_machinery::{GroupResource, Object, Status};
use portico_policy::LazyObject;
use portico_registry::{Objects, Result, stored_object};
use portico_store::Record;

use super::binding::Binding;
use super::hooks::Hook;
use super::policy::Policy;
use crate::matching::{MatchTarget, MatchedVersion, ObjectPair, RuleMatch};

/// Evaluation of a policy with one parameter object, or without parameters.
pub(super) struct Invocation<'h, E> {
    pub(super) policy: &'h Arc<Policy<E>>,
    pub(super) binding: &'h Binding,
    /// Version in which the policy receives the request.
    pub(super) version: MatchedVersion,
    pub(super) param: Option<Arc<Object>>,
}

/// Policy or binding that cannot be used.
pub(super) struct Misconfiguration<'h, E> {
    pub(super) policy: &'h Policy<E>,
    /// `None` if the error is in the policy.
    pub(super) binding: Option<&'h Binding>,
    message: String,
}

/// Result of matching a policy and a binding with a request.
pub(super) enum ResolvedBinding<'h, E> {
    Invocation(Invocation<'h, E>),
    Misconfigured(Misconfiguration<'h, E>),
}

/// Names of the policy and binding that caused a refusal.
pub(super) struct PolicyNames<'n> {
    pub(super) policy: &'n str,
    pub(super) binding: Option<&'n str>,
}

impl<E> Invocation<'_, E> {
    pub(super) fn names(&self) -> PolicyNames<'_> {
        PolicyNames { policy: &self.policy.name, binding: Some(&self.binding.name) }
    }

    /// Returns an ID that is unique among the invocations of one request.
    pub(super) fn id(&self) -> String {
        let param = self.param.as_ref().map(|param| (param.namespace(), param.name())).unwrap_or_default();
        format!("{}/{}/{}/{}", self.policy.name, self.binding.name, param.0, param.1)
    }
}

impl<E> Misconfiguration<'_, E> {
    pub(super) fn names(&self) -> PolicyNames<'_> {
        PolicyNames { policy: &self.policy.name, binding: self.binding.map(|binding| binding.name.as_str()) }
    }

    pub(super) fn message(&self) -> String {
        let kind = if self.binding.is_some() { "binding" } else { "policy" };
        format!("failed to configure {kind}: {}", self.message)
    }
}

/// Returns all evaluations of policies whose rules match, in the order of policies and bindings.
pub(super) async fn resolve_invocations<'h, E>(
    objects: &Objects,
    target: &MatchTarget<'_>,
    pair: ObjectPair<'_>,
    matches: &'h [RuleMatch<Hook<E>>],
) -> Result<Vec<ResolvedBinding<'h, E>>> {
    let mut found = Vec::new();
    for RuleMatch { item: hook, version, .. } in matches {
        let policy = &hook.policy;
        match policy.constraints.match_selectors(objects, target, pair).await {
            Ok(true) => {}
            Ok(false) => continue,
            Err(status) => {
                found.push(misconfigured_binding(policy, None, status.message));
                continue;
            }
        }
        for binding in &hook.bindings {
            match is_bound(objects, target, pair, binding).await {
                Ok(true) => resolve_binding(objects, target, policy, binding, version, &mut found).await,
                Ok(false) => {}
                Err(status) => found.push(misconfigured_binding(policy, Some(binding), status.message)),
            }
        }
    }
    Ok(found)
}

/// Returns the namespace of a request for expressions; `None` for cluster-scoped objects and for namespaces themselves.
///
/// # Errors
/// 404 if the namespace does not exist.
pub(super) async fn namespace(objects: &Objects, target: &MatchTarget<'_>) -> Result<Option<LazyObject>> {
    if target.namespace.is_empty() || target.targets_namespaces() {
        return Ok(None);
    }
    let resource = GroupResource::new("", "namespaces");
    let served = objects.served_resource(&resource)?;
    let record = objects.read(&served, "", target.namespace).await?;
    let record = record.ok_or_else(|| Box::new(Status::not_found(&resource, target.namespace)))?;
    Ok(Some(LazyObject::new(Box::new(move || namespace_view(&record)))))
}

fn namespace_view(record: &Record) -> Object {
    let mut namespace = stored_object::decode(record);
    for field in ["managedFields", "ownerReferences"] {
        namespace.remove(&["metadata", field]);
    }
    namespace
}

async fn is_bound(
    objects: &Objects,
    target: &MatchTarget<'_>,
    pair: ObjectPair<'_>,
    binding: &Binding,
) -> Result<bool> {
    let Some(constraints) = &binding.constraints else { return Ok(true) };
    Ok(constraints.match_rules(objects, target).is_some()
        && constraints.match_selectors(objects, target, pair).await?)
}

/// Resolves a binding that matches: one evaluation for each parameter object, or one without parameters.
async fn resolve_binding<'h, E>(
    objects: &Objects,
    target: &MatchTarget<'_>,
    policy: &'h Arc<Policy<E>>,
    binding: &'h Binding,
    version: &MatchedVersion,
    found: &mut Vec<ResolvedBinding<'h, E>>,
) {
    let kind = match policy.params.as_ref().map(|kind| kind.served(objects)).transpose() {
        Ok(kind) => kind,
        Err(error) => return found.push(misconfigured_binding(policy, None, error)),
    };
    let params = match (kind, &binding.params) {
        (Some(kind), Some(reference)) => match reference.collect(objects, &kind, target.namespace).await {
            Ok(params) => params.into_iter().map(Some).collect(),
            Err(error) => return found.push(misconfigured_binding(policy, Some(binding), error)),
        },
        _ => vec![None],
    };
    let invocation =
        |param| ResolvedBinding::Invocation(Invocation { policy, binding, version: version.clone(), param });
    found.extend(params.into_iter().map(invocation));
}

fn misconfigured_binding<'h, E>(
    policy: &'h Policy<E>,
    binding: Option<&'h Binding>,
    message: String,
) -> ResolvedBinding<'h, E> {
    ResolvedBinding::Misconfigured(Misconfiguration { policy, binding, message })
}
