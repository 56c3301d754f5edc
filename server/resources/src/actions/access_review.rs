//! SubjectAccessReview, SelfSubjectAccessReview and LocalSubjectAccessReview: return the decision of the authorizer and store
//! nothing.

mod attributes;
mod subject;
mod validate;

pub(crate) use subject::AccessReview;

use portico_auth::{Decision, Verdict};
use portico_machinery::gvk::GroupKind;
use portico_machinery::{Attributes, Object, Status};
use serde::Serialize;

use portico_registry::system;
use portico_registry::{Acting, Action, ActionRequest, Outcome, Pending, Result};

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
    fn ignores_namespace(&self) -> bool {
        *self == Self::Local
    }

    fn prepare<'a>(&'a self, request: &'a mut ActionRequest<'_>) -> Pending<'a, ()> {
        Box::pin(async { self.check(request) })
    }

    fn create<'a>(&'a self, request: ActionRequest<'a>) -> Acting<'a> {
        Box::pin(async move {
            let mut review = request.body;
            let spec = review.at(&["spec"]);
            let user = match self {
                Self::Own => request.context.user.clone(),
                Self::Subject | Self::Local => attributes::user(&spec),
            };
            let question = Attributes::new(user, attributes::request(&spec));
            let error = attributes::selector_errors(&spec.field("resourceAttributes")).join("; ");
            drop(spec);
            let decision = request.verbs.objects.authorizer.decide(&question).await;
            let errors = [&*decision.error, &error].into_iter().filter(|error| !error.is_empty());
            let errors = errors.collect::<Vec<_>>().join("; ");
            answer(&mut review, &decision, &errors);
            Ok(Outcome::Created(review))
        })
    }
}

impl AccessReview {
    fn check(&self, request: &mut ActionRequest<'_>) -> Result<()> {
        if *self == Self::Local {
            system::settle_namespace(&mut request.body, true, request.place.namespace)?;
        }
        let errors = validate::errors(*self, &request.body);
        if errors.is_empty() {
            return Ok(());
        }
        let kind = GroupKind { group: request.served.resource.group.clone(), kind: String::new() };
        Err(Box::new(Status::invalid(&kind, "", &errors)))
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
