//! CustomResourceDefinition: defaults, generation, stored versions, and deletion in two steps.

use portico_kinds::KindInfo;
use portico_machinery::{Cursor, Object, time};
use portico_schema::Schema;
use portico_schema::structural::definition::MetadataRules;

use super::ratcheting::DefinitionRules;
use super::{schemas, stored_versions, validate};
use portico_registry::condition::{self, Condition};
use portico_registry::custom::validate_embedded_metadata;
use portico_registry::definition::{FINALIZER, TERMINATING};
use portico_registry::{
    DecodeStrategy, DeleteOverride, DeleteStrategy, RequestTime, Strategy, SubresourceStrategy,
};
use portico_validation::Errors;

/// Default port of a webhook, as upstream.
const DEFAULT_WEBHOOK_PORT: u16 = 443;

pub(crate) struct CustomResourceDefinition;

impl DecodeStrategy for CustomResourceDefinition {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        let kind = object.str_at("spec.names.kind").to_owned();
        if !kind.is_empty() {
            object.edit(&["spec", "names"], |names| {
                names.set_if_empty(&["singular"], &kind.to_lowercase());
                names.set_if_empty(&["listKind"], &format!("{kind}List"));
            });
        }
        if !object.at(&["spec", "conversion"]).is_present() {
            object.set(&["spec", "conversion", "strategy"], "None");
        }
        if is_empty_webhook(&object.at(&["spec", "conversion", "webhook"])) {
            object.remove(&["spec", "conversion", "webhook"]);
        }
        object.edit(&["spec", "conversion", "webhook", "clientConfig", "service"], |service| {
            if !service.at(&["port"]).is_present() {
                service.set(&["port"], DEFAULT_WEBHOOK_PORT);
            }
        });
        if object.at(&["status", "storedVersions"]).is_empty() {
            stored_versions::record(object);
        }
    }
}

impl Strategy for CustomResourceDefinition {
    fn prepare_create(&self, new: &mut Object, _moment: RequestTime) {
        stored_versions::record(new);
    }

    fn prepare_update(&self, new: &mut Object, _old: &Object, _moment: RequestTime) {
        stored_versions::record(new);
    }

    fn validate_with_kind(&self, kind: &KindInfo, new: &Object, old: Option<&Object>, errors: &mut Errors) {
        let object_meta = kind.schema.field_schema("metadata");
        let Some(types) = object_meta.as_ref().and_then(Schema::typed) else { return };
        let metadata = MetadataRules { types, rules: &validate_embedded_metadata };
        match old {
            None => validate::validate_create(new, DefinitionRules::for_create(metadata), errors),
            Some(old) => {
                validate::validate_update(new, old, DefinitionRules::for_update(new, old, metadata), errors)
            }
        }
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        schemas::warnings(new, old)
    }
}

impl SubresourceStrategy for CustomResourceDefinition {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        validate::validate_status(new, errors);
    }
}

impl DeleteStrategy for CustomResourceDefinition {
    fn has_separate_delete(&self) -> bool {
        true
    }

    /// Marks the object on the first DELETE and sets the `Terminating` condition. Further DELETEs use the generic logic.
    fn override_delete(&self, _wanted: &Object, old: &Object, time: RequestTime) -> DeleteOverride {
        if old.deletion_timestamp().is_some() {
            return DeleteOverride::Generic;
        }
        let mut marked = old.clone();
        marked.set(&["metadata", "deletionTimestamp"], time::rfc3339(time.now));
        if !marked.finalizers().contains(&FINALIZER) {
            marked.push(&["metadata", "finalizers"], FINALIZER);
        }
        let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        let terminating = Condition::new(TERMINATING, "True", "InstanceDeletionPending", message);
        condition::set(&mut marked, terminating, time.now);
        DeleteOverride::Update(marked)
    }
}

/// True if a webhook has no content. Upstream removes such a webhook.
fn is_empty_webhook(webhook: &Cursor<'_>) -> bool {
    !webhook.field("clientConfig").is_present() && webhook.field("conversionReviewVersions").is_empty()
}
