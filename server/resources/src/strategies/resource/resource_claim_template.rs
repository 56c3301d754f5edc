//! ResourceClaimTemplate: the claim that each pod gets; it never changes.

use portico_machinery::Object;
use portico_store::Operation;

use super::{claim, resource_claim};
use portico_registry::{Beginning, Pending, TransactionHooks};
use portico_registry::{DecodeStrategy, Moment, Strategy};
use portico_validation::Errors;
use portico_validation::{checks, validate_annotations, validate_labels};

const DEVICES: [&str; 3] = ["spec", "spec", "devices"];

/// Metadata that a template cannot give, and how upstream spells it.
const NOT_GIVEN: [(&str, &str); 13] = [
    ("name", "name"),
    ("generateName", "generateName"),
    ("namespace", "namespace"),
    ("selfLink", "selfLink"),
    ("uid", "uID"),
    ("resourceVersion", "resourceVersion"),
    ("generation", "generation"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managedFields", "managedFields"),
];

/// See the module.
pub(crate) struct ResourceClaimTemplate;

impl DecodeStrategy for ResourceClaimTemplate {
    fn default(&self, object: &mut Object, _moment: Moment) {
        claim::default(object, &DEVICES);
    }
}

impl Strategy for ResourceClaimTemplate {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let metadata = new.at(&["spec", "metadata"]);
        for (field, reported) in NOT_GIVEN {
            if metadata.field(field).is_present() {
                errors.push(metadata.field(reported).forbidden("cannot be set"));
            }
        }
        validate_labels(&metadata.field("labels"), errors);
        validate_annotations(&metadata.field("annotations"), errors);
        claim::validate(&new.at(&DEVICES), errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        self.validate(new, errors);
        checks::unchanged(&new.at(&["spec"]), &old.at(&["spec"]), errors);
    }
}

impl TransactionHooks for ResourceClaimTemplate {
    fn begin<'a>(&'a self, write: Beginning<'a>, new: &'a mut Object) -> Pending<'a, Vec<Operation>> {
        Box::pin(resource_claim::check_admin_access(write, new, &["spec", "spec", "devices"]))
    }
}
