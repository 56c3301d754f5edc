//! ResourceClaimTemplate: immutable template of the claim that is created for each pod.

use portico_machinery::Object;
use portico_store::Operation;

use super::{claim, resource_claim};
use portico_registry::{DecodeStrategy, RequestTime, Strategy};
use portico_registry::{ResultFuture, TransactionHooks, TxnContext};
use portico_validation::Errors;
use portico_validation::{checks, validate_annotations, validate_labels};

const DEVICES: [&str; 3] = ["spec", "spec", "devices"];

/// Metadata fields that a template cannot set, and their names in upstream's errors.
const FORBIDDEN_METADATA: [(&str, &str); 13] = [
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

pub(crate) struct ResourceClaimTemplate;

impl DecodeStrategy for ResourceClaimTemplate {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        claim::default(object, &DEVICES);
    }
}

impl Strategy for ResourceClaimTemplate {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let metadata = new.at(&["spec", "metadata"]);
        for (field, reported_name) in FORBIDDEN_METADATA {
            if metadata.field(field).is_present() {
                errors.push(metadata.field(reported_name).forbidden("cannot be set"));
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
    fn before_write<'a>(
        &'a self,
        write: TxnContext<'a>,
        new: &'a mut Object,
    ) -> ResultFuture<'a, Vec<Operation>> {
        Box::pin(resource_claim::check_admin_access(write, new, &["spec", "spec", "devices"]))
    }
}
