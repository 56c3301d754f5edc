//! ValidatingAdmissionPolicies: failed validations deny the request, produce a warning or an audit annotation (upstream's
//! `validating.dispatcher`).

use std::sync::Arc;
use std::time::Duration;

use portico_machinery::object::{cut_at, to_go_json};
use portico_machinery::{Cursor, Object, Status};
use portico_policy::{
    Denial, EvaluationInput, Expression, MatchState, ValidatingPolicy, ValidatingPolicySource,
    ValidationOutcome, ValidationSource,
};
use portico_registry::{Objects, Result};

use super::binding::Action;
use super::explain::CompiledPolicy;
use super::hooks::{Hook, Hooks};
use super::invocations::{self, Invocation, Misconfiguration, PolicyNames, ResolvedBinding};
use super::policy::{CommonExpressions, Policy, fails_closed};
use super::refusal;
use crate::matching::{MatchTarget, ObjectPair, RuleMatch};
use crate::metrics::{HookLabels, Metrics};
use crate::policy_metrics::{BindingLabels, ErrorType};
use crate::request_view::RequestView;

/// Size of an audit annotation of a policy.
///
/// Limit (Admission and quota, bytes): the rest is omitted.
const MAX_ANNOTATION_BYTES: usize = 10 << 10;

/// Values of the metric labels for policies and their step.
const KIND: &str = "policy";
const STEP: &str = "validate";

impl Hooks<ValidatingPolicy> {
    /// Creates the source of all ValidatingAdmissionPolicies that have bindings.
    pub(crate) fn validating(metrics: Arc<Metrics>) -> Self {
        let compile = move |object: &Object| {
            Policy::read(object, metrics.policies.time_compilation(|| compile(object)))
        };
        Self::new("validatingadmissionpolicies", "validatingadmissionpolicybindings", compile)
    }
}

/// Evaluates the matches whose selectors match; returns the warnings for the caller.
///
/// # Errors
/// Message of the first failed validation, or 404 if the namespace does not exist.
pub(crate) async fn validate(
    matches: &[RuleMatch<Hook<ValidatingPolicy>>],
    objects: &Objects,
    target: &MatchTarget<'_>,
    metrics: &Metrics,
    pair: ObjectPair<'_>,
) -> Result<Vec<String>> {
    let validation = Validation {
        objects,
        target,
        metrics,
        pair,
        warnings: Vec::new(),
        refusal: None,
        annotations: Vec::new(),
    };
    validation.run(matches).await
}

impl CompiledPolicy for ValidatingPolicy {
    const MUTATES: bool = false;

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.expressions()
    }

    fn has_conditions(&self) -> bool {
        self.has_match_conditions()
    }
}

fn compile(object: &Object) -> ValidatingPolicy {
    let spec = object.at(&["spec"]);
    let CommonExpressions { conditions: match_conditions, variables } = CommonExpressions::read(&spec);
    let (validations, annotations) = (spec.field("validations"), spec.field("auditAnnotations"));
    ValidatingPolicy::compile(&ValidatingPolicySource {
        has_params: spec.field("paramKind").is_present(),
        fails_closed: fails_closed(&spec),
        match_conditions,
        variables,
        validations: validations.items().map(|at| validation(&at)).collect(),
        audit_annotations: annotations
            .items()
            .map(|at| (at.field("key").str(), at.field("valueExpression").str()))
            .collect(),
    })
}

fn validation<'s>(at: &Cursor<'s>) -> ValidationSource<'s> {
    ValidationSource {
        expression: at.field("expression").str(),
        message: at.field("message").str(),
        message_expression: at.field("messageExpression").str(),
        reason: at.field("reason").str(),
    }
}

/// Request in validation by all policies.
struct Validation<'a> {
    objects: &'a Objects,
    target: &'a MatchTarget<'a>,
    metrics: &'a Metrics,
    pair: ObjectPair<'a>,
    warnings: Vec<String>,
    /// The first refusal.
    refusal: Option<Box<Status>>,
    /// Audit annotations by key, with all values from the bindings of the policy.
    annotations: Vec<(String, Vec<String>)>,
}

