//! Usage of PersistentVolumeClaims: count and storage, in total and per storage class.

use jiff::Timestamp;
use portico_machinery::{Object, Quantity};
use portico_validation::pod_spec::totals::ResourceList;

use crate::counts::one_each;
use crate::evaluator::Evaluator;
use crate::requirement::ScopeRequirement;

const COUNT: &str = "count/persistentvolumeclaims";
const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE: &str = "requests.storage";
/// Separates a storage class from the quota resource that is limited for it.
const CLASS_INFIX: &str = ".storageclass.storage.k8s.io/";
/// Annotation with the storage class, used before the field existed.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// Evaluator of PersistentVolumeClaims.
pub(crate) struct PersistentVolumeClaimEvaluator;

impl Evaluator for PersistentVolumeClaimEvaluator {
    fn matches_resource(&self, resource: &str) -> bool {
        matches!(resource, COUNT | CLAIMS | STORAGE)
            || resource.split_once(CLASS_INFIX).is_some_and(|(_, of)| matches!(of, CLAIMS | STORAGE))
    }

    fn usage(&self, claim: &Object, _now: Timestamp) -> ResourceList {
        let class = match claim.annotation(CLASS_ANNOTATION) {
            Some(class) => class,
            None => claim.str_at("spec.storageClassName"),
        };
        let mut usage = one_each([COUNT, CLAIMS]);
        if !class.is_empty() {
            usage.insert(format!("{class}{CLASS_INFIX}{CLAIMS}"), Quantity::whole(1));
        }
        let requested = claim.at(&["spec", "resources", "requests", "storage"]).quantity();
        if let Some(requested) = requested {
            let allocated = claim.at(&["status", "allocatedResources", "storage"]).quantity();
            let most = allocated.filter(|allocated| *allocated > requested).unwrap_or(requested);
            let most = if most.is_whole() { most } else { Quantity::whole(most.value()) };
            if !class.is_empty() {
                usage.insert(format!("{class}{CLASS_INFIX}{STORAGE}"), most.clone());
            }
            usage.insert(STORAGE.to_owned(), most);
        }
        usage
    }

    fn in_scope(&self, scope: &ScopeRequirement<'_>, claim: &Object) -> bool {
        let status = claim.at(&["status"]);
        let classes: Vec<&str> = [
            claim.str_at("spec.volumeAttributesClassName"),
            status.field("currentVolumeAttributesClassName").str(),
            status.field("modifyVolumeStatus").field("targetVolumeAttributesClassName").str(),
        ]
        .into_iter()
        .filter(|class| !class.is_empty())
        .collect();
        scope.scope == "VolumeAttributesClass" && scope.matches_values(&classes)
    }
}
