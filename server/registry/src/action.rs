//! A POST that keeps no object of its own kind: reviews, bindings, evictions, tokens.
//!
//! An action sees the decoded body of its kind and answers with an object of that kind or with a Status. Which action stands
//! behind a resource is a row of the [table](crate::table::ResourceTable).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use portico_machinery::{Object, Status};

use crate::Result;
use crate::hooks::Pending;
use crate::options::CreateOptions;
use crate::served::ServedResource;
use crate::typed::{Context, Place};
use crate::verbs::Verbs;

/// What an action is given.
pub struct ActionRequest<'a> {
    /// The verbs, for whatever the action reads and writes.
    pub verbs: &'a Arc<Verbs>,
    /// Who asks.
    pub context: &'a Context,
    /// The kind of the resource in the path, which is the parent's for a subresource.
    pub served: &'a ServedResource,
    /// The namespace of the path, and for a subresource the parent's name.
    pub place: Place<'a>,
    /// The options in the query.
    pub options: &'a CreateOptions,
    /// The body, decoded along the action's own kind, defaulted and in canonical form.
    pub body: Object,
}

/// What an action comes to.
pub enum Outcome {
    /// 201 with this object.
    Created(Object),
    /// The same, with warnings and annotations for the audit log.
    Annotated {
        /// What was made.
        object: Object,
        /// For the caller.
        warnings: Vec<String>,
        /// For the audit log: key and value.
        audit: Vec<(String, String)>,
    },
    /// This Status, under its own code.
    Status(Box<Status>),
}

/// An action under way.
pub type Acting<'a> = Pin<Box<dyn Future<Output = Result<Outcome>> + Send + 'a>>;

/// A POST that keeps no object of its own kind.
pub trait Action: Send + Sync {
    /// True if the action works whether its namespace exists or not, which its callers must not learn from it.
    fn ignores_namespace(&self) -> bool {
        false
    }

    /// Checks what upstream checks between the two halves of admission, and fills in what the second half sees.
    fn prepare<'a>(&'a self, _request: &'a mut ActionRequest<'_>) -> Pending<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Acts.
    fn create<'a>(&'a self, request: ActionRequest<'a>) -> Acting<'a>;
}
