//! VolumeAttributesClass: what a driver should change in volumes; held by a finalizer from its first day.

use portico_machinery::Object;

use portico_registry::{Moment, Strategy};
use portico_validation::Errors;
use portico_validation::checks;

/// Set by upstream's admission plugin StorageObjectInUseProtection; a controller outside removes it.
const PROTECTION: &str = "kubernetes.io/vac-protection";

/// See the module.
pub(crate) struct VolumeAttributesClass;

impl Strategy for VolumeAttributesClass {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn prepare_create(&self, new: &mut Object, _moment: Moment) {
        let mut finalizers: Vec<String> = new.finalizers().into_iter().map(str::to_owned).collect();
        if !finalizers.iter().any(|f| f == PROTECTION) {
            finalizers.push(PROTECTION.to_owned());
            new.set(&["metadata", "finalizers"], finalizers);
        }
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        super::provisioner(&new.at(&["driverName"]), errors);
        super::parameters(&new.at(&["parameters"]), false, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        for field in ["driverName", "parameters"] {
            let now = new.at(&[field]);
            if !checks::same(&now, &old.at(&[field])) {
                errors.push(now.forbidden(&format!("updates to {field} are forbidden.")));
            }
        }
        self.validate(new, errors);
    }
}
