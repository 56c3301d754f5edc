//! PersistentVolume: one immutable source, access modes and reclaim policy.

mod validate;
mod warnings;

use portico_kinds::KindInfo;
use portico_machinery::table::Cell;
use portico_machinery::{Object, time};

use super::storage_cells;
use portico_registry::ObjectPart;
use portico_registry::{DecodeStrategy, RequestTime, Strategy, TableStrategy};
use portico_validation::pod_spec::round_to_milli;
use portico_validation::{Errors, MetaRules, validate_create};

pub(crate) struct PersistentVolume;

impl DecodeStrategy for PersistentVolume {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        object.set_if_empty(&["spec", "persistentVolumeReclaimPolicy"], "Retain");
        object.set_if_empty(&["status", "phase"], "Pending");
        if !object.at(&["spec", "volumeMode"]).is_present() {
            object.set(&["spec", "volumeMode"], "Filesystem");
        }
        if object.at(&["spec", "hostPath"]).is_present()
            && !object.at(&["spec", "hostPath", "type"]).is_present()
        {
            object.set(&["spec", "hostPath", "type"], "");
        }
        round_to_milli(object, &["spec", "capacity"]);
    }
}

impl Strategy for PersistentVolume {
    fn compares_metadata_again(&self, is_status: bool) -> bool {
        is_status
    }

    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate_with_kind(&self, kind: &KindInfo, new: &Object, old: Option<&Object>, errors: &mut Errors) {
        match old {
            None => self.validate(new, errors),
            Some(old) => {
                // Both functions validate the metadata, so that its errors are reported twice, as by upstream.
                validate_create(new, MetaRules::from_kind(kind), errors);
                self.validate_update(new, old, errors);
            }
        }
    }

    fn prepare_create(&self, new: &mut Object, time: RequestTime) {
        new.remove(&["status"]);
        new.set(&["status", "phase"], "Pending");
        new.set(&["status", "lastPhaseTransitionTime"], time::rfc3339(time.now));
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate::validate_volume(new, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        // Upstream validates the whole volume in its strategy and again in its update check: each cause is reported twice.
        validate::validate_volume(new, errors);
        validate::validate_volume(new, errors);
        validate::validate_change(new, old, errors);
    }

    fn set_change_time(&self, part: ObjectPart<'_>, new: &mut Object, old: &Object, time: RequestTime) {
        if !matches!(part, ObjectPart::Subresource("status")) {
            return;
        }
        const SINCE: [&str; 2] = ["status", "lastPhaseTransitionTime"];
        let phase_changed = new.str_at("status.phase") != old.str_at("status.phase");
        let is_sent = new.at(&SINCE).is_present();
        let is_new = is_sent && !new.at(&SINCE).same_as(&old.at(&SINCE));
        if phase_changed && !is_new {
            new.set(&SINCE, time::rfc3339(time.now));
        } else if !phase_changed && !is_sent {
            new.copy_from(old, &SINCE);
        }
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        warnings::volume_warnings(new)
    }
}

impl TableStrategy for PersistentVolume {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        match function {
            "persistentvolume-capacity" => storage_cells::capacity(&object.at(&["spec", "capacity"])),
            "persistentvolume-access-modes" => {
                storage_cells::access_modes(&object.at(&["spec", "accessModes"]))
            }
            "persistentvolume-status" => storage_cells::phase(object),
            "persistentvolume-claim" => claim(object),
            "persistentvolume-storageclass" => storage_cells::class(object),
            _ => Cell::Null,
        }
    }
}

fn claim(volume: &Object) -> Cell {
    let claim = volume.at(&["spec", "claimRef"]);
    Cell::text(if claim.is_present() {
        format!("{}/{}", claim.field("namespace").str(), claim.field("name").str())
    } else {
        String::new()
    })
}
