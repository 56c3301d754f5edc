//! What a CertificateSigningRequest must look like. A rule that the stored object breaks already binds no update of it.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portico_machinery::{Cursor, Object, field};

use super::signer;
use portico_validation::Errors;
use portico_validation::pem;

/// Conditions that `/approval` alone may add.
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
/// Conditions that are true or not there, and that nobody takes away.
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];
const SHORTEST: i64 = 600;

/// What an old object gets away with.
#[derive(Default)]
struct Leniency {
    unknown_usages: bool,
    duplicate_usages: bool,
    legacy_signer: bool,
    empty_condition_types: bool,
    duplicate_condition_types: bool,
    both_verdicts: bool,
    any_certificate: bool,
}

impl Leniency {
    fn of(old: &Object) -> Self {
        let usages: Vec<_> = old.at(&["spec", "usages"]).items().map(|u| u.str()).collect();
        let types = condition_types(old);
        Self {
            unknown_usages: usages.iter().any(|u| !USAGES.contains(u)),
            duplicate_usages: has_duplicates(&usages),
            legacy_signer: signer::is_legacy(old),
            empty_condition_types: types.contains(&""),
            duplicate_condition_types: has_duplicates(&types),
            both_verdicts: VERDICTS.iter().all(|v| types.contains(v)),
            any_certificate: certificate(old).is_err(),
        }
    }
}

/// A request as a whole; `old` for an update.
pub(super) fn request(new: &Object, old: Option<&Object>, errors: &mut Errors) {
    let lenient = old.map(Leniency::of).unwrap_or_default();
    let spec = new.at(&["spec"]);
    let asked = spec.field("request");
    if let Err(why) = pem::request(&STANDARD.decode(asked.str()).unwrap_or_default()) {
        // Bytes that are not there are `null`.
        errors.push(field::Error::invalid_printed(&asked.path(), &asked.json(), &why));
    }
    usages(&spec.field("usages"), &lenient, errors);
    signer::validate_name(&spec.field("signerName"), lenient.legacy_signer, errors);
    let life = spec.field("expirationSeconds");
    if life.i64().is_some_and(|seconds| seconds < SHORTEST) {
        errors.push(life.invalid("may not specify a duration less than 600 seconds (10 minutes)"));
    }
    conditions(&new.at(&["status", "conditions"]), &lenient, errors);
    if let (false, Err(why)) = (lenient.any_certificate, certificate(new)) {
        errors.push(field::Error::invalid(&"status.certificate".into(), "<certificate data>", &why));
    }
}

/// A request, and what an update may not take away.
pub(super) fn update(new: &Object, old: &Object, errors: &mut Errors) {
    request(new, Some(old), errors);
    let conditions = new.at(&["status", "conditions"]);
    for kind in FINAL.into_iter().filter(|kind| count(new, kind) < count(old, kind)) {
        errors.push(conditions.forbidden(&format!("updates may not remove a condition of type {kind:?}")));
    }
    let (before, after) = (old.at(&["status", "certificate"]), new.at(&["status", "certificate"]));
    if !before.str().is_empty() && before.str() != after.str() {
        errors.push(after.forbidden("updates may not modify existing certificate content"));
    }
}

/// Approving and denying is `/approval`'s.
pub(super) fn no_new_verdicts(new: &Object, old: &Object, errors: &mut Errors) {
    let conditions = new.at(&["status", "conditions"]);
    for kind in VERDICTS.into_iter().filter(|kind| count(new, kind) > count(old, kind)) {
        errors.push(conditions.forbidden(&format!("updates may not add a condition of type {kind:?}")));
    }
}

fn usages(usages: &Cursor<'_>, lenient: &Leniency, errors: &mut Errors) {
    if usages.is_empty() {
        errors.push(usages.required(""));
    }
    if !lenient.unknown_usages {
        let unknown = usages.items().filter(|u| !USAGES.contains(&u.str()));
        errors.extend(unknown.map(|u| u.not_supported(&USAGES)));
    }
    if !lenient.duplicate_usages {
        let mut seen = HashSet::new();
        let again = usages.items().filter(|u| !seen.insert(u.str()));
        errors.extend(again.map(|u| field::Error::duplicate(&u.path(), u.str())));
    }
}

fn conditions(conditions: &Cursor<'_>, lenient: &Leniency, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for condition in conditions.items() {
        let (kind, status) = (condition.field("type"), condition.field("status"));
        if kind.str().is_empty() && !lenient.empty_condition_types {
            errors.push(kind.required(""));
        }
        let allowed: &[&str] =
            if FINAL.contains(&kind.str()) { &["True"] } else { &["False", "True", "Unknown"] };
        if status.str().is_empty() {
            errors.push(status.required(""));
        } else if !allowed.contains(&status.str()) {
            errors.push(status.not_supported(allowed));
        }
        if VERDICTS.contains(&kind.str()) && !lenient.both_verdicts {
            let other = VERDICTS.iter().any(|verdict| *verdict != kind.str() && seen.contains(verdict));
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.extend(other.then(|| field::Error::invalid(&conditions.path(), kind.str(), why)));
        }
        if !seen.insert(kind.str()) && !lenient.duplicate_condition_types {
            errors.push(field::Error::duplicate(&kind.path(), kind.str()));
        }
    }
}

fn certificate(object: &Object) -> Result<(), String> {
    let text = object.str_at("status.certificate");
    if text.is_empty() {
        return Ok(());
    }
    pem::certificates(&STANDARD.decode(text).unwrap_or_default())
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
