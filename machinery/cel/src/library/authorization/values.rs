//! Values of authorization checks, and the trait of authorizers.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::error::EvalError;
use crate::function::Call;
use crate::types::Type;
use crate::value::{Opaque, Value};

/// Name of the type of the variable `authorizer`.
pub const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
/// Name of the type of a check of a resource.
pub const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
pub(super) const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
pub(super) const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
pub(super) const DECISION: &str = "kubernetes.authorization.Decision";

/// Authorizer of one user's requests.
pub trait Authorizer: Send + Sync {
    /// Decides if the user may perform a verb.
    fn decide(&self, question: &Question, verb: &str) -> Decision;

    /// Returns an authorizer for a service account instead of the user.
    fn of_service_account(&self, namespace: &str, name: &str) -> Arc<dyn Authorizer>;

    /// Validates the namespace and name of a service account.
    ///
    /// # Errors
    /// kube-apiserver's message.
    fn check_service_account(&self, namespace: &str, name: &str) -> Result<(), &'static str>;
}

/// Target of a check, without the verb. Empty strings are unset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Path of a non-resource request.
    Path(String),
    /// Request for a resource.
    Resource {
        /// API group.
        group: String,
        /// Plural name of the resource.
        resource: String,
        /// Subresource of the resource.
        subresource: String,
        /// Namespace of the object.
        namespace: String,
        /// Name of the object.
        name: String,
        /// Field selector of a list or watch.
        field_selector: String,
        /// Label selector of a list or watch.
        label_selector: String,
    },
}

/// Decision of an authorizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// True if the request is allowed.
    pub allowed: bool,
    /// Reason, possibly empty.
    pub reason: String,
    /// Error while deciding.
    pub error: Option<String>,
}

/// Returns the value of the variable `authorizer`.
#[must_use]
pub fn authorizer<'v>(authorizer: Arc<dyn Authorizer>) -> Value<'v> {
    Value::opaque(AuthorizerValue(authorizer))
}

/// Returns the value of the variable `authorizer.requestResource`: a check whose target is set.
#[must_use]
pub fn resource_check<'v>(authorizer: Arc<dyn Authorizer>, question: Question) -> Value<'v> {
    Value::opaque(ResourceCheck { authorizer, question })
}

struct AuthorizerValue(Arc<dyn Authorizer>);

struct PathCheck {
    authorizer: Arc<dyn Authorizer>,
    path: String,
}

struct GroupCheck {
    authorizer: Arc<dyn Authorizer>,
    group: String,
}

#[derive(Clone)]
struct ResourceCheck {
    authorizer: Arc<dyn Authorizer>,
    question: Question,
}

/// Implements [`Opaque`] for values without equality, which print as their type.
macro_rules! receivers {
    ($($value:ty => $name:expr, $bytes:expr;)*) => {$(
        impl fmt::Debug for $value {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($name)
            }
        }

        impl Opaque for $value {
            fn type_of(&self) -> Type {
                Type::opaque($name)
            }

            fn equals(&self, _other: &dyn Opaque) -> Option<bool> {
                None
            }

            fn native(&self) -> String {
                $name.to_owned()
            }

            fn bytes(&self) -> usize {
                let bytes: fn(&Self) -> usize = $bytes;
                bytes(self)
            }

            fn as_any(&self) -> &dyn Any {
                self
            }
        }
    )*};
}

#[derive(Clone)]
struct DecisionValue(Decision);

receivers! {
    AuthorizerValue => AUTHORIZER, |_| 0;
    PathCheck => PATH_CHECK, |check| check.path.len();
    GroupCheck => GROUP_CHECK, |check| check.group.len();
    ResourceCheck => RESOURCE_CHECK, |check| check.question.bytes();
    DecisionValue => DECISION, |DecisionValue(decision)| decision.reason.len();
}

impl Question {
    /// Returns the size of all strings, in bytes.
    fn bytes(&self) -> usize {
        match self {
            Self::Path(path) => path.len(),
            Self::Resource {
                group,
                resource,
                subresource,
                namespace,
                name,
                field_selector,
                label_selector,
            } => [group, resource, subresource, namespace, name, field_selector, label_selector]
                .map(String::len)
                .into_iter()
                .sum(),
        }
    }
}

type Evaluated<'v> = Result<Value<'v>, EvalError>;

/// Returns the receiver of a call.
fn receiver<'c, T: Opaque>(call: &Call<'c, '_>) -> Result<&'c T, EvalError> {
    call.opaque(0)
}

pub(super) fn path<'v>(call: &Call<'_, 'v>) -> Evaluated<'v> {
    let (authorizer, path) = (&receiver::<AuthorizerValue>(call)?.0, call.str(1)?);
    if path.trim().is_empty() {
        return Err(EvalError::new("path must not be empty"));
    }
    Ok(Value::opaque(PathCheck { authorizer: Arc::clone(authorizer), path: path.to_owned() }))
}

pub(super) fn group<'v>(call: &Call<'_, 'v>) -> Evaluated<'v> {
    let authorizer = Arc::clone(&receiver::<AuthorizerValue>(call)?.0);
    Ok(Value::opaque(GroupCheck { authorizer, group: call.str(1)?.to_owned() }))
}

pub(super) fn service_account<'v>(call: &Call<'_, 'v>) -> Evaluated<'v> {
    let (authorizer, namespace, name) = (&receiver::<AuthorizerValue>(call)?.0, call.str(1)?, call.str(2)?);
    authorizer.check_service_account(namespace, name).map_err(EvalError::new)?;
    Ok(Value::opaque(AuthorizerValue(authorizer.of_service_account(namespace, name))))
}

