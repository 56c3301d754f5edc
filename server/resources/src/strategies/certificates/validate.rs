//! Validation of a CertificateSigningRequest. Updates need not satisfy rules that the stored object already violates.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portico_machinery::{Cursor, Object, field};

use super::signer;
use portico_validation::Errors;
use portico_validation::pem;

/// Conditions that only the subresource `approval` may add.
pub(super) const VERDICTS: [&str; 2] = ["Approved", "Denied"];

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
/// Conditions that can only be `True` and cannot be removed.
const PERMANENT: [&str; 3] = ["Approved", "Denied", "Failed"];
const MIN_EXPIRATION_SECONDS: i64 = 600;

/// Rules that an update need not satisfy, because the old object violates them.
#[derive(Default)]
struct ValidationOptions {
    allow_unknown_usages: bool,
    allow_duplicate_usages: bool,
    allow_legacy_signer: bool,
    allow_empty_condition_types: bool,
    allow_duplicate_condition_types: bool,
    allow_both_verdicts: bool,
    allow_any_certificate: bool,
}

impl ValidationOptions {
    fn of(old: &Object) -> Self {
        let usages: Vec<_> = old.at(&["spec", "usages"]).items().map(|u| u.str()).collect();
        let types = condition_types(old);
        Self {
            allow_unknown_usages: usages.iter().any(|u| !USAGES.contains(u)),
            allow_duplicate_usages: has_duplicates(&usages),
            allow_legacy_signer: signer::is_legacy(old),
            allow_empty_condition_types: types.contains(&""),
            allow_duplicate_condition_types: has_duplicates(&types),
            allow_both_verdicts: VERDICTS.iter().all(|v| types.contains(v)),
            allow_any_certificate: certificate(old).is_err(),
        }
    }
}

/// Validates a whole request. `old` is `None` for a create.
pub(super) fn validate_request(new: &Object, old: Option<&Object>, errors: &mut Errors) {
    let lenient = old.map(ValidationOptions::of).unwrap_or_default();
    let spec = new.at(&["spec"]);
    let request = spec.field("request");
    if let Err(error) = pem::certificate_request(&STANDARD.decode(request.str()).unwrap_or_default()) {
        // An absent value prints as `null`.
        errors.push(field::Error::invalid_printed(&request.path(), &request.json(), &error));
    }
    validate_usages(&spec.field("usages"), &lenient, errors);
    signer::validate_name(&spec.field("signerName"), lenient.allow_legacy_signer, errors);
    let expiration = spec.field("expirationSeconds");
    if expiration.i64().is_some_and(|seconds| seconds < MIN_EXPIRATION_SECONDS) {
        errors.push(expiration.invalid("may not specify a duration less than 600 seconds (10 minutes)"));
    }
    validate_conditions(&new.at(&["status", "conditions"]), &lenient, errors);
    if let (false, Err(error)) = (lenient.allow_any_certificate, certificate(new)) {
        errors.push(field::Error::invalid(&"status.certificate".into(), "<certificate data>", &error));
    }
}

/// Validates an update, which must not remove permanent conditions.
pub(super) fn update(new: &Object, old: &Object, errors: &mut Errors) {
    validate_request(new, Some(old), errors);
    let conditions = new.at(&["status", "conditions"]);
    for kind in PERMANENT.into_iter().filter(|kind| count(new, kind) < count(old, kind)) {
        errors.push(conditions.forbidden(&format!("updates may not remove a condition of type {kind:?}")));
    }
    let (before, after) = (old.at(&["status", "certificate"]), new.at(&["status", "certificate"]));
    if !before.str().is_empty() && before.str() != after.str() {
        errors.push(after.forbidden("updates may not modify existing certificate content"));
    }
}

/// Checks that no verdict is added: only the subresource `approval` may approve or deny.
pub(super) fn validate_no_new_verdicts(new: &Object, old: &Object, errors: &mut Errors) {
    let conditions = new.at(&["status", "conditions"]);
    for kind in VERDICTS.into_iter().filter(|kind| count(new, kind) > count(old, kind)) {
        errors.push(conditions.forbidden(&format!("updates may not add a condition of type {kind:?}")));
    }
}

fn validate_usages(usages: &Cursor<'_>, lenient: &ValidationOptions, errors: &mut Errors) {
    if usages.is_empty() {
        errors.push(usages.required(""));
    }
    if !lenient.allow_unknown_usages {
        let unknown = usages.items().filter(|u| !USAGES.contains(&u.str()));
        errors.extend(unknown.map(|u| u.not_supported(&USAGES)));
    }
    if !lenient.allow_duplicate_usages {
        let mut seen = HashSet::new();
        let duplicates = usages.items().filter(|u| !seen.insert(u.str()));
        errors.extend(duplicates.map(|u| field::Error::duplicate(&u.path(), u.str())));
    }
}

fn validate_conditions(conditions: &Cursor<'_>, lenient: &ValidationOptions, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for condition in conditions.items() {
        let (kind, status) = (condition.field("type"), condition.field("status"));
        if kind.str().is_empty() && !lenient.allow_empty_condition_types {
            errors.push(kind.required(""));
        }
        let allowed: &[&str] =
            if PERMANENT.contains(&kind.str()) { &["True"] } else { &["False", "True", "Unknown"] };
        if status.str().is_empty() {
            errors.push(status.required(""));
        } else if !allowed.contains(&status.str()) {
            errors.push(status.not_supported(allowed));
        }
        if VERDICTS.contains(&kind.str()) && !lenient.allow_both_verdicts {
            let other = VERDICTS.iter().any(|verdict| *verdict != kind.str() && seen.contains(verdict));
            let message = "Approved and Denied conditions are mutually exclusive";
            errors.extend(other.then(|| field::Error::invalid(&conditions.path(), kind.str(), message)));
        }
        if !seen.insert(kind.str()) && !lenient.allow_duplicate_condition_types {
            errors.push(field::Error::duplicate(&kind.path(), kind.str()));
        }
    }
}

fn certificate(object: &Object) -> Result<(), String> {
    let text = object.str_at("status.certificate");
    if text.is_empty() {
        return Ok(());
    }
    pem::validate_certificates(&STANDARD.decode(text).unwrap_or_default())
}

fn condition_types(object: &Object) -> Vec<&str> {
    object.at(&["status", "conditions"]).items().map(|c| c.field("type").str()).collect()
}

fn count(object: &Object, kind: &str) -> usize {
    condition_types(object).iter().filter(|t| **t == kind).count()
}

fn has_duplicates(texts: &[&str]) -> bool {
    texts.iter().collect::<HashSet<_>>().len() < texts.len()
}
