//! A request, as rules and selectors are compared with it.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use portico_kit::offload::is_abandoned;
use portico_machinery::{GroupVersionKind, GroupVersionResource, Object};
use portico_policy::{ExpressionBudget, Subject, UserAuthorizer};
use portico_registry::{Attributes, Objects, Operation, Result, ServedResource};

const GROUP: &str = "admissionregistration.k8s.io";
/// What decides about requests is not decided about by its own kind: it could never be mended.
const EXEMPT: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// See the module.
pub(crate) struct MatchTarget<'a> {
    pub(crate) attributes: Attributes<'a>,
    /// The resource of the request.
    pub(crate) resource: GroupVersionResource,
    /// The kind of the request.
    pub(crate) kind: GroupVersionKind,
    /// The namespace of the request; of a namespace its own name.
    pub(crate) namespace: &'a str,
    equivalents: OnceLock<Vec<Arc<ServedResource>>>,
    authorizer: OnceLock<Arc<UserAuthorizer>>,
    /// What expressions about the request may cost together.
    pub(crate) request_budget: ExpressionBudget,
}

impl<'a> MatchTarget<'a> {
    /// Nothing for a request that no webhook and no policy is asked about. Expressions about it may cost so much together.
    pub(crate) fn new(attributes: Attributes<'a>, cost_limit: u64) -> Option<Self> {
        let kind = attributes.kind();
        if kind.group == GROUP && EXEMPT.contains(&kind.kind.as_str()) {
            return None;
        }
        let resource = attributes.resource();
        let of_namespace = is_namespaces(&resource);
        let namespace = if of_namespace { attributes.name } else { attributes.namespace };
        let (equivalents, authorizer) = Default::default();
        let request_budget = ExpressionBudget::new(cost_limit);
        Some(Self { attributes, resource, kind, namespace, equivalents, authorizer, request_budget })
    }

    /// Whether it is about namespaces themselves.
    pub(crate) fn is_of_namespaces(&self) -> bool {
        is_namespaces(&self.resource)
    }

    /// Whether what is written says which labels its namespace has: the namespace itself.
    pub(crate) fn carries_namespace_labels(&self) -> bool {
        self.is_of_namespaces()
            && self.attributes.subresource().is_empty()
            && matches!(self.attributes.operation, Operation::Create | Operation::Update)
    }

    /// The other versions that serve the same objects.
    pub(crate) fn equivalents(&self, objects: &Objects) -> &[Arc<ServedResource>] {
        self.equivalents.get_or_init(|| self.attributes.equivalents(objects))
    }

    /// What expressions ask about the rights of the user of the request.
    pub(crate) fn authorizer(&self, objects: &Objects) -> &Arc<UserAuthorizer> {
        self.authorizer.get_or_init(|| {
            let user = Arc::new(self.attributes.context.user.clone());
            Arc::new(UserAuthorizer::new(user, Arc::clone(&objects.authorizer)))
        })
    }

    /// Evaluates expressions, and again until the authorizer has answered all that they ask. Returns how long the last evaluation
    /// took, too. One that takes long is begun anew on the threads for long work.
    ///
    /// # Errors
    /// 500 if the process ends.
    pub(crate) async fn evaluate<E: Send + Sync + 'static, T: Send + 'static>(
        &self,
        objects: &Objects,
        evaluator: &Arc<E>,
        subject: &Subject<'_>,
        evaluate: impl Fn(&E, &Subject<'_>) -> T + Copy + Send + 'static,
    ) -> Result<(T, Duration)> {
        loop {
            let (before, begun) = (self.request_budget.meter(), Instant::now());
            let evaluated = match self.request_budget.try_inline(|| evaluate(evaluator, subject)) {
                Some(outcome) => (outcome, begun.elapsed()),
                None => self.evaluate_long(objects, Arc::clone(evaluator), subject, evaluate).await?,
            };
            let Some(authorizer) = self.authorizer.get() else { return Ok(evaluated) };
            if !authorizer.settle().await {
                return Ok(evaluated);
            }
            self.request_budget.set_meter(before);
        }
    }

    async fn evaluate_long<E: Send + Sync + 'static, T: Send + 'static>(
        &self,
        objects: &Objects,
        evaluator: Arc<E>,
        subject: &Subject<'_>,
        evaluate: impl Fn(&E, &Subject<'_>) -> T + Send + 'static,
    ) -> Result<(T, Duration)> {
        let subject = subject.to_owned_subject(is_abandoned);
        let work = async move {
            let begun = Instant::now();
            let outcome = evaluate(&evaluator, &subject.as_subject());
            ((outcome, begun.elapsed()), subject.request_budget.meter())
        };
        let (evaluated, meter) = objects.compute(true, work).await?;
        self.request_budget.set_meter(meter);
        Ok(evaluated)
    }
}

fn is_namespaces(resource: &GroupVersionResource) -> bool {
    resource.group.is_empty() && resource.resource == "namespaces"
}

/// The objects of a request, in its own version.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'a> {
    /// What is written; the options of a connection; nothing for a delete.
    pub(crate) new: Option<&'a Object>,
    /// What is there; nothing for a create.
    pub(crate) old: Option<&'a Object>,
}
