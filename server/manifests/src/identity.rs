//! Who writes what the folder says, and how objects show that they were made of it.

use portico_machinery::{Object, UserInfo, user};
use portico_registry::{Call, Context, Target};

/// The user.
const USER: &str = "system:portico:manifests";
/// Who owns the fields.
pub(crate) const FIELD_MANAGER: &str = "portico-manifests";
/// The label of objects that were made of the folder.
pub(crate) const LABEL: &str = "portico.dev/made-by";
/// Its value.
pub(crate) const MADE: &str = "manifests";

/// The user.
pub(crate) fn user() -> UserInfo {
    UserInfo::new(USER, [user::MASTERS]).authenticated()
}

/// A request of the user's, without a body.
pub(crate) fn call(verb: &str, target: Target) -> Call {
    Call {
        user: user(),
        target,
        verb: verb.to_owned(),
        content_type: "application/json".to_owned(),
        accept: "application/json".to_owned(),
        user_agent: FIELD_MANAGER.to_owned(),
        ..Call::default()
    }
}

/// The user of typed verbs.
pub(crate) fn context() -> Context {
    Context::new(user(), FIELD_MANAGER)
}

/// Whether an object was made of the folder.
pub(crate) fn is_made(object: &Object) -> bool {
    object.label(LABEL) == Some(MADE)
}
