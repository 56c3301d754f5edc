//! Compiled ValidatingAdmissionPolicies and their evaluation (upstream's `validating.validator`).

use portico_cel::Value;

use crate::compiler::{Compiler, Purpose};
use crate::composition::{ComposedVariables, Evaluation};
use crate::declarations::EnvironmentType;
use crate::evaluation_input::EvaluationInput;
use crate::expression::{Expression, ExpressionError};
use crate::match_conditions::{MatchConditions, MatchResult};
use crate::{MAX_MESSAGE_BYTES, POLICY_BUDGET};

/// Source of a ValidatingAdmissionPolicy.
#[derive(Clone, Debug, Default)]
pub struct ValidatingPolicySource<'s> {
    /// True if the policy has parameters.
    pub has_params: bool,
    /// True if a request is denied when an expression fails (`failurePolicy: Fail`).
    pub fails_closed: bool,
    /// Match conditions.
    pub match_conditions: Vec<&'s str>,
    /// Names and expressions of variables.
    pub variables: Vec<(&'s str, &'s str)>,
    /// Validations of requests.
    pub validations: Vec<ValidationSource<'s>>,
    /// Keys and expressions of audit annotations.
    pub audit_annotations: Vec<(&'s str, &'s str)>,
}

/// Source of one validation. An empty text means that the field is absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct ValidationSource<'s> {
    /// Expression that must be true.
    pub expression: &'s str,
    /// Message of a denial.
    pub message: &'s str,
    /// Expression that computes the message of a denial.
    pub message_expression: &'s str,
    /// Reason of a denial.
    pub reason: &'s str,
}

/// Compiled ValidatingAdmissionPolicy.
#[derive(Debug)]
pub struct ValidatingPolicy {
    fails_closed: bool,
    match_conditions: MatchConditions,
    variables: ComposedVariables,
    validations: Box<[Validation]>,
    audit_annotations: Box<[(Box<str>, Expression)]>,
}

#[derive(Debug)]
struct Validation {
    expression: Expression,
    message: Box<str>,
    message_expression: Option<Expression>,
    reason: Box<str>,
}

/// Denial of a request by a validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Index of the validation; 0 if the whole policy failed.
    pub index: usize,
    /// Message for the client.
    pub message: String,
    /// Reason of the denial; empty if an expression failed.
    pub reason: String,
}

/// Result of a policy for a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationOutcome {
    /// Denials, to which the validation actions of the binding apply.
    pub denials: Vec<Denial>,
    /// Audit annotations.
    pub audit_annotations: Vec<(String, String)>,
    /// Errors of audit annotations, which deny the request regardless of the validation actions.
    pub failed_annotations: Vec<String>,
    /// Errors of expressions that the failure policy ignores.
    pub ignored_errors: Vec<String>,
    /// Result of the match conditions.
    pub match_state: MatchState,
}

/// State of the match conditions of a policy for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchState {
    /// The request matches.
    #[default]
    Yes,
    /// The request does not match.
    No,
    /// The evaluation of a match condition failed.
    Failed,
}

