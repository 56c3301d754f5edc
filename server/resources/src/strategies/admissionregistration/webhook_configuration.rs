//! MutatingWebhookConfiguration and ValidatingWebhookConfiguration.

use std::collections::HashSet;

use portico_machinery::resolve::{BACKEND_SERVER_NAME, BACKEND_URLS};
use portico_machinery::{Cursor, Object};

use super::super::backend_annotations;
use super::expressions::ExpressionValidator;
use super::webhook;
use portico_registry::Strategy;
use portico_validation::Errors;
use portico_validation::checks;

/// Strategy of both kinds of webhook configurations.
pub(crate) struct WebhookConfiguration;

impl Strategy for WebhookConfiguration {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn compares_metadata_again(&self, _is_status: bool) -> bool {
        false
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate(new, &ExpressionValidator::for_webhook(true), errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        validate(new, &ExpressionValidator::for_webhook(!has_same_conditions(new, old)), errors);
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        super::warnings(new)
    }
}

fn validate(new: &Object, expressions: &ExpressionValidator, errors: &mut Errors) {
    // Extension of Portico: annotations with the addresses of webhooks behind Services.
    let mut services = new.at(&["webhooks"]).items().map(|at| at.field("clientConfig").field("service"));
    let needs = (!services.any(|service| service.is_present()))
        .then_some("may only be set when a webhook has clientConfig.service");
    backend_annotations::validate(new, &[BACKEND_URLS, BACKEND_SERVER_NAME], needs, errors);
    let mut seen = HashSet::new();
    for at in new.at(&["webhooks"]).items() {
        webhook::validate_webhook(&at, expressions, errors);
        let name = at.field("name");
        if !name.str().is_empty() {
            checks::unique(&mut seen, &name, errors);
        }
    }
}

/// True if both configurations have the same match conditions, compared by index of the webhook.
fn has_same_conditions(new: &Object, old: &Object) -> bool {
    let (new, old) = (new.at(&["webhooks"]), old.at(&["webhooks"]));
    let is_unchanged = |(new, old): (Cursor<'_>, Cursor<'_>)| {
        new.field("matchConditions").same_as(&old.field("matchConditions"))
    };
    new.len() == old.len() && new.items().zip(old.items()).all(is_unchanged)
}
