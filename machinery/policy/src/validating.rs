//! ValidatingAdmissionPolicies as they are compiled, and what they say of a request (upstream's `validating.validator`).

use portico_cel::Value;

use crate::compiler::{Compiler, Purpose};
use crate::composition::{Composition, Evaluation};
use crate::conditions::{Conditions, Matched};
use crate::declarations::Release;
use crate::expression::{Expression, Problem};
use crate::subject::Subject;
use crate::{MAX_MESSAGE_BYTES, POLICY_BUDGET};

/// What a policy is made of, as it is written.
#[derive(Clone, Debug, Default)]
pub struct ValidatingSource<'s> {
    /// Whether there are parameters.
    pub params: bool,
    /// Whether a request fails when an expression does.
    pub fails: bool,
    /// What must hold for the policy to be about a request.
    pub conditions: Vec<&'s str>,
    /// Names and expressions.
    pub variables: Vec<(&'s str, &'s str)>,
    /// What must hold.
    pub validations: Vec<ValidationSource<'s>>,
    /// Keys and expressions of annotations for the audit log.
    pub annotations: Vec<(&'s str, &'s str)>,
}

/// One validation, as it is written; empty texts are absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct ValidationSource<'s> {
    /// What must hold.
    pub expression: &'s str,
    /// The message where it does not.
    pub message: &'s str,
    /// The same as an expression.
    pub message_expression: &'s str,
    /// The reason of the refusal.
    pub reason: &'s str,
}

/// A compiled policy.
#[derive(Debug)]
pub struct ValidatingPolicy {
    fails: bool,
    conditions: Conditions,
    composition: Composition,
    validations: Box<[Validation]>,
    annotations: Box<[(Box<str>, Expression)]>,
}

#[derive(Debug)]
struct Validation {
    expression: Expression,
    message: Box<str>,
    message_expression: Option<Expression>,
    reason: Box<str>,
}

/// A validation that refuses a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Which validation; 0 for what concerns the whole policy.
    pub index: usize,
    /// Why.
    pub message: String,
    /// The reason; empty where an expression failed.
    pub reason: String,
}

/// What a policy says of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What refuses it, as far as the actions of a binding say.
    pub denials: Vec<Denial>,
    /// Annotations for the audit log.
    pub annotations: Vec<(String, String)>,
    /// Annotations that failed and refuse the request whatever the actions say.
    pub failed_annotations: Vec<String>,
    /// Expressions that failed where a failure is ignored: why.
    pub ignored: Vec<String>,
    /// What its conditions say of the request.
    pub conditions: Concerned,
}

/// Whether a policy is about a request, as far as its conditions say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concerned {
    /// It is.
    #[default]
    Yes,
    /// It is not.
    No,
    /// They failed.
    Failed,
}

