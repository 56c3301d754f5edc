//! storage.k8s.io: classes of volumes, CSI drivers, their nodes, their capacity, and attachments of volumes.

mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod storage_class;
mod volume_attachment;
mod volume_attributes_class;

pub(crate) use csi_driver::CsiDriver;
pub(crate) use csi_node::CsiNode;
pub(crate) use csi_storage_capacity::CsiStorageCapacity;
pub(crate) use storage_class::StorageClass;
pub(crate) use volume_attachment::VolumeAttachment;
pub(crate) use volume_attributes_class::VolumeAttributesClass;

use portico_machinery::field::{Error, ErrorType};
use portico_machinery::{Cursor, names};

use portico_validation::Errors;

/// Maximum number of parameters of a class, and their maximum total size in bytes.
const PARAMETERS_MAX: usize = 512;
const PARAMETER_BYTES_MAX: usize = 262_144;

/// Validates the provisioner of a class: a qualified name, without regard to case.
fn validate_provisioner(at: &Cursor<'_>, errors: &mut Errors) {
    if at.str().is_empty() {
        errors.push(at.required(""));
    } else {
        let name = at.str().to_lowercase();
        errors.extend(names::to_field_errors(&at.path(), &name, names::qualified_name(&name)));
    }
}

/// Validates the parameters of a class.
fn validate_parameters(at: &Cursor<'_>, may_be_empty: bool, errors: &mut Errors) {
    if at.len() > PARAMETERS_MAX {
        errors.push(Error {
            kind: ErrorType::TooLong,
            path: at.path(),
            body: format!("Too long: may not be more than {PARAMETERS_MAX} bytes"),
        });
        return;
    }
    if at.is_empty() && !may_be_empty {
        errors.push(at.required("must contain at least one key/value pair"));
        return;
    }
    let mut bytes = 0;
    for (key, value) in at.entries() {
        if key.is_empty() {
            errors.push(Error::invalid(&at.path(), key, "field can not be empty."));
        }
        bytes += key.len() + value.str().len();
    }
    if bytes > PARAMETER_BYTES_MAX {
        errors.push(Error::too_long(&at.path(), PARAMETER_BYTES_MAX));
    }
}
