//! PersistentVolume: one source that never changes, who may use it and what becomes of it.

mod validate;
mod warnings;

use portico_kinds::KindInfo;
use portico_machinery::table::Cell;
use portico_machinery::{Object, time};

use super::storage_cells;
use portico_registry::Part;
use portico_registry::{DecodeStrategy, Moment, Strategy, TableStrategy};
use portico_validation::pod_spec::round_to_milli;
use portico_validation::{Errors, MetaRules, validate_create};

pub(crate) struct PersistentVolume;

impl DecodeStrategy for PersistentVolume {
    fn default(&self, object: &mut Object, _moment: Moment) {
        object.set_empty(&["spec", "persistentVolumeReclaimPolicy"], "Retain");
        object.set_empty(&["status", "phase"], "Pending");
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
                // Both validate the metadata: its errors are reported twice.
                validate_create(new, MetaRules::of(kind), errors);
                self.validate_update(new, old, errors);
            }
        }
    }

    fn prepare_create(&self, new: &mut Object, moment: Moment) {
        new.remove(&["status"]);
        new.set(&["status", "phase"], "Pending");
        new.set(&["status", "lastPhaseTransitionTime"], time::rfc3339(moment.now));
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate::volume(new, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        // Upstream's strategy and its check of a change both validate the whole, so that each cause is reported twice.
        validate::volume(new, errors);
        validate::volume(new, errors);
        validate::change(new, old, errors);
    }

    fn stamp(&self, part: Part<'_>, new: &mut Object, old: &Object, moment: Moment) {
        if !matches!(part, Part::Subresource("status")) {
            return;
        }
        const SINCE: [&str; 2] = ["status", "lastPhaseTransitionTime"];
        let moved = new.str_at("status.phase") != old.str_at("status.phase");
        let is_sent = new.at(&SINCE).is_present();
        let is_new = is_sent && !new.at(&SINCE).same_as(&old.at(&SINCE));
        if moved && !is_new {
            new.set(&SINCE, time::rfc3339(moment.now));
        } else if !moved && !is_sent {
            new.copy_from(old, &SINCE);
        }
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        warnings::of(new)
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