impl ValidatingPolicy {
    /// Compiles a stored policy; what does not compile is a failure of each evaluation.
    #[must_use]
    pub fn compile(source: &ValidatingSource<'_>) -> Self {
        let compiler = Compiler::composing(Release::Stored, source.params);
        let composition = Composition::compile(&compiler, source.variables.iter().copied());
        let validation = |of: &ValidationSource<'_>| Validation {
            expression: compiler.compile(Purpose::Validation, of.expression),
            message: of.message.trim().into(),
            message_expression: (!of.message_expression.is_empty())
                .then(|| compiler.compile(Purpose::Message, of.message_expression)),
            reason: of.reason.into(),
        };
        let annotation =
            |(key, text): &(&str, &str)| ((*key).into(), compiler.compile(Purpose::Annotation, text));
        Self {
            fails: source.fails,
            conditions: Conditions::compile(&compiler, source.conditions.iter().copied()),
            validations: source.validations.iter().map(validation).collect(),
            annotations: source.annotations.iter().map(annotation).collect(),
            composition,
        }
    }

    /// Whether conditions may leave out a request.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// Its expressions: conditions, variables, validations with their messages, then annotations.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let validations = self.validations.iter();
        let validations =
            validations.flat_map(|one| std::iter::once(&one.expression).chain(&one.message_expression));
        let annotations = self.annotations.iter().map(|(_, expression)| expression);
        let conditions = self.conditions.expressions().chain(self.composition.expressions());
        conditions.chain(validations).chain(annotations)
    }

    /// What it says of a request, within the budget of a policy.
    #[must_use]
    pub fn evaluate(&self, subject: &Subject<'_>) -> Verdict {
        match self.conditions.evaluate_with(&self.composition, subject) {
            Matched::Yes => {}
            Matched::No => return Verdict { conditions: Concerned::No, ..Verdict::default() },
            Matched::Failed(why) => return Verdict { conditions: Concerned::Failed, ..self.failed(why) },
        }
        let mut evaluation = Evaluation::new(&self.composition, subject, POLICY_BUDGET);
        let mut outcomes = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            match evaluation.evaluate(&validation.expression) {
                Err(Problem::OutOfBudget) => return self.failed(Problem::OutOfBudget.message().to_owned()),
                outcome => outcomes.push(outcome),
            }
        }
        let failures = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
        let ignored = failures.filter(|_| !self.fails).map(|problem| problem.message().to_owned()).collect();
        let denials = self.denials(subject, &outcomes, evaluation.budget());
        self.annotate(subject, Verdict { denials, ignored, ..Verdict::default() })
    }

    /// What refuses a request, by what came of the validations. Messages share what these have left of the budget.
    fn denials(
        &self,
        subject: &Subject<'_>,
        outcomes: &[Result<Value<'_>, Problem>],
        budget: u64,
    ) -> Vec<Denial> {
        let holds = |outcome: &Result<Value<'_>, Problem>| matches!(outcome, Ok(Value::Bool(true)));
        if outcomes.iter().all(holds) {
            return Vec::new();
        }
        let subject = subject.without_authorizer();
        let mut messages = Evaluation::new(&self.composition, &subject, budget);
        let mut denials = Vec::new();
        for (index, (validation, outcome)) in self.validations.iter().zip(outcomes).enumerate() {
            match outcome {
                Ok(Value::Bool(true)) => {}
                Ok(_) => denials.push(validation.denial(index, &mut messages)),
                Err(problem) if self.fails => {
                    let message = problem.message().to_owned();
                    denials.push(Denial { index, message, reason: String::new() });
                }
                Err(_) => {}
            }
        }
        denials
    }

    fn annotate(&self, subject: &Subject<'_>, mut verdict: Verdict) -> Verdict {
        if self.annotations.is_empty() {
            return verdict;
        }
        // Annotations compile with the authorizer, and upstream evaluates them without it.
        let subject = subject.without_authorizer();
        let mut evaluation = Evaluation::new(&self.composition, &subject, POLICY_BUDGET);
        for (key, expression) in &self.annotations {
            match evaluation.evaluate(expression) {
                Ok(Value::String(text)) if !text.trim().is_empty() => {
                    verdict.annotations.push((key.to_string(), text.trim().to_owned()));
                }
                Ok(_) => {}
                Err(Problem::OutOfBudget) => return self.failed(Problem::OutOfBudget.message().to_owned()),
                Err(problem) if self.fails => {
                    verdict.failed_annotations.push(problem.message().to_owned());
                }
                Err(_) => {}
            }
        }
        verdict
    }

    /// The whole policy has failed.
    fn failed(&self, message: String) -> Verdict {
        if !self.fails {
            return Verdict { ignored: vec![message], ..Verdict::default() };
        }
        let denial = Denial { index: 0, message, reason: String::new() };
        Verdict { denials: vec![denial], ..Verdict::default() }
    }
}

impl Validation {
    fn denial(&self, index: usize, messages: &mut Evaluation<'_, '_>) -> Denial {
        let reason = if self.reason.is_empty() { "Invalid" } else { &self.reason };
        Denial { index, message: self.message(messages), reason: reason.to_owned() }
    }

    /// What its message expression makes, unless that is unfit; else its message, else its expression.
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
