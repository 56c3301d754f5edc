//! Namespace: phase, finalizers of the spec, name label, and deletion in steps.

use portico_machinery::field::Error;
use portico_machinery::{Object, names, time};

use portico_registry::{
    DecodeStrategy, DeleteOverride, DeleteStrategy, RequestTime, Strategy, SubresourceStrategy,
};
use portico_validation as validation;
use portico_validation::Errors;

const FINALIZER: &str = "kubernetes";
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(crate) struct Namespace;

impl DecodeStrategy for Namespace {
    /// Adds the name label before ownership is tracked, so that the writer owns it. Generated names are set later.
    fn default(&self, new: &mut Object, _moment: RequestTime) {
        if !new.name().is_empty() {
            self.canonicalize(new);
        }
    }
}

impl Strategy for Namespace {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn prepare_create(&self, new: &mut Object, _moment: RequestTime) {
        new.set(&["status", "phase"], "Active");
        let finalizers = spec_finalizers(new);
        if !finalizers.iter().any(|f| f == FINALIZER) {
            let with: Vec<_> = finalizers.into_iter().chain([FINALIZER.to_owned()]).collect();
            new.set(&["spec", "finalizers"], with);
        }
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let finalizers = new.at(&["spec", "finalizers"]);
        for finalizer in finalizers.items() {
            let text = finalizer.str();
            errors.extend(names::to_field_errors(&finalizers.path(), text, names::qualified_name(text)));
        }
        validation::validate_standard_finalizers(&finalizers, false, errors);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, _moment: RequestTime) {
        new.copy_from(old, &["spec", "finalizers"]);
    }

    fn validate_update(&self, _new: &Object, _old: &Object, _errors: &mut Errors) {}

    fn canonicalize(&self, new: &mut Object) -> bool {
        if new.label(NAME_LABEL) == Some(new.name()) {
            return false;
        }
        let name = new.name().to_owned();
        new.set(&["metadata", "labels", NAME_LABEL], name);
        true
    }
}

impl SubresourceStrategy for Namespace {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        let phase = new.at(&["status", "phase"]).str();
        let (deleting, path) = (new.deletion_timestamp().is_some(), "status.Phase".into());
        if deleting && phase != "Terminating" {
            let text = "may only be 'Terminating' if `deletionTimestamp` is not empty";
            errors.push(Error::invalid(&path, phase, text));
        } else if !deleting && phase != "Active" {
            let text = "may only be 'Active' if `deletionTimestamp` is empty";
            errors.push(Error::invalid(&path, phase, text));
        }
    }

    fn prepare_subresource(&self, _finalize: &str, new: &mut Object, old: &Object) {
        new.copy_from(old, &["status"]);
    }

    fn validate_subresource(&self, _finalize: &str, new: &Object, _old: &Object, errors: &mut Errors) {
        let finalizers = new.at(&["spec", "finalizers"]);
        for finalizer in finalizers.items() {
            let text = finalizer.str();
            errors.extend(names::to_field_errors(&finalizer.path(), text, names::qualified_name(text)));
        }
        validation::validate_standard_finalizers(&finalizers, true, errors);
    }
}

impl DeleteStrategy for Namespace {
    fn may_be_removed(&self, object: &Object) -> bool {
        spec_finalizers(object).is_empty()
    }

    fn has_separate_delete(&self) -> bool {
        true
    }

    fn override_delete(&self, current: &Object, _old: &Object, time: RequestTime) -> DeleteOverride {
        if current.deletion_timestamp().is_none() {
            let mut marked = current.clone();
            marked.set(&["metadata", "deletionTimestamp"], time::rfc3339(time.now));
            marked.set(&["status", "phase"], "Terminating");
            return DeleteOverride::Update(marked);
        }
        if spec_finalizers(current).is_empty() { DeleteOverride::Generic } else { DeleteOverride::Keep }
    }
}

fn spec_finalizers(object: &Object) -> Vec<String> {
    object.at(&["spec", "finalizers"]).items().map(|f| f.str().to_owned()).collect()
}
