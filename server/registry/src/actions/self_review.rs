//! SelfSubjectReview: who the caller is, after impersonation.

use portico_machinery::{Object, UserInfo, time};

use super::{Acting, Action, Asked, Outcome};

/// See the module.
pub(super) struct SelfReview;

impl Action for SelfReview {
    fn create<'a>(&'a self, asked: Asked<'a>) -> Acting<'a> {
        Box::pin(async move {
            let mut review = Object::new(&asked.served.info.gvk);
            review.set(&["metadata", "creationTimestamp"], time::rfc3339(asked.inner.moment().now));
            write_user(&mut review, ["status", "userInfo"], &asked.context.user);
            Ok(Outcome::Made(review))
        })
    }
}

/// Writes a user as authentication.k8s.io shows one; what is empty is left to be left out.
pub(super) fn write_user(object: &mut Object, [outer, inner]: [&str; 2], user: &UserInfo) {
    let UserInfo { name, uid, groups, extra } = user;
    object.set(&[outer, inner, "username"], name);
    object.set(&[outer, inner, "uid"], uid);
    object.set(&[outer, inner, "groups"], groups);
    object.set(&[outer, inner, "extra"], extra);
}