pub(super) fn resource<'v>(call: &Call<'_, 'v>) -> Evaluated<'v> {
    let (of, resource) = (receiver::<GroupCheck>(call)?, call.str(1)?);
    if resource.trim().is_empty() {
        return Err(EvalError::new("resource must not be empty"));
    }
    let question = Question::Resource {
        group: of.group.clone(),
        resource: resource.to_owned(),
        subresource: String::new(),
        namespace: String::new(),
        name: String::new(),
        field_selector: String::new(),
        label_selector: String::new(),
    };
    Ok(Value::opaque(ResourceCheck { authorizer: Arc::clone(&of.authorizer), question }))
}

/// Functions that set one field of a resource check.
macro_rules! parts {
    ($($function:ident => $part:ident),*) => {$(
        pub(super) fn $function<'v>(call: &Call<'_, 'v>) -> Evaluated<'v> {
            let mut check = receiver::<ResourceCheck>(call)?.clone();
            if let Question::Resource { $part, .. } = &mut check.question {
                call.str(1)?.clone_into($part);
            }
            Ok(Value::opaque(check))
        }
    )*};
}

parts! {
    subresource => subresource,
    namespace => namespace,
    name => name,
    field_selector => field_selector,
    label_selector => label_selector
}

pub(super) fn check_path<'v>(call: &Call<'_, 'v>) -> Evaluated<'v> {
    let check = receiver::<PathCheck>(call)?;
    let question = Question::Path(check.path.clone());
    Ok(Value::opaque(DecisionValue(check.authorizer.decide(&question, call.str(1)?))))
}

pub(super) fn check_resource<'v>(call: &Call<'_, 'v>) -> Evaluated<'v> {
    let check = receiver::<ResourceCheck>(call)?;
    Ok(Value::opaque(DecisionValue(check.authorizer.decide(&check.question, call.str(1)?))))
}

pub(super) fn errored<'v>(call: &Call<'_, 'v>) -> Evaluated<'v> {
    Ok(Value::Bool(receiver::<DecisionValue>(call)?.0.error.is_some()))
}

pub(super) fn error<'v>(call: &Call<'_, 'v>) -> Evaluated<'v> {
    Ok(Value::text(receiver::<DecisionValue>(call)?.0.error.clone().unwrap_or_default()))
}

pub(super) fn allowed<'v>(call: &Call<'_, 'v>) -> Evaluated<'v> {
    Ok(Value::Bool(receiver::<DecisionValue>(call)?.0.allowed))
}

pub(super) fn reason<'v>(call: &Call<'_, 'v>) -> Evaluated<'v> {
    Ok(Value::text(receiver::<DecisionValue>(call)?.0.reason.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::library;

    /// Allows requests of service accounts in the namespace `open`.
    struct TestAuthorizer {
        account: String,
    }

    impl Authorizer for TestAuthorizer {
        fn decide(&self, question: &Question, verb: &str) -> Decision {
            let Question::Resource { namespace, .. } = question else {
                return Decision { error: Some("no paths".to_owned()), ..Decision::default() };
            };
            let allowed = namespace == "open" && !self.account.is_empty();
            Decision { allowed, reason: format!("{verb} by {:?}", self.account), error: None }
        }

        fn of_service_account(&self, namespace: &str, name: &str) -> Arc<dyn Authorizer> {
            Arc::new(Self { account: format!("{namespace}/{name}") })
        }

        fn check_service_account(&self, _namespace: &str, name: &str) -> Result<(), &'static str> {
            if name.is_empty() { Err("Invalid service account name") } else { Ok(()) }
        }
    }

    fn run(expression: &str) -> (Result<String, String>, u64) {
        let builder = Environment::builder().library(library::authorization()).unwrap();
        let environment = builder.variable("authorizer", Type::opaque(AUTHORIZER)).build();
        let program = environment.compile(expression).unwrap();
        let picky = authorizer(Arc::new(TestAuthorizer { account: String::new() }));
        let (value, cost) = program.evaluate(&[("authorizer", picky)], 1_000_000, &|| false);
        let printed = value.map(|value| match value {
            Value::Bool(yes) => yes.to_string(),
            other => other.as_str().unwrap().to_owned(),
        });
        (printed.map_err(|error| error.to_string()), cost)
    }

    #[test]
    fn checks_are_built_step_by_step_and_return_decisions() {
        let expression =
            "authorizer.serviceAccount('ns', 'me').group('').resource('pods').namespace('open').check('get')";
        let (allowed, cost) = run(&format!("{expression}.allowed()"));
        assert_eq!((allowed, cost), (Ok("true".to_owned()), 350_006));
        assert_eq!(run(&format!("{expression}.reason()")).0.unwrap(), r#"get by "ns/me""#);
        let other = "authorizer.group('').resource('pods').namespace('open').check('get').allowed()";
        assert_eq!(run(other).0.unwrap(), "false");
        assert_eq!(run("authorizer.path('/x').check('get').error()").0.unwrap(), "no paths");
        assert_eq!(run("authorizer.path('/x').check('get').errored()").0.unwrap(), "true");
    }

    #[test]
    fn invalid_checks_are_errors() {
        let errors = [
            ("authorizer.path(' ').check('get').allowed()", "path must not be empty"),
            ("authorizer.group('').resource('').check('get').allowed()", "resource must not be empty"),
            (
                "authorizer.serviceAccount('ns', '').path('/').check('get').allowed()",
                "Invalid service account name",
            ),
        ];
        for (expression, expected) in errors {
            assert_eq!(run(expression).0.unwrap_err(), expected, "{expression}");
        }
    }

    #[test]
    fn three_checks_exceed_the_budget_of_an_expression() {
        let expression = "authorizer.path('/x').check('get').allowed()";
        let (result, _) = run(&format!("[1, 2, 3].all(i, !{expression})"));
        assert!(result.unwrap_err().contains("cost"), "cost limit");
    }
}
