//! ResourceClaim: immutable request for devices, and a status with the allocation and its consumers.

use portico_machinery::table::Cell;
use portico_machinery::{GroupResource, Object, Status};
use portico_store::Operation;

use super::{claim, claim_status};
use portico_registry::Result;
use portico_registry::{DecodeStrategy, RequestTime, Strategy, SubresourceStrategy, TableStrategy};
use portico_registry::{Objects, ResultFuture, TransactionHooks, TxnContext, Write, WritePermissions};
use portico_validation::Errors;
use portico_validation::checks;

const DEVICES: [&str; 2] = ["spec", "devices"];
const ADMIN_LABEL: &str = "resource.kubernetes.io/admin-access";

pub(crate) struct ResourceClaim;

impl DecodeStrategy for ResourceClaim {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
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
    fn missing_permissions<'a>(&'a self, objects: &'a Objects, write: Write<'a>) -> ResultFuture<'a, Errors> {
        Box::pin(async move { Ok(claim_status::missing_permissions(objects, write).await) })
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
    fn before_write<'a>(
        &'a self,
        write: TxnContext<'a>,
        new: &'a mut Object,
    ) -> ResultFuture<'a, Vec<Operation>> {
        Box::pin(check_admin_access(write, new, &DEVICES))
    }
}

/// Checks that the namespace allows admin access if the claim requests it.
pub(super) async fn check_admin_access(
    write: TxnContext<'_>,
    new: &Object,
    devices: &[&str],
) -> Result<Vec<Operation>> {
    let errors = claim::admin_access(&new.at(devices));
    if write.old.is_some() || errors.is_empty() {
        return Ok(Vec::new());
    }
    let namespaces = write.objects.served_resource(&GroupResource::new("", "namespaces"))?;
    let namespace = write.objects.read(&namespaces, "", new.namespace()).await?;
    if namespace.is_some_and(|record| record.value.label(ADMIN_LABEL) == Some("true")) {
        return Ok(Vec::new());
    }
    Err(Box::new(Status::invalid(&write.served_resource.stored_info().group_kind(), new.name(), &errors)))
}
