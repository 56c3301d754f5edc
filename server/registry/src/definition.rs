//! What the strategy of CustomResourceDefinitions and their controllers have to judge alike (CRD validation rules 16 and
//! 25, the conditions that tell of them).
//!
//! It must not know what follows: a refusal, a condition, or nothing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_kit::pki;
use portico_machinery::Object;
use portico_schema::structural::definition::violations;

use crate::validation::url;

/// Where a protected group's definition says who approved it.
pub const APPROVAL_ANNOTATION: &str = "api-approved.kubernetes.io";

const LEARN_MORE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// Whether a group belongs to the Kubernetes project: its definitions need an approval.
#[must_use]
pub fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

/// What the approval annotation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// A URL: approved there.
    Approved,
    /// `unapproved…`: not approved, and meant so.
    Bypassed,
    /// Nothing.
    Missing,
    /// Neither.
    Invalid,
}

impl Approval {
    /// Reads the annotation's value; an absent one is empty.
    #[must_use]
    pub fn of(annotation: &str) -> Self {
        match annotation {
            "" => Self::Missing,
            text if text.starts_with("unapproved") => Self::Bypassed,
            text if is_absolute_url(text) => Self::Approved,
            _ => Self::Invalid,
        }
    }

    /// Upstream's words for it, the same in refusals and conditions.
    #[must_use]
    pub fn message(self, annotation: &str) -> String {
        let must = format!("protected groups must have approval annotation {APPROVAL_ANNOTATION:?}");
        match self {
            Self::Approved => format!("approved in {annotation}"),
            Self::Bypassed => format!("not approved: {annotation:?}"),
            Self::Missing => format!("{must}, {LEARN_MORE}"),
            Self::Invalid => {
                format!("{must} with either a URL or a reason starting with \"unapproved\", {LEARN_MORE}")
            }
        }
    }
}

fn is_absolute_url(text: &str) -> bool {
    url::parse(text).is_ok_and(|url| !url.scheme.is_empty() && !url.host.is_empty())
}

/// Whether a webhook's `caBundle` (base64, as it stands in the object) holds a certificate; an empty one trusts the
/// system's roots.
#[must_use]
pub fn is_ca_bundle(base64: &str) -> bool {
    match STANDARD.decode(base64) {
        Ok(pem) => pem.is_empty() || pki::root_store("caBundle", &pem).is_ok(),
        Err(_) => false,
    }
}

/// Whether the schemas of a definition are structural. New ones are; older ones were let through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Structure {
    /// They are.
    #[default]
    Sound,
    /// They are not: why, as upstream joins errors.
    Violated(String),
    /// It cannot be told of one of them.
    Unreadable(String),
}

impl Structure {
    /// Judges all versions of a definition.
    #[must_use]
    pub fn of(definition: &Object) -> Self {
        let spec = definition.at(&["spec"]);
        let preserves = spec.field("preserveUnknownFields");
        let mut errors: Vec<String> = Vec::new();
        if preserves.bool() {
            errors.push(preserves.invalid("must be false").to_string());
        }
        for version in spec.field("versions").items() {
            match violations(&version.field("schema").field("openAPIV3Schema")) {
                Ok(more) => errors.extend(more.iter().map(ToString::to_string)),
                Err(why) => {
                    let name = version.field("name").str();
                    return Self::Unreadable(format!(
                        "failed to check validation schema for version {name}: {why}"
                    ));
                }
            }
        }
        match errors.as_slice() {
            [] => Self::Sound,
            [one] => Self::Violated(one.clone()),
            several => Self::Violated(format!("[{}]", several.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_schemas_are_told_what_is_not_structural_about_them() {
        let of = |spec: &str| {
            Structure::of(&Object::from_json(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap())
        };
        let versions =
            |schema: &str| format!(r#""versions":[{{"name":"v1","schema":{{"openAPIV3Schema":{schema}}}}}]"#);
        assert_eq!(of(&format!("{{{}}}", versions(r#"{"type":"object"}"#))), Structure::Sound);
        let preserves = "spec.preserveUnknownFields: Invalid value: true: must be false";
        assert_eq!(of(r#"{"preserveUnknownFields":true}"#), Structure::Violated(preserves.into()));
        let untyped = versions(r#"{"type":"object","properties":{"a":{}}}"#);
        let missing = "spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields";
        assert_eq!(of(&format!("{{{untyped}}}")), Structure::Violated(missing.into()));
        let both = format!(r#"{{"preserveUnknownFields":true,{untyped}}}"#);
        assert_eq!(of(&both), Structure::Violated(format!("[{preserves}, {missing}]")));
    }

    #[test]
    fn only_the_projects_domains_are_protected() {
        let protected = ["k8s.io", "kubernetes.io", "a.k8s.io", "a.b.kubernetes.io"];
        assert!(protected.iter().all(|group| is_protected(group)));
        assert!(
            !["ak8s.io", "k8s.io.example.com", "example.com", ""].iter().any(|group| is_protected(group))
        );
    }

    #[test]
    fn an_approval_is_a_url_or_an_owned_lack_of_one() {
        let rows = [
            ("", Approval::Missing),
            ("unapproved, testing", Approval::Bypassed),
            ("unapproved", Approval::Bypassed),
            ("https://github.com/kubernetes/kubernetes/pull/1", Approval::Approved),
            ("ftp://host?x", Approval::Approved),
            ("approved", Approval::Invalid),
            ("/pull/1", Approval::Invalid),
            ("https:/github.com", Approval::Invalid),
            ("https://", Approval::Invalid),
            ("://host", Approval::Invalid),
            (" https://host", Approval::Invalid),
        ];
        for (annotation, approval) in rows {
            assert_eq!(Approval::of(annotation), approval, "{annotation:?}");
        }
    }

    #[test]
    fn a_bundle_is_nothing_or_certificates() {
        let pem = portico_kit::pki::Authority::create("ca").unwrap().cert_pem().to_owned();
        assert!(is_ca_bundle("") && is_ca_bundle(&STANDARD.encode(pem)));
        assert!(!is_ca_bundle(&STANDARD.encode("no certificate")) && !is_ca_bundle("%"));
    }
}
