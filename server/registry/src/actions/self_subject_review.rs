//! SelfSubjectReview: who am I, after impersonation.

use portico_machinery::{Object, UserInfo, time};

use super::{Acting, Action, Asked, Outcome};

pub(super) struct SelfSubjectReview;

impl Action for SelfSubjectReview {
    fn create<'a>(&'a self, asked: Asked<'a>) -> Acting<'a> {
        Box::pin(async move {
            // Nothing of the body counts.
            let mut review = Object::new(&asked.served.info.gvk);
            review.set(&["metadata", "creationTimestamp"], time::rfc3339(asked.inner.moment().now));
            write_user(&mut review, &["status", "userInfo"], &asked.context.user);
            Ok(Outcome::Made(review))
        })
    }
}

/// Writes a user as authentication.k8s.io shows one.
pub(super) fn write_user(object: &mut Object, path: &[&str], user: &UserInfo) {
    let mut set = |field: &str, value: &dyn Fn(&mut Object, &[&str])| {
        let path: Vec<_> = path.iter().copied().chain([field]).collect();
        value(object, &path);
    };
    set("username", &|o, p| o.set(p, &user.name));
    set("uid", &|o, p| o.set(p, &user.uid));
    set("groups", &|o, p| o.set(p, &user.groups));
    set("extra", &|o, p| o.set(p, &user.extra));
}
