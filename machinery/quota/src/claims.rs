//! PersistentVolumeClaims: how many and how much, in all and of each storage class.

use jiff::Timestamp;
use portico_machinery::{Object, Quantity};
use portico_validation::pod_spec::totals::Amounts;

use crate::counts::one_of;
use crate::evaluator::Evaluator;
use crate::requirement::Requirement;

const COUNT: &str = "count/persistentvolumeclaims";
const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE: &str = "requests.storage";
/// Between a class and what is limited of it.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
/// Where the class stood before there was a field.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// How PersistentVolumeClaims are measured.
pub(crate) struct Claims;

impl Evaluator for Claims {
    fn counts(&self, resource: &str) -> bool {
        matches!(resource, COUNT | CLAIMS | STORAGE)
            || resource.split_once(OF_CLASS).is_some_and(|(_, of)| matches!(of, CLAIMS | STORAGE))
    }

    fn usage(&self, claim: &Object, _now: Timestamp) -> Amounts {
        let class = match claim.annotation(CLASS_ANNOTATION) {
            Some(class) => class,
            None => claim.str_at("spec.storageClassName"),
        };
        let mut usage = one_of([COUNT, CLAIMS]);
        if !class.is_empty() {
            usage.insert(format!("{class}{OF_CLASS}{CLAIMS}"), Quantity::whole(1));
        }
        let wanted = claim.at(&["spec", "resources", "requests", "storage"]).quantity();
        if let Some(wanted) = wanted {
            let allocated = claim.at(&["status", "allocatedResources", "storage"]).quantity();
            let most = allocated.filter(|allocated| *allocated > wanted).unwrap_or(wanted);
            let most = if most.is_whole() { most } else { Quantity::whole(most.value()) };
            if !class.is_empty() {
                usage.insert(format!("{class}{OF_CLASS}{STORAGE}"), most.clone());
            }
            usage.insert(STORAGE.to_owned(), most);
        }
        usage
    }

    fn in_scope(&self, scope: &Requirement<'_>, claim: &Object) -> bool {
        let status = claim.at(&["status"]);
        let classes: Vec<&str> = [
            claim.str_at("spec.volumeAttributesClassName"),
            status.field("currentVolumeAttributesClassName").str(),
            status.field("modifyVolumeStatus").field("targetVolumeAttributesClassName").str(),
        ]
        .into_iter()
        .filter(|class| !class.is_empty())
        .collect();
        scope.scope == "VolumeAttributesClass" && scope.takes(&classes)
    }
}
