//! StatefulSet: pods with stable names and volume claims.

mod validate;

use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object};

use super::{TEMPLATE, ready_cell, validate_pod_counts};
use crate::strategies::workload::template_warnings;
use portico_registry::{DecodeStrategy, RequestTime, Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::counts::{all_not_negative, not_decremented};
use portico_validation::pod_spec;

pub(crate) struct StatefulSet;

impl DecodeStrategy for StatefulSet {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        object.edit(&["spec"], default_spec);
        object.edit_each(&["spec", "volumeClaimTemplates"], |claim| {
            claim.set(&["apiVersion"], "v1");
            claim.set(&["kind"], "PersistentVolumeClaim");
        });
        object.edit(&TEMPLATE, pod_spec::default_template);
    }
}

impl Strategy for StatefulSet {
    fn prepare_create(&self, new: &mut Object, _moment: RequestTime) {
        drop_max_unavailable(new, None);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, _moment: RequestTime) {
        drop_max_unavailable(new, Some(old));
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate::validate_create(new, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        validate::update(new, old, errors);
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        let writes_status = old.is_some_and(|old| !new.at(&["status"]).same_as(&old.at(&["status"])));
        if writes_status {
            return Vec::new();
        }
        let mut warnings = template_warnings(new, old, &TEMPLATE);
        if new.at(&["spec", "revisionHistoryLimit"]).i64().is_some_and(|limit| limit < 0) {
            warnings.push(
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
                    .to_owned(),
            );
        }
        let part = if old.is_some() { ".Spec" } else { "" };
        warnings.extend(claim_warnings(&new.at(&["spec", "volumeClaimTemplates"]), part));
        warnings
    }
}

impl SubresourceStrategy for StatefulSet {
    fn validate_status(&self, new: &Object, old: &Object, errors: &mut Errors) {
        const COUNTS: [&str; 7] = [
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ];
        const PARTS: [&str; 4] = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
        let (status, before) = (new.at(&["status"]), old.at(&["status"]));
        all_not_negative(&status, &COUNTS, errors);
        validate_pod_counts(&status, &PARTS, "cannot be greater than status.readyReplicas", errors);
        not_decremented(&status.field("collisionCount"), &before.field("collisionCount"), errors);
    }
}

impl TableStrategy for StatefulSet {
    fn cell(&self, _function: &str, object: &Object) -> Cell {
        ready_cell(object)
    }
}

fn default_spec(spec: &mut Object) {
    let path = ["updateStrategy", "type"];
    if spec.at(&path).str().is_empty() {
        spec.set(&path, "RollingUpdate");
        if !spec.at(&["updateStrategy", "rollingUpdate"]).is_present() {
            spec.set(&["updateStrategy", "rollingUpdate", "partition"], 0);
        }
    }
    if spec.at(&path).str() == "RollingUpdate" {
        spec.edit(&["updateStrategy", "rollingUpdate"], |rolling| {
            if !rolling.at(&["partition"]).is_present() {
                rolling.set(&["partition"], 0);
            }
        });
    }
}

/// Drops a field whose feature gate is off, unless the old object has it.
fn drop_max_unavailable(new: &mut Object, old: Option<&Object>) {
    const PATH: [&str; 4] = ["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"];
    if !old.is_some_and(|old| old.at(&PATH).is_present()) {
        new.remove(&PATH);
    }
}

/// Warns about storage requests with fractions of a byte. As upstream, the path lacks the spec, or misspells it in updates.
fn claim_warnings(claims: &Cursor<'_>, part: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, claim) in claims.items().enumerate() {
        for list in ["requests", "limits"] {
            let amount = claim.field("spec").field("resources").field(list).field("storage");
            if amount.str().ends_with('m') {
                warnings.push(format!(
                    "spec.volumeClaimTemplates[{index}]{part}.resources.{list}[storage]: fractional byte value {:?} is invalid, must be an integer",
                    amount.str()
                ));
            }
        }
    }
    warnings
}
