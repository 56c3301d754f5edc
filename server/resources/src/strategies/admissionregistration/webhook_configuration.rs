//! MutatingWebhookConfiguration and ValidatingWebhookConfiguration: lists of webhooks.

use std::collections::HashSet;

use portico_machinery::Object;

use super::webhook;
use portico_registry::Strategy;
use portico_validation::Errors;
use portico_validation::checks;

/// See the module.
pub(crate) struct WebhookConfiguration;

impl Strategy for WebhookConfiguration {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        let mut seen = HashSet::new();
        for at in new.at(&["webhooks"]).items() {
            webhook::webhook(&at, errors);
            let name = at.field("name");
            if !name.str().is_empty() {
                checks::unique(&mut seen, &name, errors);
            }
        }
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        super::warnings(new)
    }
}
