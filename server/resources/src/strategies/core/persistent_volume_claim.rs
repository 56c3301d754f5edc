//! PersistentVolumeClaim: request for a volume, with few mutable fields.

mod status;
mod update;

use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object};

use super::storage_cells;
use portico_registry::{DecodeStrategy, RequestTime, Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::pod_spec::{claim_spec_warnings, round_to_milli, validate_claim_spec};

pub(crate) struct PersistentVolumeClaim;

impl DecodeStrategy for PersistentVolumeClaim {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        if !object.at(&["spec", "volumeMode"]).is_present() {
            object.set(&["spec", "volumeMode"], "Filesystem");
        }
        object.set_if_empty(&["status", "phase"], "Pending");
        for list in ["requests", "limits"] {
            round_to_milli(object, &["spec", "resources", list]);
        }
        for list in ["capacity", "allocatedResources"] {
            round_to_milli(object, &["status", list]);
        }
    }
}

impl Strategy for PersistentVolumeClaim {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn prepare_create(&self, new: &mut Object, _moment: RequestTime) {
        new.remove(&["status"]);
        new.set(&["status", "phase"], "Pending");
        sync_sources(new, None);
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate_claim_spec(&new.at(&["spec"]), errors);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, _moment: RequestTime) {
        sync_sources(new, Some(old));
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        self.validate(new, errors);
        update::validate(new, old, errors);
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        let mut warnings: Vec<String> = storage_cells::class_annotation_warning(new).into_iter().collect();
        warnings.extend(claim_spec_warnings(&new.at(&["spec"])));
        warnings
    }
}

impl SubresourceStrategy for PersistentVolumeClaim {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        status::validate(new, errors);
    }
}

impl TableStrategy for PersistentVolumeClaim {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        let bound = !object.str_at("spec.volumeName").is_empty();
        match function {
            "persistentvolumeclaim-status" => storage_cells::phase(object),
            "persistentvolumeclaim-capacity" if bound => {
                storage_cells::capacity(&object.at(&["status", "capacity"]))
            }
            "persistentvolumeclaim-access-modes" if bound => {
                storage_cells::access_modes(&object.at(&["status", "accessModes"]))
            }
            "persistentvolumeclaim-capacity" | "persistentvolumeclaim-access-modes" => Cell::text(""),
            "persistentvolumeclaim-storageclass" => storage_cells::class(object),
            _ => Cell::Null,
        }
    }
}

/// Synchronizes `dataSource` and `dataSourceRef`. Drops sources that `dataSource` does not support, then copies each field to the
/// other if that is absent. Both fields are stored, so that reads need no defaults.
fn sync_sources(claim: &mut Object, old: Option<&Object>) {
    const SOURCE: [&str; 2] = ["spec", "dataSource"];
    const REFERENCE: [&str; 2] = ["spec", "dataSourceRef"];
    let has_namespace =
        |object: &Object| !object.at(&["spec", "dataSourceRef", "namespace"]).str().is_empty();
    let old_has = |path: &[&str]| old.is_some_and(|old| old.get(path).is_some());
    if has_namespace(claim) && !old_has(&REFERENCE) {
        claim.remove(&REFERENCE);
    }
    // A client that does not know `dataSourceRef` sends `dataSource` as the server set it.
    let is_kept = old_has(&SOURCE) || old_has(&REFERENCE) || claim.at(&REFERENCE).is_present();
    if !is_kept && !is_known_source(&claim.at(&SOURCE)) {
        claim.remove(&SOURCE);
    }
    // A reference to another namespace has no equivalent in `dataSource`.
    match (claim.get(&SOURCE), claim.get(&REFERENCE)) {
        (Some(source), None) => claim.put(&REFERENCE, source),
        (None, Some(reference)) if !has_namespace(claim) => {
            claim.put(&SOURCE, reference);
            claim.remove(&["spec", "dataSource", "namespace"]);
        }
        _ => {}
    }
}

/// True if `dataSource` supports the source: a claim or a snapshot.
fn is_known_source(source: &Cursor<'_>) -> bool {
    let group_and_kind = (source.field("apiGroup").str(), source.field("kind").str());
    matches!(group_and_kind, ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_source_and_data_source_ref_are_synchronized() {
        const CLAIM: &str = r#"{"kind":"PersistentVolumeClaim","name":"a"}"#;
        const OTHER: &str = r#"{"kind":"Other","name":"a","apiGroup":"e.x"}"#;
        for (sent, source, reference) in [
            (format!(r#"{{"dataSource":{CLAIM}}}"#), CLAIM, CLAIM),
            (format!(r#"{{"dataSourceRef":{OTHER}}}"#), OTHER, OTHER),
            (format!(r#"{{"dataSource":{OTHER}}}"#), "null", "null"),
            (
                r#"{"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"a","namespace":"b"}}"#.to_owned(),
                "null",
                "null",
            ),
        ] {
            let mut claim = Object::from_json(format!(r#"{{"spec":{sent}}}"#).as_bytes()).unwrap();
            sync_sources(&mut claim, None);
            for (field, expected) in [("dataSource", source), ("dataSourceRef", reference)] {
                let at = claim.at(&["spec", field]);
                let printed = if at.is_present() { at.printed() } else { "null".to_owned() };
                assert_eq!(printed, expected, "{sent}: {field}");
            }
        }
    }
}