impl<'a> Validation<'a> {
    async fn run(mut self, matches: &[RuleMatch<Hook<ValidatingPolicy>>]) -> Result<Vec<String>> {
        let Self { objects, target, pair, .. } = self;
        let found = invocations::resolve_invocations(objects, target, pair, matches).await?;
        let mut views: Vec<RequestView<'a>> = Vec::new();
        let mut namespace = None;
        for found in found {
            let invocation = match found {
                ResolvedBinding::Invocation(invocation) => invocation,
                ResolvedBinding::Misconfigured(misconfiguration) => {
                    self.handle_misconfiguration(&misconfiguration);
                    continue;
                }
            };
            if namespace.is_none() {
                namespace = Some(invocations::namespace(objects, target).await?);
            }
            let at =
                RequestView::find_or_convert(&mut views, objects, target, invocation.version.clone(), pair)
                    .await?;
            let subject = EvaluationInput {
                params: invocation.param.as_deref(),
                namespace: namespace.as_ref().and_then(Option::as_ref),
                ..views[at].subject(objects, target)
            };
            let evaluate = |policy: &Policy<ValidatingPolicy>, subject: &EvaluationInput<'_>| {
                policy.evaluator.evaluate(subject)
            };
            let (verdict, duration) = target.evaluate(objects, invocation.policy, &subject, evaluate).await?;
            drop(subject);
            self.metrics.policies.observe_evaluation(duration);
            self.apply_verdict(&invocation, verdict, duration);
        }
        for (key, values) in self.annotations {
            target.attributes.context.annotations.note(key, values.join(", "));
        }
        match self.refusal {
            Some(status) => Err(status.with_warnings(self.warnings)),
            None => Ok(self.warnings),
        }
    }

    fn apply_verdict(
        &mut self,
        invocation: &Invocation<'_, ValidatingPolicy>,
        verdict: ValidationOutcome,
        duration: Duration,
    ) {
        let Invocation { policy, binding, .. } = invocation;
        let ValidationOutcome { denials, ignored_errors, audit_annotations, failed_annotations, match_state } =
            verdict;
        self.count_conditions(&policy.name, match_state);
        let checked = BindingLabels { policy: &policy.name, binding: &binding.name };
        let metrics = &self.metrics.policies;
        for error in &ignored_errors {
            metrics.observe_validation(checked, ErrorType::from_message(error), "allow", duration);
        }
        for denial in &denials {
            for action in &binding.actions {
                metrics.observe_validation(
                    checked,
                    ErrorType::from_message(&denial.message),
                    action.label(),
                    duration,
                );
                match action {
                    Action::Deny => self.refuse(&invocation.names(), &denial.message, &denial.reason),
                    Action::Warn => self.warnings.push(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                        policy.name, binding.name, denial.message
                    )),
                    Action::Audit => self.annotate_failure(invocation, denial),
                }
            }
        }
        for error in failed_annotations {
            self.metrics.policies.observe_validation(
                checked,
                ErrorType::from_message(&error),
                Action::Deny.label(),
                duration,
            );
            self.refuse(&invocation.names(), &error, "");
        }
        for (key, value) in audit_annotations {
            self.annotate(&format!("{}/{key}", policy.name), cut_at(value, MAX_ANNOTATION_BYTES));
        }
    }

    fn count_conditions(&self, name: &str, conditions: MatchState) {
        let operation = self.target.attributes.operation_name();
        let labels = HookLabels { name, step: STEP, operation };
        match conditions {
            MatchState::Yes => {}
            MatchState::No => self.metrics.count_exclusion(labels, KIND),
            MatchState::Failed => self.metrics.count_condition_error(labels, KIND),
        }
    }

    /// Adds an audit annotation; equal values of several bindings are added once.
    fn annotate(&mut self, key: &str, value: String) {
        match self.annotations.iter_mut().find(|(existing, _)| existing == key) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => self.annotations.push((key.to_owned(), vec![value])),
        }
    }

    fn annotate_failure(&self, invocation: &Invocation<'_, ValidatingPolicy>, denial: &Denial) {
        let Invocation { policy, binding, .. } = invocation;
        let mut failure = Object::default();
        failure.set(&["message"], &denial.message);
        failure.set(&["policy"], &policy.name);
        failure.set(&["binding"], &binding.name);
        failure.set(&["expressionIndex"], denial.index);
        let actions: Vec<&str> = binding.actions.iter().map(|action| action.name()).collect();
        failure.set(&["validationActions"], actions);
        let value = format!("[{}]", String::from_utf8_lossy(&to_go_json(failure.map())));
        let key = "validation.policy.admission.k8s.io/validation_failure".to_owned();
        self.target.attributes.context.annotations.note(key, value);
    }

    /// Applies the failure policy to a policy or binding that cannot be used.
    fn handle_misconfiguration(&mut self, misconfiguration: &Misconfiguration<'_, ValidatingPolicy>) {
        if misconfiguration.policy.fails_closed {
            self.refuse(&misconfiguration.names(), &misconfiguration.message(), "");
        }
    }

    /// Records a refusal; the caller gets the first one.
    fn refuse(&mut self, names: &PolicyNames<'_>, message: &str, reason: &str) {
        let policy = names.policy;
        let message = match names.binding {
            Some(binding) => format!(
                "ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {message}"
            ),
            None => format!("ValidatingAdmissionPolicy '{policy}' denied request: {message}"),
        };
        if self.refusal.is_none() {
            self.refusal = Some(refusal::validation_failure(self.target, self.pair, &message, reason));
        }
    }
}
