//! What expressions are evaluated over.

use std::sync::{Arc, LazyLock};

use portico_cel::library::authorization::{self, Authorizer, Question};
use portico_cel::value::Map;
use portico_cel::{DeclType, Value};
use portico_machinery::{GroupVersionResource, Object};

use crate::budget::ExpressionBudget;

/// An object that is read when an expression names it.
pub type LazyObject = LazyLock<Object, Box<dyn FnOnce() -> Object + Send>>;

/// A request and the objects that it is about, in the version in which a policy or webhook sees them.
#[derive(Clone)]
pub struct Subject<'a> {
    /// What is written; nothing for a delete.
    pub object: Option<&'a Object>,
    /// What is there; nothing for a create.
    pub old: Option<&'a Object>,
    /// The request, as [`crate::Request`] encodes it.
    pub request: &'a LazyObject,
    /// The parameters of a policy.
    pub params: Option<&'a Object>,
    /// The namespace of what is written.
    pub namespace: Option<&'a LazyObject>,
    /// Who knows what the user may do; nothing where expressions may not ask.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// What all expressions about the request may cost together.
    pub request_budget: &'a ExpressionBudget,
    /// The resource of the request, for questions about itself.
    pub resource: &'a GroupVersionResource,
}

/// A copy of a [`Subject`] for another thread.
pub struct OwnedSubject {
    object: Option<Object>,
    old: Option<Object>,
    request: LazyObject,
    params: Option<Object>,
    namespace: Option<LazyObject>,
    authorizer: Option<Arc<dyn Authorizer>>,
    /// Remaining budget of the expressions.
    pub request_budget: ExpressionBudget,
    resource: GroupVersionResource,
}

impl OwnedSubject {
    /// The subject.
    #[must_use]
    pub fn as_subject(&self) -> Subject<'_> {
        Subject {
            object: self.object.as_ref(),
            old: self.old.as_ref(),
            request: &self.request,
            params: self.params.as_ref(),
            namespace: self.namespace.as_ref(),
            authorizer: self.authorizer.clone(),
            request_budget: &self.request_budget,
            resource: &self.resource,
        }
    }
}

impl<'a> Subject<'a> {
    /// Copies the objects, for evaluations that end once `is_abandoned` returns true.
    #[must_use]
    pub fn to_owned_subject(&self, is_abandoned: fn() -> bool) -> OwnedSubject {
        OwnedSubject {
            object: self.object.cloned(),
            old: self.old.cloned(),
            request: copy(self.request),
            params: self.params.cloned(),
            namespace: self.namespace.map(copy),
            authorizer: self.authorizer.clone(),
            request_budget: self.request_budget.to_other_thread(is_abandoned),
            resource: self.resource.clone(),
        }
    }

    /// The same where expressions may not ask the authorizer.
    pub(crate) fn without_authorizer(&self) -> Self {
        Self { authorizer: None, ..self.clone() }
    }

    /// The value of a variable of expressions; nothing for those that are made of expressions themselves.
    pub(crate) fn variable(&self, name: &str) -> Option<Value<'a>> {
        Some(match name {
            "object" => value(self.object),
            "oldObject" => value(self.old),
            "request" => value(Some(self.request)),
            "params" => value(self.params),
            "namespaceObject" => value(self.namespace.map(|namespace| &**namespace)),
            "authorizer" => authorization::authorizer(Arc::clone(self.authorizer.as_ref()?)),
            "authorizer.requestResource" => {
                authorization::resource_check(Arc::clone(self.authorizer.as_ref()?), self.question())
            }
            _ => return None,
        })
    }

    /// May the user do something to what the request is about?
    fn question(&self) -> Question {
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

/// An object as JSON without a schema, as upstream shows objects to expressions; null where there is none.
fn value(object: Option<&Object>) -> Value<'_> {
    object.map_or(Value::Null, |object| {
        Value::Map(Map::Json { members: object.map(), of: DeclType::dynamic() })
    })
}
