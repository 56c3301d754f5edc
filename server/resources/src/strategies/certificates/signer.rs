//! Validation of signer names.

use portico_machinery::{Cursor, Object, field, names};
use portico_validation::Errors;

const LEGACY: &str = "kubernetes.io/legacy-unknown";
const DOMAIN_MAX: usize = 253;
const NAME_MAX: usize = 571;

/// Validates a name of the form `domain.with.dots/path`. `legacy_allowed`: the signer of the v1beta1 API is accepted.
pub(super) fn validate_name(signer: &Cursor<'_>, legacy_allowed: bool, errors: &mut Errors) {
    let name = signer.str();
    if name == LEGACY && !legacy_allowed {
        errors.push(signer.invalid("the legacy signerName is not allowed via this API version"));
        return;
    }
    if name.is_empty() {
        errors.push(signer.required(""));
        return;
    }
    let path = signer.path();
    let Some((domain, rest)) = name.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        let form = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.push(signer.invalid(form));
        return;
    };
    if domain.len() > DOMAIN_MAX {
        errors.push(field::Error::too_long(&path, DOMAIN_MAX));
    }
    validate_segments(&path, domain, names::dns1123_label, errors);
    if !domain.contains('.') {
        let dots = "should be a domain with at least two segments separated by dots";
        errors.push(field::Error::invalid(&path, domain, dots));
    }
    validate_segments(&path, rest, names::dns1123_subdomain, errors);
    if name.len() > NAME_MAX {
        errors.push(field::Error::too_long(&path, NAME_MAX));
    }
}

/// Validates the parts between dots. Reports only the first invalid one.
fn validate_segments(path: &field::Path, text: &str, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
    let first_invalid =
        text.split('.').map(|label| (label, rule(label))).find(|(_, diagnostics)| !diagnostics.is_empty());
    let (label, diagnostics) = first_invalid.unwrap_or_default();
    errors.extend(
        diagnostics
            .iter()
            .map(|c| field::Error::invalid(path, text, &format!("validating label {label:?}: {c}"))),
    );
}

pub(super) fn is_legacy(request: &Object) -> bool {
    request.str_at("spec.signerName") == LEGACY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signer_names_are_a_domain_with_dots_and_a_path() {
        let errors_of = |name: &str| {
            let mut object = Object::default();
            object.set(&["spec", "signerName"], name);
            let mut errors = Vec::new();
            validate_name(&object.at(&["spec", "signerName"]), false, &mut errors);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        for (name, expected) in [
            ("example.com/x", ""),
            ("example.com/my.signer-1", ""),
            ("", "Required value"),
            ("example", "must be a fully qualified domain and path of the form 'example.com/signer-name'"),
            ("a.b/c/d", "must be a fully qualified domain and path of the form 'example.com/signer-name'"),
            ("kubernetes.io/legacy-unknown", "the legacy signerName is not allowed via this API version"),
            ("example/x", "\"example\": should be a domain with at least two segments separated by dots"),
            ("Foo.Bar/x", "\"Foo.Bar\": validating label \"Foo\": "),
            ("a.b/A_b", "\"A_b\": validating label \"A_b\": "),
        ] {
            assert!(errors_of(name).contains(expected), "{name}: {}", errors_of(name));
            assert_eq!(errors_of(name).is_empty(), expected.is_empty(), "{name}: {}", errors_of(name));
        }
        assert!(!errors_of("Foo.Bar/x").contains("label \"Bar\""));
    }
}
