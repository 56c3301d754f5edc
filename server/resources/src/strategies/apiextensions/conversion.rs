//! Validation of the conversion between versions (upstream's `validateCustomResourceConversion`). Errors use the field names of
//! upstream's internal type.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portico_machinery::Cursor;

use super::ratcheting::DefinitionRules;
use portico_registry::definition;
use portico_validation::Errors;
use portico_validation::{checks, pem, webhook};

const NONE: &str = "None";
const WEBHOOK: &str = "Webhook";
const ONLY_WEBHOOK: &str = "should not be set when strategy is not set to Webhook";

/// Validates the conversion of a definition.
pub(super) fn validate(spec: &Cursor<'_>, demands: &DefinitionRules<'_>, errors: &mut Errors) {
    let conversion = spec.field("conversion");
    let strategy = conversion.field("strategy");
    if conversion.is_present() && strategy.str() != NONE && spec.field("preserveUnknownFields").bool() {
        errors.push(strategy.invalid_text("must be None if spec.preserveUnknownFields is true"));
    }
    if !conversion.is_present() {
        return;
    }
    checks::required_one_of(&strategy, &[NONE, WEBHOOK], errors);
    let hook = conversion.field("webhook");
    let client = conversion.field("webhookClientConfig").with_value_of(&hook.field("clientConfig"));
    let versions =
        conversion.field("conversionReviewVersions").with_value_of(&hook.field("conversionReviewVersions"));
    if strategy.str() == WEBHOOK {
        self::validate_client(&client, demands, errors);
        webhook::review_versions(&versions, "", demands.require_review_version, errors);
        return;
    }
    if client.is_present() {
        errors.push(client.forbidden(ONLY_WEBHOOK));
    }
    if !versions.is_empty() {
        errors.push(versions.forbidden(ONLY_WEBHOOK));
    }
}

fn validate_client(client: &Cursor<'_>, demands: &DefinitionRules<'_>, errors: &mut Errors) {
    if !client.is_present() {
        errors.push(client.required("required when strategy is set to Webhook"));
        return;
    }
    webhook::client_config(client, errors);
    let bundle = client.field("caBundle");
    if demands.check_ca_bundle && !definition::is_ca_bundle(bundle.str()) {
        // The value has already been validated as base64.
        let message = pem::missing_authority_reason(&STANDARD.decode(bundle.str()).unwrap_or_default());
        errors.push(bundle.invalid(&format!("unable to load root certificates: {message}")));
    }
}
