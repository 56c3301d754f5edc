//! SelfSubjectReview: returns the user of the caller, after impersonation.

use portico_machinery::{Object, UserInfo, time};

use portico_registry::{Action, ActionFuture, ActionOutcome, ActionRequest};

/// Action of `POST selfsubjectreviews`.
pub(crate) struct SelfReview;

impl Action for SelfReview {
    fn create<'a>(&'a self, request: ActionRequest<'a>) -> ActionFuture<'a> {
        Box::pin(async move {
            let mut review = Object::new(&request.served_resource.info.gvk);
            review.set(
                &["metadata", "creationTimestamp"],
                time::rfc3339(request.verbs.objects.request_time().now),
            );
            write_user(&mut review, ["status", "userInfo"], &request.context.user);
            Ok(ActionOutcome::Created(review))
        })
    }
}

/// Writes a user in the form of authentication.k8s.io; encoding omits empty fields.
pub(super) fn write_user(object: &mut Object, [outer, inner]: [&str; 2], user: &UserInfo) {
    let UserInfo { name, uid, groups, extra } = user;
    object.set(&[outer, inner, "username"], name);
    object.set(&[outer, inner, "uid"], uid);
    object.set(&[outer, inner, "groups"], groups);
    object.set(&[outer, inner, "extra"], extra);
}
