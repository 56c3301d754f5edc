//! Description of a request for the comparison with rules and selectors.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use portico_kit::offload::is_abandoned;
use portico_machinery::{GroupVersionKind, GroupVersionResource, Object};
use portico_policy::{EvaluationInput, ExpressionBudget, UserAuthorizer};
use portico_registry::{Attributes, Objects, Operation, Result, ServedResource};

const GROUP: &str = "admissionregistration.k8s.io";
/// Kinds whose objects are exempt from webhooks and policies, because a configuration that refuses every request could otherwise
/// not be corrected.
const EXEMPT: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// Request that rules and selectors are compared with.
pub(crate) struct MatchTarget<'a> {
    pub(crate) attributes: Attributes<'a>,
    /// The resource of the request.
    pub(crate) resource: GroupVersionResource,
    /// The kind of the request.
    pub(crate) kind: GroupVersionKind,
    /// Namespace of the request; for a namespace, its own name.
    pub(crate) namespace: &'a str,
    equivalents: OnceLock<Vec<Arc<ServedResource>>>,
    authorizer: OnceLock<Arc<UserAuthorizer>>,
    /// Cost budget of all expressions about the request.
    pub(crate) request_budget: ExpressionBudget,
}

impl<'a> MatchTarget<'a> {
    /// Describes a request; `None` for a request that no webhook and no policy may receive. `cost_limit` is the budget of all
    /// expressions about the request.
    pub(crate) fn new(attributes: Attributes<'a>, cost_limit: u64) -> Option<Self> {
        let kind = attributes.kind();
        if kind.group == GROUP && EXEMPT.contains(&kind.kind.as_str()) {
            return None;
        }
        let resource = attributes.resource();
        let is_namespace = is_namespaces(&resource);
        let namespace = if is_namespace { attributes.name } else { attributes.namespace };
        let (equivalents, authorizer) = Default::default();
        let request_budget = ExpressionBudget::new(cost_limit);
        Some(Self { attributes, resource, kind, namespace, equivalents, authorizer, request_budget })
    }

    /// True if the resource is `namespaces`.
    pub(crate) fn targets_namespaces(&self) -> bool {
        is_namespaces(&self.resource)
    }

    /// True if the written object carries the labels of its namespace, that is, if the object is the namespace itself.
    pub(crate) fn carries_namespace_labels(&self) -> bool {
        self.targets_namespaces()
            && self.attributes.subresource().is_empty()
            && matches!(self.attributes.operation, Operation::Create | Operation::Update)
    }

    /// Returns the other versions that serve the same objects.
    pub(crate) fn equivalents(&self, objects: &Objects) -> &[Arc<ServedResource>] {
        self.equivalents.get_or_init(|| self.attributes.equivalents(objects))
    }

    /// Returns the authorizer for expressions that check permissions of the user.
    pub(crate) fn authorizer(&self, objects: &Objects) -> &Arc<UserAuthorizer> {
        self.authorizer.get_or_init(|| {
            let user = Arc::new(self.attributes.context.user.clone());
            Arc::new(UserAuthorizer::new(user, Arc::clone(&objects.authorizer)))
        })
    }

    /// Evaluates expressions. If they need decisions of the authorizer, waits for the decisions and evaluates again. Returns the
    /// result and the duration of the last evaluation. An evaluation that takes long is restarted on the threads for long work.
    ///
    /// # Errors
    /// 500 if the process is shutting down.
    pub(crate) async fn evaluate<E: Send + Sync + 'static, T: Send + 'static>(
        &self,
        objects: &Objects,
        evaluator: &Arc<E>,
        subject: &EvaluationInput<'_>,
        evaluate: impl Fn(&E, &EvaluationInput<'_>) -> T + Copy + Send + 'static,
    ) -> Result<(T, Duration)> {
        loop {
            let (before, started) = (self.request_budget.meter(), Instant::now());
            let evaluated = match self.request_budget.try_inline(|| evaluate(evaluator, subject)) {
                Some(outcome) => (outcome, started.elapsed()),
                None => self.evaluate_long(objects, Arc::clone(evaluator), subject, evaluate).await?,
            };
            let Some(authorizer) = self.authorizer.get() else { return Ok(evaluated) };
            if !authorizer.resolve_pending().await {
                return Ok(evaluated);
            }
            self.request_budget.set_meter(before);
        }
    }

    async fn evaluate_long<E: Send + Sync + 'static, T: Send + 'static>(
        &self,
        objects: &Objects,
        evaluator: Arc<E>,
        subject: &EvaluationInput<'_>,
        evaluate: impl Fn(&E, &EvaluationInput<'_>) -> T + Send + 'static,
    ) -> Result<(T, Duration)> {
        let subject = subject.to_owned_input(is_abandoned);
        let work = async move {
            let started = Instant::now();
            let outcome = evaluate(&evaluator, &subject.as_input());
            ((outcome, started.elapsed()), subject.request_budget.meter())
        };
        let (evaluated, meter) = objects.compute(true, work).await?;
        self.request_budget.set_meter(meter);
        Ok(evaluated)
    }
}

fn is_namespaces(resource: &GroupVersionResource) -> bool {
    resource.group.is_empty() && resource.resource == "namespaces"
}

/// Objects of a request, in the version of the request.
#[derive(Clone, Copy)]
pub(crate) struct ObjectPair<'a> {
    /// The written object, or the options of a connection; `None` for a delete.
    pub(crate) new: Option<&'a Object>,
    /// The stored object; `None` for a create.
    pub(crate) old: Option<&'a Object>,
}
