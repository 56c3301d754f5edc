//! CustomResourceDefinition: defaults, generation, stored versions, and a DELETE that reports what will follow.

use portico_kinds::KindInfo;
use portico_machinery::{Cursor, Object, time};
use portico_schema::Schema;
use portico_schema::structural::definition::Metadata;

use super::ratchet::Demands;
use super::{schemas, stored_versions, validate};
use portico_registry::condition::{self, Condition};
use portico_registry::custom::embedded_metadata;
use portico_registry::definition::{FINALIZER, TERMINATING};
use portico_registry::{DecodeStrategy, DeleteStrategy, Moment, OwnDelete, Strategy, SubresourceStrategy};
use portico_validation::Errors;

/// Upstream's default of a webhook's port.
const PORT: u16 = 443;

/// See the module.
pub(crate) struct CustomResourceDefinition;

impl DecodeStrategy for CustomResourceDefinition {
    fn default(&self, object: &mut Object, _moment: Moment) {
        let kind = object.str_at("spec.names.kind").to_owned();
        if !kind.is_empty() {
            object.edit(&["spec", "names"], |names| {
                names.set_empty(&["singular"], &kind.to_lowercase());
                names.set_empty(&["listKind"], &format!("{kind}List"));
            });
        }
        if !object.at(&["spec", "conversion"]).is_present() {
            object.set(&["spec", "conversion", "strategy"], "None");
        }
        if is_blank(&object.at(&["spec", "conversion", "webhook"])) {
            object.remove(&["spec", "conversion", "webhook"]);
        }
        object.edit(&["spec", "conversion", "webhook", "clientConfig", "service"], |service| {
            if !service.at(&["port"]).is_present() {
                service.set(&["port"], PORT);
            }
        });
        if object.at(&["status", "storedVersions"]).is_empty() {
            stored_versions::record(object);
        }
    }
}

impl Strategy for CustomResourceDefinition {
    fn prepare_create(&self, new: &mut Object, _moment: Moment) {
        stored_versions::record(new);
    }

    fn prepare_update(&self, new: &mut Object, _old: &Object, _moment: Moment) {
        stored_versions::record(new);
    }

    fn validate_with_kind(&self, kind: &KindInfo, new: &Object, old: Option<&Object>, errors: &mut Errors) {
        let object_meta = kind.schema.of_field("metadata");
        let Some(types) = object_meta.as_ref().and_then(Schema::typed) else { return };
        let metadata = Metadata { types, rules: &embedded_metadata };
        match old {
            None => validate::created(new, Demands::on_create(metadata), errors),
            Some(old) => validate::changed(new, old, Demands::on_change(new, old, metadata), errors),
        }
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        schemas::warnings(new, old)
    }
}

impl SubresourceStrategy for CustomResourceDefinition {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        validate::status(new, errors);
    }
}

impl DeleteStrategy for CustomResourceDefinition {
    fn deletes_by_itself(&self) -> bool {
        true
    }

    /// The first DELETE marks the object and reports what is to come; others are none of this kind's business.
    fn own_delete(&self, _wanted: &Object, old: &Object, moment: Moment) -> OwnDelete {
        if old.deletion_timestamp().is_some() {
            return OwnDelete::Generic;
        }
        let mut marked = old.clone();
        marked.set(&["metadata", "deletionTimestamp"], time::rfc3339(moment.now));
        if !marked.finalizers().contains(&FINALIZER) {
            marked.push(&["metadata", "finalizers"], FINALIZER);
        }
        let words = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        let terminating = Condition::new(TERMINATING, "True", "InstanceDeletionPending", words);
        condition::set(&mut marked, terminating, moment.now);
        OwnDelete::Mark(marked)
    }
}

/// Upstream forgets a webhook without any content.
fn is_blank(webhook: &Cursor<'_>) -> bool {
    !webhook.field("clientConfig").is_present() && webhook.field("conversionReviewVersions").is_empty()
}
