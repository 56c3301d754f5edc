//! ResourceClaim: a wish for devices that never changes, and a status that lists which it got and who uses them.

use portico_machinery::table::Cell;
use portico_machinery::{GroupResource, Object, Status};
use portico_store::Operation;

use super::{claim, claim_status};
use portico_registry::Result;
use portico_registry::{Beginning, Objects, Pending, TransactionHooks, Write, WritePermissions};
use portico_registry::{DecodeStrategy, Moment, Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::checks;

const DEVICES: [&str; 2] = ["spec", "devices"];
const ADMIN_LABEL: &str = "resource.kubernetes.io/admin-access";

/// See the module.
pub(crate) struct ResourceClaim;

impl DecodeStrategy for ResourceClaim {
    fn default(&self, object: &mut Object, _moment: Moment) {
        claim::default(object, &DEVICES);
    }
}

impl Strategy for ResourceClaim {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        claim::validate(&new.at(&DEVICES), errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        checks::unchanged(&new.at(&["spec"]), &old.at(&["spec"]), errors);
    }
}

impl SubresourceStrategy for ResourceClaim {
    fn prepare_status(&self, new: &mut Object, old: &Object) {
        claim_status::drop_deallocated(new, old);
    }

    fn validate_status(&self, new: &Object, old: &Object, errors: &mut Errors) {
        claim_status::validate(new, old, errors);
    }
}

impl WritePermissions for ResourceClaim {
    fn denied<'a>(&'a self, objects: &'a Objects, write: Write<'a>) -> Pending<'a, Errors> {
        Box::pin(async move { Ok(claim_status::denied(objects, write).await) })
    }
}

impl TableStrategy for ResourceClaim {
    fn cell(&self, _function: &str, object: &Object) -> Cell {
        let mut states = Vec::new();
        let status = object.at(&["status"]);
        let (deleting, allocated) =
            (object.deletion_timestamp().is_some(), status.field("allocation").is_present());
        if deleting {
            states.push("deleted");
        }
        if allocated {
            states.push("allocated");
        } else if !deleting {
            states.push("pending");
        }
        if allocated && !status.field("reservedFor").is_empty() {
            states.push("reserved");
        }
        Cell::text(states.join(","))
    }
}

impl TransactionHooks for ResourceClaim {
    fn begin<'a>(&'a self, write: Beginning<'a>, new: &'a mut Object) -> Pending<'a, Vec<Operation>> {
        Box::pin(check_admin_access(write, new, &DEVICES))
    }
}

/// Who asks for devices in spite of their users must do so in a namespace that is marked for it.
pub(super) async fn check_admin_access(
    write: Beginning<'_>,
    new: &Object,
    devices: &[&str],
) -> Result<Vec<Operation>> {
    let errors = claim::admin_access(&new.at(devices));
    if write.old.is_some() || errors.is_empty() {
        return Ok(Vec::new());
    }
    let namespaces = write.objects.served(&GroupResource::new("", "namespaces"))?;
    let namespace = write.objects.read(&namespaces, "", new.namespace()).await?;
    if namespace.is_some_and(|record| record.value.label(ADMIN_LABEL) == Some("true")) {
        return Ok(Vec::new());
    }
    Err(Box::new(Status::invalid(&write.served.stored_info().group_kind(), new.name(), &errors)))
}
