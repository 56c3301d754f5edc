//! ControllerRevision: snapshot of the pod template of a StatefulSet or DaemonSet.

use portico_machinery::table::Cell;
use portico_machinery::{GroupVersion, Object};

use portico_registry::{Strategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::checks;

pub(crate) struct ControllerRevision;

impl Strategy for ControllerRevision {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        checks::not_negative(&new.at(&["revision"]), errors);
        let data = new.at(&["data"]);
        if !data.is_present() {
            errors.push(data.required("data is mandatory"));
        } else if !data.is_map() {
            errors.push(data.required("data must be a valid JSON object"));
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        checks::not_negative(&new.at(&["revision"]), errors);
        checks::unchanged(&new.at(&["data"]), &old.at(&["data"]), errors);
    }
}

impl TableStrategy for ControllerRevision {
    fn cell(&self, _function: &str, object: &Object) -> Cell {
        let owners = object.at(&["metadata", "ownerReferences"]);
        let controller = owners.items().find(|owner| owner.field("controller").bool());
        Cell::text(controller.map_or_else(
            || "<none>".to_owned(),
            |owner| {
                let group = owner.field("apiVersion").str().parse::<GroupVersion>().unwrap_or_default().group;
                let kind = owner.field("kind").str();
                let kind_and_group =
                    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
                format!("{}/{}", kind_and_group.to_lowercase(), owner.field("name").str())
            },
        ))
    }
}
