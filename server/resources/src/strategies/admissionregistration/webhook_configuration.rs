//! MutatingWebhookConfiguration and ValidatingWebhookConfiguration: lists of webhooks.

use std::collections::HashSet;

use portico_machinery::resolve::{BACKEND_SERVER_NAME, BACKEND_URLS};
use portico_machinery::{Cursor, Object};

use super::super::backends;
use super::expressions::Expressions;
use super::webhook;
use portico_registry::Strategy;
use portico_validation::Errors;
use portico_validation::checks;

/// See the module.
pub(crate) struct WebhookConfiguration;

impl Strategy for WebhookConfiguration {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn compares_metadata_again(&self, _is_status: bool) -> bool {
        false
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate(new, &Expressions::of_webhook(true), errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        validate(new, &Expressions::of_webhook(!has_same_conditions(new, old)), errors);
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        super::warnings(new)
    }
}

fn validate(new: &Object, expressions: &Expressions, errors: &mut Errors) {
    // The extension: where webhooks behind Services are without a Service.
    let mut services = new.at(&["webhooks"]).items().map(|at| at.field("clientConfig").field("service"));
    let needs = (!services.any(|service| service.is_present()))
        .then_some("may only be set when a webhook has clientConfig.service");
    backends::validate(new, &[BACKEND_URLS, BACKEND_SERVER_NAME], needs, errors);
    let mut seen = HashSet::new();
    for at in new.at(&["webhooks"]).items() {
        webhook::webhook(&at, expressions, errors);
        let name = at.field("name");
        if !name.str().is_empty() {
            checks::unique(&mut seen, &name, errors);
        }
    }
}

/// Whether the webhooks of both have the same match conditions, each those of the one at its place.
fn has_same_conditions(new: &Object, old: &Object) -> bool {
    let (new, old) = (new.at(&["webhooks"]), old.at(&["webhooks"]));
    let same = |(new, old): (Cursor<'_>, Cursor<'_>)| {
        new.field("matchConditions").same_as(&old.field("matchConditions"))
    };
    new.len() == old.len() && new.items().zip(old.items()).all(same)
}
