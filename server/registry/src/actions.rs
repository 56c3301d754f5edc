//! What a POST does that keeps no object of its own kind: reviews, bindings, evictions, tokens.
//!
//! An action sees the decoded body of its kind and answers with an object of that kind or with a Status. Each lives in a
//! file of its own; the table below is all that generic code knows of them.

mod access_review;
mod binding;
mod eviction;
mod rules_review;
mod self_review;
mod token_request;
mod token_review;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use portico_machinery::{Object, Status};

use crate::Result;
use crate::options::CreateOptions;
use crate::registry::{Context, Inner, Place};
use crate::served::Served;
use access_review::AccessReview;

/// What an action is asked.
pub(crate) struct Asked<'a> {
    /// What all verbs share.
    pub(crate) inner: &'a Arc<Inner>,
    /// Who asks.
    pub(crate) context: &'a Context,
    /// The kind of the resource in the path, which is the parent's for a subresource.
    pub(crate) served: &'a Served,
    /// The namespace of the path, and for a subresource the parent's name.
    pub(crate) place: Place<'a>,
    /// The options in the query.
    pub(crate) options: &'a CreateOptions,
    /// The body, decoded along the action's own kind; nothing is defaulted.
    pub(crate) body: Object,
}

/// What an action comes to.
pub(crate) enum Outcome {
    /// 201 with this object.
    Made(Object),
    /// The same, with what the caller and the audit log should know besides.
    Noted {
        /// What was made.
        object: Object,
        /// For the caller.
        warnings: Vec<String>,
        /// For the audit log: key and value.
        audit: Vec<(String, String)>,
    },
    /// This Status, under its own code.
    Said(Status),
}

/// An action on its way.
pub(crate) type Acting<'a> = Pin<Box<dyn Future<Output = Result<Outcome>> + Send + 'a>>;

/// A POST that keeps no object of its own kind.
pub(crate) trait Action: Send + Sync {
    /// Acts.
    fn create<'a>(&'a self, asked: Asked<'a>) -> Acting<'a>;
}

/// The action behind a resource (`subresource` empty) or a subresource.
pub(crate) fn of(group: &str, resource: &str, subresource: &str) -> Option<&'static dyn Action> {
    match (group, resource, subresource) {
        ("authorization.k8s.io", "subjectaccessreviews", "") => Some(&AccessReview::Subject),
        ("authorization.k8s.io", "selfsubjectaccessreviews", "") => Some(&AccessReview::Own),
        ("authorization.k8s.io", "localsubjectaccessreviews", "") => Some(&AccessReview::Local),
        ("authorization.k8s.io", "selfsubjectrulesreviews", "") => Some(&rules_review::RulesReview),
        ("authentication.k8s.io", "selfsubjectreviews", "") => Some(&self_review::SelfReview),
        ("", "serviceaccounts", "token") => Some(&token_request::TokenRequest),
        ("authentication.k8s.io", "tokenreviews", "") => Some(&token_review::TokenReview),
        ("", "bindings", "") | ("", "pods", "binding") => Some(&binding::Binding),
        ("", "pods", "eviction") => Some(&eviction::Eviction),
        _ => None,
    }
}
