//! SubjectAccessReview, SelfSubjectAccessReview and LocalSubjectAccessReview: return the decision of the authorizer, which is
//! not stored.

mod attributes;
mod subject;
mod validate;

pub(crate) use subject::AccessReview;

use portico_auth::{Decision, Verdict};
use portico_machinery::gvk::GroupKind;
use portico_machinery::{Attributes, Object, Status};
use serde::Serialize;

use portico_registry::system;
use portico_registry::{Action, ActionFuture, ActionOutcome, ActionRequest, Result, ResultFuture};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AccessReviewStatus<'a> {
    allowed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    denied: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    evaluation_error: &'a str,
}

impl Action for AccessReview {
    fn ignores_namespace(&self) -> bool {
        *self == Self::LocalSubject
    }

    fn prepare<'a>(&'a self, request: &'a mut ActionRequest<'_>) -> ResultFuture<'a, ()> {
        Box::pin(async { self.check(request) })
    }

    fn create<'a>(&'a self, request: ActionRequest<'a>) -> ActionFuture<'a> {
        Box::pin(async move {
            let mut review = request.body;
            let spec = review.at(&["spec"]);
            let user = match self {
                Self::SelfSubject => request.context.user.clone(),
                Self::Subject | Self::LocalSubject => attributes::user(&spec),
            };
            let attributes = Attributes::new(user, attributes::request(&spec));
            let error = attributes::selector_errors(&spec.field("resourceAttributes")).join("; ");
            drop(spec);
            let decision = request.verbs.objects.authorizer.decide(&attributes).await;
            let errors = [&*decision.error, &error].into_iter().filter(|error| !error.is_empty());
            let errors = errors.collect::<Vec<_>>().join("; ");
            set_status(&mut review, &decision, &errors);
            Ok(ActionOutcome::Created(review))
        })
    }
}

impl AccessReview {
    fn check(&self, request: &mut ActionRequest<'_>) -> Result<()> {
        if *self == Self::LocalSubject {
            system::default_namespace(&mut request.body, true, request.path.namespace)?;
        }
        let errors = validate::errors(*self, &request.body);
        if errors.is_empty() {
            return Ok(());
        }
        let kind = GroupKind { group: request.served_resource.resource.group.clone(), kind: String::new() };
        Err(Box::new(Status::invalid(&kind, "", &errors)))
    }
}

fn set_status(review: &mut Object, decision: &Decision, evaluation_error: &str) {
    let status = AccessReviewStatus {
        allowed: decision.is_allowed(),
        denied: decision.verdict == Verdict::Deny,
        reason: &decision.reason,
        evaluation_error,
    };
    review.set(&["status"], status);
}
