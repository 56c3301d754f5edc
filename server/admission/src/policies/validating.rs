//! ValidatingAdmissionPolicies: failed validations deny the request, produce a warning or an audit annotation (upstream's
//! `validating.dispatcher`).

use std::sync::Arc;
use std::time::Duration;

use portico_machinery::object::{cut_at, to_go_json};
use portico_machinery::{Cursor, Object, Status};
use portico_policy::{
    Concerned, Denial, Expression, Subject, ValidatingPolicy, ValidatingSource, ValidationSource, Verdict,
};
use portico_registry::{Objects, Result};

use super::binding::Action;
use super::explain::Compiles;
use super::hooks::{Hook, Hooks};
use super::invocations::{self, Found, Invocation, Misconfigured, Names};
use super::policy::{Common, Policy, fails};
use super::refusal;
use crate::matching::{Match, MatchTarget, Pair};
use crate::metrics::{Counted, Metrics};
use crate::policy_metrics::{Checked, ErrorType};
use crate::shown::Shown;

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
        let compile =
            move |object: &Object| Policy::read(object, metrics.policies.compiling(|| compile(object)));
        Self::new("validatingadmissionpolicies", "validatingadmissionpolicybindings", compile)
    }
}

/// Evaluates the matches whose selectors match; returns the warnings for the caller.
///
/// # Errors
/// Message of the first failed validation, or 404 if the namespace does not exist.
pub(crate) async fn validate(
    matches: &[Match<Hook<ValidatingPolicy>>],
    objects: &Objects,
    target: &MatchTarget<'_>,
    metrics: &Metrics,
    pair: Pair<'_>,
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

impl Compiles for ValidatingPolicy {
    const MUTATES: bool = false;

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.expressions()
    }

    fn has_conditions(&self) -> bool {
        self.has_conditions()
    }
}

fn compile(object: &Object) -> ValidatingPolicy {
    let spec = object.at(&["spec"]);
    let Common { conditions, variables } = Common::read(&spec);
    let (validations, annotations) = (spec.field("validations"), spec.field("auditAnnotations"));
    ValidatingPolicy::compile(&ValidatingSource {
        params: spec.field("paramKind").is_present(),
        fails: fails(&spec),
        conditions,
        variables,
        validations: validations.items().map(|at| validation(&at)).collect(),
        annotations: annotations
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
    pair: Pair<'a>,
    warnings: Vec<String>,
    /// The first refusal.
    refusal: Option<Box<Status>>,
    /// Audit annotations by key, with all values from the bindings of the policy.
    annotations: Vec<(String, Vec<String>)>,
}

impl<'a> Validation<'a> {
    async fn run(mut self, matches: &[Match<Hook<ValidatingPolicy>>]) -> Result<Vec<String>> {
        let Self { objects, target, pair, .. } = self;
        let found = invocations::find(objects, target, pair, matches).await?;
        let mut shown: Vec<Shown<'a>> = Vec::new();
        let mut namespace = None;
        for found in found {
            let invocation = match found {
                Found::Invocation(invocation) => invocation,
                Found::Misconfigured(why) => {
                    self.misconfigured(&why);
                    continue;
                }
            };
            if namespace.is_none() {
                namespace = Some(invocations::namespace(objects, target).await?);
            }
            let at =
                Shown::find_or_make(&mut shown, objects, target, invocation.version.clone(), pair).await?;
            let subject = Subject {
                params: invocation.param.as_deref(),
                namespace: namespace.as_ref().and_then(Option::as_ref),
                ..shown[at].subject(objects, target)
            };
            let evaluate =
                |policy: &Policy<ValidatingPolicy>, subject: &Subject<'_>| policy.evaluator.evaluate(subject);
            let (verdict, took) = target.evaluate(objects, invocation.policy, &subject, evaluate).await?;
            drop(subject);
            self.metrics.policies.evaluated(took);
            self.carry_out(&invocation, verdict, took);
        }
        for (key, values) in self.annotations {
            target.attributes.context.annotations.note(key, values.join(", "));
        }
        match self.refusal {
            Some(status) => Err(status.with_warnings(self.warnings)),
            None => Ok(self.warnings),
        }
    }

    fn carry_out(&mut self, invocation: &Invocation<'_, ValidatingPolicy>, verdict: Verdict, took: Duration) {
        let Invocation { policy, binding, .. } = invocation;
        let Verdict { denials, ignored, annotations, failed_annotations, conditions } = verdict;
        self.count_conditions(&policy.name, conditions);
        let checked = Checked { policy: &policy.name, binding: &binding.name };
        let metrics = &self.metrics.policies;
        for why in &ignored {
            metrics.validated(checked, ErrorType::of(why), "allow", took);
        }
        for denial in &denials {
            for action in &binding.actions {
                metrics.validated(checked, ErrorType::of(&denial.message), action.label(), took);
                match action {
                    Action::Deny => self.refuse(&invocation.names(), &denial.message, &denial.reason),
                    Action::Warn => self.warnings.push(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                        policy.name, binding.name, denial.message
                    )),
                    Action::Audit => self.note_failure(invocation, denial),
                }
            }
        }
        for why in failed_annotations {
            self.metrics.policies.validated(checked, ErrorType::of(&why), Action::Deny.label(), took);
            self.refuse(&invocation.names(), &why, "");
        }
        for (key, value) in annotations {
            self.annotate(&format!("{}/{key}", policy.name), cut_at(value, MAX_ANNOTATION_BYTES));
        }
    }

    fn count_conditions(&self, name: &str, conditions: Concerned) {
        let operation = self.target.attributes.operation_name();
        let counted = Counted { name, step: STEP, operation };
        match conditions {
            Concerned::Yes => {}
            Concerned::No => self.metrics.excluded(counted, KIND),
            Concerned::Failed => self.metrics.condition_failed(counted, KIND),
        }
    }

    /// Adds an audit annotation; equal values of several bindings are added once.
    fn annotate(&mut self, key: &str, value: String) {
        match self.annotations.iter_mut().find(|(known, _)| known == key) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => self.annotations.push((key.to_owned(), vec![value])),
        }
    }

    fn note_failure(&self, invocation: &Invocation<'_, ValidatingPolicy>, denial: &Denial) {
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
    fn misconfigured(&mut self, why: &Misconfigured<'_, ValidatingPolicy>) {
        if why.policy.fails {
            self.refuse(&why.names(), &why.message(), "");
        }
    }

    /// Records a refusal; the caller gets the first one.
    fn refuse(&mut self, names: &Names<'_>, message: &str, reason: &str) {
        let policy = names.policy;
        let message = match names.binding {
            Some(binding) => format!(
                "ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {message}"
            ),
            None => format!("ValidatingAdmissionPolicy '{policy}' denied request: {message}"),
        };
        if self.refusal.is_none() {
            self.refusal = Some(refusal::of_validation(self.target, self.pair, &message, reason));
        }
    }
}
