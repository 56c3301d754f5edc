//! SelfSubjectReview: who the caller is, after impersonation.

use portico_machinery::{Object, UserInfo, time};

use super::{Acting, Action, Asked, Outcome};

/// See the module.
pub(super) struct SelfReview;

impl Action for SelfReview {
    fn create<'a>(&'a self, asked: Asked<'a>) -> Acting<'a> {
        Box::pin(async move {
            let UserInfo { name, uid, groups, extra } = &asked.context.user;
            let mut review = Object::new(&asked.served.info.gvk);
            review.set(&["metadata", "creationTimestamp"], time::rfc3339(asked.inner.moment().now));
            review.set(&["status", "userInfo", "username"], name);
            if !uid.is_empty() {
                review.set(&["status", "userInfo", "uid"], uid);
            }
            if !groups.is_empty() {
                review.set(&["status", "userInfo", "groups"], groups);
            }
            if !extra.is_empty() {
                review.set(&["status", "userInfo", "extra"], extra);
            }
            Ok(Outcome::Made(review))
        })
    }
}