impl ValidatingPolicy {
    /// Compiles a stored policy. Invalid expressions fail when they are evaluated.
    #[must_use]
    pub fn compile(source: &ValidatingPolicySource<'_>) -> Self {
        let compiler = Compiler::with_variables(EnvironmentType::StoredExpressions, source.has_params);
        let variables = ComposedVariables::compile(&compiler, source.variables.iter().copied());
        let validation = |validation_source: &ValidationSource<'_>| Validation {
            expression: compiler.compile(Purpose::Validation, validation_source.expression),
            message: validation_source.message.trim().into(),
            message_expression: (!validation_source.message_expression.is_empty())
                .then(|| compiler.compile(Purpose::Message, validation_source.message_expression)),
            reason: validation_source.reason.into(),
        };
        let annotation =
            |(key, text): &(&str, &str)| ((*key).into(), compiler.compile(Purpose::Annotation, text));
        Self {
            fails_closed: source.fails_closed,
            match_conditions: MatchConditions::compile(&compiler, source.match_conditions.iter().copied()),
            validations: source.validations.iter().map(validation).collect(),
            audit_annotations: source.audit_annotations.iter().map(annotation).collect(),
            variables,
        }
    }

    /// True if the policy has match conditions.
    #[must_use]
    pub fn has_match_conditions(&self) -> bool {
        !self.match_conditions.is_empty()
    }

    /// Returns all expressions: match conditions, variables, validations with their messages, then audit annotations.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let validations = self.validations.iter();
        let validations =
            validations.flat_map(|one| std::iter::once(&one.expression).chain(&one.message_expression));
        let annotations = self.audit_annotations.iter().map(|(_, expression)| expression);
        let conditions = self.match_conditions.expressions().chain(self.variables.expressions());
        conditions.chain(validations).chain(annotations)
    }

    /// Evaluates the policy for a request, within the budget of a policy.
    #[must_use]
    pub fn evaluate(&self, input: &EvaluationInput<'_>) -> ValidationOutcome {
        match self.match_conditions.evaluate_with(&self.variables, input) {
            MatchResult::Yes => {}
            MatchResult::No => {
                return ValidationOutcome { match_state: MatchState::No, ..ValidationOutcome::default() };
            }
            MatchResult::Failed(error) => {
                return ValidationOutcome { match_state: MatchState::Failed, ..self.failed_outcome(error) };
            }
        }
        let mut evaluation = Evaluation::new(&self.variables, input, POLICY_BUDGET);
        let mut outcomes = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            match evaluation.evaluate(&validation.expression) {
                Err(ExpressionError::OutOfBudget) => {
                    return self.failed_outcome(ExpressionError::OutOfBudget.message().to_owned());
                }
                outcome => outcomes.push(outcome),
            }
        }
        let failures = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
        let ignored_errors =
            failures.filter(|_| !self.fails_closed).map(|problem| problem.message().to_owned()).collect();
        let denials = self.denials(input, &outcomes, evaluation.budget());
        self.annotate(input, ValidationOutcome { denials, ignored_errors, ..ValidationOutcome::default() })
    }

    /// Returns the denials that follow from the outcomes of the validations. Message expressions share the remaining budget.
    fn denials(
        &self,
        input: &EvaluationInput<'_>,
        outcomes: &[Result<Value<'_>, ExpressionError>],
        budget: u64,
    ) -> Vec<Denial> {
        let holds = |outcome: &Result<Value<'_>, ExpressionError>| matches!(outcome, Ok(Value::Bool(true)));
        if outcomes.iter().all(holds) {
            return Vec::new();
        }
        let unauthorized_input = input.without_authorizer();
        let mut messages = Evaluation::new(&self.variables, &unauthorized_input, budget);
        let mut denials = Vec::new();
        for (index, (validation, outcome)) in self.validations.iter().zip(outcomes).enumerate() {
            match outcome {
                Ok(Value::Bool(true)) => {}
                Ok(_) => denials.push(validation.denial(index, &mut messages)),
                Err(problem) if self.fails_closed => {
                    let message = problem.message().to_owned();
                    denials.push(Denial { index, message, reason: String::new() });
                }
                Err(_) => {}
            }
        }
        denials
    }

    fn annotate(&self, input: &EvaluationInput<'_>, mut verdict: ValidationOutcome) -> ValidationOutcome {
        if self.audit_annotations.is_empty() {
            return verdict;
        }
        // Upstream compiles audit annotations with the authorizer, but evaluates them without it.
        let unauthorized_input = input.without_authorizer();
        let mut evaluation = Evaluation::new(&self.variables, &unauthorized_input, POLICY_BUDGET);
        for (key, expression) in &self.audit_annotations {
            match evaluation.evaluate(expression) {
                Ok(Value::String(text)) if !text.trim().is_empty() => {
                    verdict.audit_annotations.push((key.to_string(), text.trim().to_owned()));
                }
                Ok(_) => {}
                Err(ExpressionError::OutOfBudget) => {
                    return self.failed_outcome(ExpressionError::OutOfBudget.message().to_owned());
                }
                Err(problem) if self.fails_closed => {
                    verdict.failed_annotations.push(problem.message().to_owned());
                }
                Err(_) => {}
            }
        }
        verdict
    }

    /// Result of a policy that failed as a whole.
    fn failed_outcome(&self, message: String) -> ValidationOutcome {
        if !self.fails_closed {
            return ValidationOutcome { ignored_errors: vec![message], ..ValidationOutcome::default() };
        }
        let denial = Denial { index: 0, message, reason: String::new() };
        ValidationOutcome { denials: vec![denial], ..ValidationOutcome::default() }
    }
}

impl Validation {
    fn denial(&self, index: usize, messages: &mut Evaluation<'_, '_>) -> Denial {
        let reason = if self.reason.is_empty() { "Invalid" } else { &self.reason };
        Denial { index, message: self.message(messages), reason: reason.to_owned() }
    }

    /// Returns the value of the message expression if it is valid, otherwise the message, otherwise a text with the expression.
    fn message(&self, messages: &mut Evaluation<'_, '_>) -> String {
        let evaluated = self.message_expression.as_ref().and_then(|expression| {
            let value = messages.evaluate(expression).ok()?;
            let text = value.as_str()?.trim().to_owned();
            let fit = !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n');
            fit.then_some(text)
        });
        evaluated.unwrap_or_else(|| match &*self.message {
            "" => format!("failed expression: {}", self.expression.text().trim()),
            message => message.to_owned(),
        })
    }
}
