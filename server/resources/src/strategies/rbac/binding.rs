//! RoleBinding and ClusterRoleBinding: an immutable role reference and subjects.

use portico_machinery::rbac::GROUP;
use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object, names};

use portico_registry::{DecodeStrategy, RequestTime, Strategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::checks;

const SERVICE_ACCOUNT_KIND: &str = "ServiceAccount";
const USER_KIND: &str = "User";
const GROUP_KIND: &str = "Group";

/// Strategy of RoleBinding and ClusterRoleBinding.
pub(crate) struct Binding {
    /// True for RoleBinding.
    pub(crate) namespaced: bool,
}

impl DecodeStrategy for Binding {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        if object.at(&["roleRef", "apiGroup"]).str().is_empty() {
            object.set(&["roleRef", "apiGroup"], GROUP);
        }
        let lacks = |subject: &Cursor<'_>| {
            matches!(subject.field("kind").str(), USER_KIND | GROUP_KIND)
                && subject.field("apiGroup").str().is_empty()
        };
        if !object.at(&["subjects"]).items().any(|subject| lacks(&subject)) {
            return;
        }
        let subjects = object.at(&["subjects"]);
        let completed: Vec<_> = subjects
            .items()
            .filter_map(|subject| {
                let lacks = lacks(&subject);
                let mut subject = Object::from_node(subject.node()?).ok()?;
                if lacks {
                    subject.set(&["apiGroup"], GROUP);
                }
                Some(subject.into_node())
            })
            .collect();
        drop(subjects);
        object.set(&["subjects"], completed);
    }
}

impl Strategy for Binding {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let role = new.at(&["roleRef"]);
        let kinds: &[&str] = if self.namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
        for (field, supported) in [("apiGroup", &[GROUP][..]), ("kind", kinds)] {
            let at = role.field(field);
            if !supported.contains(&at.str()) {
                errors.push(at.not_supported(supported));
            }
        }
        checks::required(&role.field("name"), names::path_segment, errors);
        new.at(&["subjects"]).items().for_each(|subject| self.validate_subject(&subject, errors));
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        self.validate(new, errors);
        let role = new.at(&["roleRef"]);
        if !role.same_as(&old.at(&["roleRef"])) {
            let text = |field| role.field(field).str();
            let printed = format!(
                "{{\"APIGroup\":{:?},\"Kind\":{:?},\"Name\":{:?}}}",
                text("apiGroup"),
                text("kind"),
                text("name")
            );
            errors.push(role.invalid_as(&printed, "cannot change roleRef"));
        }
    }
}

impl TableStrategy for Binding {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        let subjects = |kind: &str| {
            let of_kind = object.at(&["subjects"]);
            let of_kind = of_kind.items().filter(|subject| subject.field("kind").str() == kind);
            let names = of_kind.map(|subject| match (kind, subject.field("name").str()) {
                (SERVICE_ACCOUNT_KIND, name) => format!("{}/{name}", subject.field("namespace").str()),
                (_, name) => name.to_owned(),
            });
            Cell::Text(names.collect::<Vec<_>>().join(", "))
        };
        match function.rsplit_once('-').map(|(_, column)| column) {
            Some("role") => {
                let role = object.at(&["roleRef"]);
                Cell::Text(format!("{}/{}", role.field("kind").str(), role.field("name").str()))
            }
            Some("users") => subjects(USER_KIND),
            Some("groups") => subjects(GROUP_KIND),
            Some("serviceaccounts") => subjects(SERVICE_ACCOUNT_KIND),
            _ => Cell::Null,
        }
    }
}

impl Binding {
    fn validate_subject(&self, subject: &Cursor<'_>, errors: &mut Errors) {
        let (name, group) = (subject.field("name"), subject.field("apiGroup"));
        if name.str().is_empty() {
            errors.push(name.required(""));
        }
        match subject.field("kind").str() {
            SERVICE_ACCOUNT_KIND => {
                checks::optional(&name, names::dns1123_subdomain, errors);
                if !group.str().is_empty() {
                    errors.push(group.not_supported(&[""]));
                }
                let namespace = subject.field("namespace");
                if !self.namespaced && namespace.str().is_empty() {
                    errors.push(namespace.required(""));
                }
            }
            USER_KIND | GROUP_KIND => {
                if group.str() != GROUP {
                    errors.push(group.not_supported(&[GROUP]));
                }
            }
            _ => errors.push(subject.field("kind").not_supported(&[
                SERVICE_ACCOUNT_KIND,
                USER_KIND,
                GROUP_KIND,
            ])),
        }
    }
}
