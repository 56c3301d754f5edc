//! VolumeAttributesClass: driver parameters that can change on existing volumes. A finalizer protects each class.

use portico_machinery::Object;

use portico_registry::{RequestTime, Strategy};
use portico_validation::Errors;
use portico_validation::checks;

/// Finalizer of upstream's admission plugin StorageObjectInUseProtection. An external controller removes it.
const PROTECTION: &str = "kubernetes.io/vac-protection";

pub(crate) struct VolumeAttributesClass;

impl Strategy for VolumeAttributesClass {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn prepare_create(&self, new: &mut Object, _moment: RequestTime) {
        let mut finalizers: Vec<String> = new.finalizers().into_iter().map(str::to_owned).collect();
        if !finalizers.iter().any(|f| f == PROTECTION) {
            finalizers.push(PROTECTION.to_owned());
            new.set(&["metadata", "finalizers"], finalizers);
        }
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        super::validate_provisioner(&new.at(&["driverName"]), errors);
        super::validate_parameters(&new.at(&["parameters"]), false, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        for field in ["driverName", "parameters"] {
            let new_value = new.at(&[field]);
            if !checks::is_same(&new_value, &old.at(&[field])) {
                errors.push(new_value.forbidden(&format!("updates to {field} are forbidden.")));
            }
        }
        self.validate(new, errors);
    }
}
