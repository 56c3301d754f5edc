//! SubjectAccessReview, SelfSubjectAccessReview, LocalSubjectAccessReview: what the authorizer says, told and not kept
//! (access kinds 3).

mod attributes;
mod validate;

use portico_auth::{Decision, Verdict};
use portico_machinery::gvk::GroupKind;
use portico_machinery::{Attributes, Object, Status};
use serde::Serialize;

use super::{Acting, Action, Asked, Outcome};
use crate::managed_fields::{self, manager_name};
use crate::registry::Part;
use crate::system;

/// Whose access is reviewed, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessReview {
    /// Of whom the spec names.
    Subject,
    /// Of the caller.
    Own,
    /// Of whom the spec names, in the request's namespace.
    Local,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answered<'a> {
    allowed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    denied: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    evaluation_error: &'a str,
}

impl Action for AccessReview {
    fn create<'a>(&'a self, asked: Asked<'a>) -> Acting<'a> {
        Box::pin(async move {
            let mut review = asked.body;
            if *self == Self::Local {
                system::settle_namespace(&mut review, true, asked.place.namespace)?;
            }
            let errors = validate::errors(*self, &review);
            if !errors.is_empty() {
                let kind = GroupKind { group: asked.served.resource.group.clone(), kind: String::new() };
                return Err(Box::new(Status::invalid(&kind, "", &errors)));
            }
            let (served, options) = (asked.served, asked.options);
            let manager = manager_name(&options.field_manager, &asked.context.user_agent);
            let versions = asked.inner.versions(served, Part::Main);
            let now = asked.inner.moment().now;
            managed_fields::track(&versions, &Object::default(), &mut review, &manager, now);
            let spec = review.at(&["spec"]);
            let user = match self {
                Self::Own => asked.context.user.clone(),
                Self::Subject | Self::Local => attributes::user(&spec),
            };
            let question = Attributes::new(user, attributes::request(&spec));
            let error = attributes::selector_errors(&spec.field("resourceAttributes")).join("; ");
            drop(spec);
            let decision = asked.inner.authorizer.authorize(&question);
            answer(&mut review, &decision, &error);
            Ok(Outcome::Made(review))
        })
    }
}

fn answer(review: &mut Object, decision: &Decision, evaluation_error: &str) {
    let status = Answered {
        allowed: decision.allowed(),
        denied: decision.verdict == Verdict::Deny,
        reason: &decision.reason,
        evaluation_error,
    };
    review.set(&["status"], status);
}
