//! VolumeAttachment: request to attach a volume to a node. The spec is immutable.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object, names};

use portico_registry::{Strategy, SubresourceStrategy};
use portico_validation::Errors;
use portico_validation::pod_spec::access_modes;
use portico_validation::{checks, values, volume_source};

const METADATA_MAX: usize = 262_144;
const MESSAGE_MAX: usize = 1_024;
const ONE_SOURCE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
const NOT_INLINE: &str = "may not be specified in the context of inline volumes";

pub(crate) struct VolumeAttachment;

impl Strategy for VolumeAttachment {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn compares_metadata_again(&self, _is_status: bool) -> bool {
        false
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let spec = new.at(&["spec"]);
        values::driver_name(&spec.field("attacher"), errors);
        validate_source(&spec.field("source"), errors);
        checks::matches_rule(&spec.field("nodeName"), names::dns1123_subdomain, errors);
        status(&new.at(&["status"]), errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        self.validate(new, errors);
        checks::unchanged(&new.at(&["spec"]), &old.at(&["spec"]), errors);
    }
}

impl SubresourceStrategy for VolumeAttachment {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        self.validate(new, errors);
    }
}

fn validate_source(source: &Cursor<'_>, errors: &mut Errors) {
    let (name, inline) = (source.field("persistentVolumeName"), source.field("inlineVolumeSpec"));
    match (name.is_present(), inline.is_present()) {
        (false, false) => errors.push(source.required(ONE_SOURCE)),
        (true, true) => errors.push(source.forbidden(ONE_SOURCE)),
        (true, false) if name.str().is_empty() => {
            errors.push(name.required("must specify non empty persistentVolumeName"));
        }
        (true, false) => {}
        (false, true) => validate_inline_volume(&inline, errors),
    }
    if name.is_present() {
        checks::matches_rule(&name, names::dns1123_subdomain, errors);
    }
}

/// Validates an inline volume: a CSI source without the fields that only a PersistentVolume has.
fn validate_inline_volume(spec: &Cursor<'_>, errors: &mut Errors) {
    for field in ["claimRef", "capacity"] {
        let at = spec.field(field);
        if at.is_present() {
            errors.push(at.forbidden(NOT_INLINE));
        }
    }
    let csi = spec.field("csi");
    if !csi.is_present() {
        errors.push(csi.required("has to be specified in the context of inline volumes"));
    }
    volume_source::validate(spec, "", errors);
    if !matches!(spec.field("persistentVolumeReclaimPolicy").str(), "" | "Retain") {
        let at = spec.field("persistentVolumeReclaimPolicy");
        errors.push(at.forbidden("may only be Retain in the context of inline volumes"));
    }
    for field in ["nodeAffinity", "storageClassName"] {
        let at = spec.field(field);
        if at.is_present() && at.opt_str() != Some("") {
            errors.push(at.forbidden(NOT_INLINE));
        }
    }
    let mode = spec.field("volumeMode");
    if !matches!(mode.str(), "" | "Filesystem") {
        errors.push(
            mode.forbidden(
                "may not specify volumeMode other than Filesystem in the context of inline volumes",
            ),
        );
    }
    checks::not_empty(&spec.field("accessModes"), errors);
    access_modes(&spec.field("accessModes"), errors);
}

fn status(status: &Cursor<'_>, errors: &mut Errors) {
    let metadata = status.field("attachmentMetadata");
    let bytes: usize = metadata.entries().map(|(key, value)| key.len() + value.str().len()).sum();
    if bytes > METADATA_MAX {
        errors.push(Error::too_long(&metadata.path(), METADATA_MAX));
    }
    for field in ["attachError", "detachError"] {
        let (message, code) = (status.field(field).field("message"), status.field(field).field("errorCode"));
        if message.str().len() > MESSAGE_MAX {
            // The limit in the error of upstream differs from the checked limit.
            errors.push(Error::too_long(&message.path(), METADATA_MAX));
        }
        if code.i64().is_some_and(|n| n < 0) {
            errors.push(code.invalid("must be between 0 and 2147483647, inclusive"));
        }
    }
}
