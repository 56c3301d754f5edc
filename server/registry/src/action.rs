//! Actions: POST requests that do not store an object of the posted kind, such as reviews, bindings,
//! evictions and token requests.
//!
//! An action receives the decoded body and returns an object of the same kind, or a Status. The
//! [table](crate::table::ResourceTable) assigns actions to resources.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use portico_machinery::{Object, Status};

use crate::Result;
use crate::hooks::ResultFuture;
use crate::options::CreateOptions;
use crate::served_resource::ServedResource;
use crate::verb_types::{Context, ObjectPath};
use crate::verbs::Verbs;

/// Input of an action.
pub struct ActionRequest<'a> {
    /// Verbs for the reads and writes of the action.
    pub verbs: &'a Arc<Verbs>,
    /// Caller and User-Agent.
    pub context: &'a Context,
    /// The kind of the resource in the path, which is the parent's for a subresource.
    pub served_resource: &'a ServedResource,
    /// Namespace of the path; for a subresource also the name of the parent.
    pub path: ObjectPath<'a>,
    /// Options of the query.
    pub options: &'a CreateOptions,
    /// Body, decoded as the action's own kind, defaulted and in canonical form.
    pub body: Object,
}

/// Result of an action.
pub enum ActionOutcome {
    /// Status 201 with this object.
    Created(Object),
    /// Status 201 with this object, warnings and audit annotations.
    Annotated {
        /// Created object.
        object: Object,
        /// Warnings for the caller.
        warnings: Vec<String>,
        /// Keys and values of audit annotations.
        audit: Vec<(String, String)>,
    },
    /// This Status with its own code.
    Status(Box<Status>),
}

/// Future of an action.
pub type ActionFuture<'a> = Pin<Box<dyn Future<Output = Result<ActionOutcome>> + Send + 'a>>;

/// Handler of a POST that does not store an object of the posted kind.
pub trait Action: Send + Sync {
    /// True if the action must behave the same whether its namespace exists or not, so that callers cannot detect namespaces.
    fn ignores_namespace(&self) -> bool {
        false
    }

    /// Runs upstream's checks between mutating and validating admission, and fills in fields that validating admission sees.
    fn prepare<'a>(&'a self, _request: &'a mut ActionRequest<'_>) -> ResultFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Executes the action.
    fn create<'a>(&'a self, request: ActionRequest<'a>) -> ActionFuture<'a>;
}
