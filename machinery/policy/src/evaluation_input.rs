//! Input of expressions: a request and its objects.

use std::sync::{Arc, LazyLock};

use portico_cel::library::authorization::{self, Authorizer, Question};
use portico_cel::value::Map;
use portico_cel::{DeclType, Value};
use portico_machinery::{GroupVersionResource, Object};

use crate::budget::ExpressionBudget;

/// Object that is decoded when an expression uses it.
pub type LazyObject = LazyLock<Object, Box<dyn FnOnce() -> Object + Send>>;

/// Request and its objects, in the version that a policy or webhook matched.
#[derive(Clone)]
pub struct EvaluationInput<'a> {
    /// New object; `None` for a delete.
    pub object: Option<&'a Object>,
    /// Old object; `None` for a create.
    pub old_object: Option<&'a Object>,
    /// Request, encoded by [`crate::AdmissionRequest`].
    pub request: &'a LazyObject,
    /// Parameters of a policy.
    pub params: Option<&'a Object>,
    /// Namespace of the object.
    pub namespace: Option<&'a LazyObject>,
    /// Authorizer for the user; `None` if expressions must not use it.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// Budget that all expressions for the request share.
    pub request_budget: &'a ExpressionBudget,
    /// Resource of the request, for `authorizer.requestResource`.
    pub resource: &'a GroupVersionResource,
}

/// Copy of an [`EvaluationInput`] for another thread.
pub struct OwnedEvaluationInput {
    object: Option<Object>,
    old_object: Option<Object>,
    request: LazyObject,
    params: Option<Object>,
    namespace: Option<LazyObject>,
    authorizer: Option<Arc<dyn Authorizer>>,
    /// Remaining budget of the expressions.
    pub request_budget: ExpressionBudget,
    resource: GroupVersionResource,
}

impl OwnedEvaluationInput {
    /// Borrows the input.
    #[must_use]
    pub fn as_input(&self) -> EvaluationInput<'_> {
        EvaluationInput {
            object: self.object.as_ref(),
            old_object: self.old_object.as_ref(),
            request: &self.request,
            params: self.params.as_ref(),
            namespace: self.namespace.as_ref(),
            authorizer: self.authorizer.clone(),
            request_budget: &self.request_budget,
            resource: &self.resource,
        }
    }
}

impl<'a> EvaluationInput<'a> {
    /// Copies the objects, for evaluations that end once `is_abandoned` returns true.
    #[must_use]
    pub fn to_owned_input(&self, is_abandoned: fn() -> bool) -> OwnedEvaluationInput {
        OwnedEvaluationInput {
            object: self.object.cloned(),
            old_object: self.old_object.cloned(),
            request: copy(self.request),
            params: self.params.cloned(),
            namespace: self.namespace.map(copy),
            authorizer: self.authorizer.clone(),
            request_budget: self.request_budget.to_other_thread(is_abandoned),
            resource: self.resource.clone(),
        }
    }

    /// Returns the input without the authorizer.
    pub(crate) fn without_authorizer(&self) -> Self {
        Self { authorizer: None, ..self.clone() }
    }

    /// Returns the value of a variable, or `None` for composed variables and unknown names.
    pub(crate) fn variable(&self, name: &str) -> Option<Value<'a>> {
        Some(match name {
            "object" => value(self.object),
            "oldObject" => value(self.old_object),
            "request" => value(Some(self.request)),
            "params" => value(self.params),
            "namespaceObject" => value(self.namespace.map(|namespace| &**namespace)),
            "authorizer" => authorization::authorizer(Arc::clone(self.authorizer.as_ref()?)),
            "authorizer.requestResource" => {
                authorization::resource_check(Arc::clone(self.authorizer.as_ref()?), self.request_check())
            }
            _ => return None,
        })
    }

    /// Returns the check of `authorizer.requestResource`: the resource and object of the request.
    fn request_check(&self) -> Question {
        let text = |field: &'static str| self.request.at(&[field]).str().to_owned();
        Question::Resource {
            group: self.resource.group.clone(),
            resource: self.resource.resource.clone(),
            subresource: text("subResource"),
            namespace: text("namespace"),
            name: text("name"),
            field_selector: String::new(),
            label_selector: String::new(),
        }
    }
}

fn copy(object: &LazyObject) -> LazyObject {
    let object = Object::clone(object);
    LazyObject::new(Box::new(move || object))
}

/// Converts an object to JSON without a schema, as upstream; `None` becomes null.
fn value(object: Option<&Object>) -> Value<'_> {
    object.map_or(Value::Null, |object| {
        Value::Map(Map::Json { members: object.map(), of: DeclType::dynamic() })
    })
}
