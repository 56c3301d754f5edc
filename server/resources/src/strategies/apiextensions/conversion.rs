//! How objects get from version to version (`validateCustomResourceConversion` upstream). Errors name fields as upstream does inside.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portico_machinery::Cursor;

use super::ratchet::Demands;
use portico_registry::definition;
use portico_validation::Errors;
use portico_validation::{checks, pem, webhook};

const NONE: &str = "None";
const WEBHOOK: &str = "Webhook";
const ONLY_WEBHOOK: &str = "should not be set when strategy is not set to Webhook";

/// Validates the conversion of a definition that prunes or does not.
pub(super) fn validate(spec: &Cursor<'_>, demands: &Demands<'_>, errors: &mut Errors) {
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
    let client = conversion.field("webhookClientConfig").holding(&hook.field("clientConfig"));
    let versions =
        conversion.field("conversionReviewVersions").holding(&hook.field("conversionReviewVersions"));
    if strategy.str() == WEBHOOK {
        self::client(&client, demands, errors);
        webhook::review_versions(&versions, "", demands.review_versions, errors);
        return;
    }
    if client.is_present() {
        errors.push(client.forbidden(ONLY_WEBHOOK));
    }
    if !versions.is_empty() {
        errors.push(versions.forbidden(ONLY_WEBHOOK));
    }
}

fn client(client: &Cursor<'_>, demands: &Demands<'_>, errors: &mut Errors) {
    if !client.is_present() {
        errors.push(client.required("required when strategy is set to Webhook"));
        return;
    }
    webhook::client(client, errors);
    let bundle = client.field("caBundle");
    if demands.ca_bundle && !definition::is_ca_bundle(bundle.str()) {
        // It was decoded from base64 already.
        let why = pem::why_no_authority(&STANDARD.decode(bundle.str()).unwrap_or_default());
        errors.push(bundle.invalid(&format!("unable to load root certificates: {why}")));
    }
}
