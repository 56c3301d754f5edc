//! User and field manager of writes, and the label of objects created from the folder.

use portico_machinery::object::Cursor;
use portico_machinery::{Object, UserInfo, user};
use portico_registry::{Call, Context, Target};

/// User name of the writes.
const USER: &str = "system:portico:manifests";
/// Field manager of the writes.
pub(crate) const FIELD_MANAGER: &str = "portico-manifests";
/// Label of objects that were created from the folder.
pub(crate) const LABEL: &str = portico_machinery::annotations::MADE_BY;
/// Value of the label.
pub(crate) const LABEL_VALUE: &str = "manifests";

/// Returns the user of the writes.
pub(crate) fn user() -> UserInfo {
    UserInfo::new(USER, [user::MASTERS]).with_authenticated_group()
}

/// Returns a request of this user, without a body.
pub(crate) fn request(verb: &str, target: Target) -> Call {
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

/// Returns the context for typed verbs.
pub(crate) fn context() -> Context {
    Context::new(user(), FIELD_MANAGER)
}

/// Returns true if an object was created from the folder. The label alone is not sufficient: users copy objects with their
/// labels, and controllers copy labels to the objects that they create. The folder's field manager must own the label, and
/// the object must not have a controller.
pub(crate) fn is_created_from_folder(object: &Object) -> bool {
    object.label(LABEL) == Some(LABEL_VALUE) && owns_label(object) && !has_controller(object)
}

/// Returns true if a controller manages the object.
pub(crate) fn has_controller(object: &Object) -> bool {
    object.owner_references().iter().any(|owner| owner.controller == Some(true))
}

/// Returns true if the folder's field manager owns the label.
fn owns_label(object: &Object) -> bool {
    let field = format!("f:{LABEL}");
    let owns = |writer: Cursor<'_>| {
        let text = |name| writer.field(name).str();
        let labels = writer.field("fieldsV1").field("f:metadata").field("f:labels");
        text("manager") == FIELD_MANAGER
            && text("operation") == "Apply"
            && text("subresource").is_empty()
            && labels.key(&field).is_present()
    };
    object.at(&["metadata", "managedFields"]).items().any(owns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result for an object with the label and additional metadata.
    fn is_created_with(metadata: &str) -> bool {
        let label = r#""labels": {"portico.dev/made-by": "manifests"}"#;
        let json = format!(r#"{{"metadata": {{{label}{metadata}}}}}"#);
        is_created_from_folder(&Object::from_json(json.as_bytes()).unwrap())
    }

    #[test]
    fn the_label_counts_only_if_the_folder_owns_it_and_there_is_no_controller() {
        let writer = |manager: &str, operation: &str, field: &str| {
            format!(
                r#", "managedFields": [{{"manager": "x"}}, {{"manager": "{manager}", "operation": "{operation}",
                   "fieldsV1": {{"f:metadata": {{"f:labels": {{"f:{field}": {{}}}}}}}}}}]"#
            )
        };
        let owned_label = writer(FIELD_MANAGER, "Apply", LABEL);
        assert!(is_created_with(&owned_label));
        assert!(!is_created_with(""));
        assert!(!is_created_with(&writer("kubectl-create", "Update", LABEL)));
        assert!(!is_created_with(&writer(FIELD_MANAGER, "Update", LABEL)));
        assert!(!is_created_with(&writer(FIELD_MANAGER, "Apply", "color")));
        let owner = |controller: bool| {
            format!(
                r#"{owned_label}, "ownerReferences": [{{"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "u", "controller": {controller}}}]"#
            )
        };
        assert!(is_created_with(&owner(false)) && !is_created_with(&owner(true)));
    }
}
