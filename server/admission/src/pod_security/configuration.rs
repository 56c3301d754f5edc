//! Configuration of PodSecurity: the policy of namespaces without labels, and exemptions (upstream's `PodSecurityConfiguration`).

use std::collections::BTreeSet;

use portico_machinery::field::Error;
use portico_machinery::{Object, aggregate, names};

use super::policy::{Policy, Standard, parse_level, parse_version};
use crate::configuration_kinds::{ConfigKind, PluginConfigurationError, Scheme};

const KIND: &str = "PodSecurityConfiguration";
const SCHEME: Scheme = Scheme {
    kinds: &[
        ConfigKind { version: "pod-security.admission.config.k8s.io/v1", kind: KIND, ty: KIND },
        ConfigKind { version: "pod-security.admission.config.k8s.io/v1beta1", kind: KIND, ty: KIND },
        ConfigKind { version: "pod-security.admission.config.k8s.io/v1alpha1", kind: KIND, ty: KIND },
    ],
    types: r#"{
        "PodSecurityConfiguration": {"fields": {
            "kind": {"type": "string"}, "apiVersion": {"type": "string"},
            "defaults": {"type": "PodSecurityDefaults"}, "exemptions": {"type": "PodSecurityExemptions"}
        }},
        "PodSecurityDefaults": {"fields": {
            "enforce": {"type": "string"}, "enforce-version": {"type": "string"},
            "audit": {"type": "string"}, "audit-version": {"type": "string"},
            "warn": {"type": "string"}, "warn-version": {"type": "string"}
        }},
        "PodSecurityExemptions": {"fields": {
            "usernames": {"type": "[]string"}, "namespaces": {"type": "[]string"},
            "runtimeClasses": {"type": "[]string"}
        }}
    }"#,
    strict: true,
};

/// Configuration of PodSecurity.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodSecurityConfiguration {
    /// Policy of namespaces without labels.
    pub(super) default: Policy,
    users: BTreeSet<String>,
    namespaces: BTreeSet<String>,
    runtime_classes: BTreeSet<String>,
}

impl PodSecurityConfiguration {
    /// Reads a configuration. Without one, the default policy is privileged and nothing is exempt.
    pub(crate) fn read(bytes: Option<&[u8]>) -> Result<Self, PluginConfigurationError> {
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else { return Ok(Self::default()) };
        let object = SCHEME.decode(bytes)?;
        let default = policy(&object)?;
        let mut errors = Vec::new();
        let namespaces = exemptions(&object, "namespaces", names::dns1123_label, &mut errors);
        let runtime_classes = exemptions(&object, "runtimeClasses", names::dns1123_subdomain, &mut errors);
        let users = exemptions(&object, "usernames", user_name, &mut errors);
        if !errors.is_empty() {
            let message = format!("PodSecurity invalid: {}", aggregate(&errors));
            return Err(PluginConfigurationError::Message(message));
        }
        Ok(Self { default, users, namespaces, runtime_classes })
    }

    pub(super) fn exempts_user(&self, name: &str) -> bool {
        !name.is_empty() && self.users.contains(name)
    }

    pub(super) fn exempts_namespace(&self, name: &str) -> bool {
        self.namespaces.contains(name)
    }

    pub(super) fn exempts_runtime_class(&self, name: &str) -> bool {
        self.runtime_classes.contains(name)
    }
}

/// Reads the default policy. Missing parts are privileged, in the latest version (upstream's `ToPolicy`).
fn policy(object: &Object) -> Result<Policy, PluginConfigurationError> {
    let (mut policy, mut errors) = (Policy::default(), Vec::new());
    let modes: [(&str, &mut Standard); 3] =
        [("enforce", &mut policy.enforce), ("audit", &mut policy.audit), ("warn", &mut policy.warn)];
    for (mode, standard) in modes {
        let of_version = format!("{mode}-version");
        let text_of = |field: &str| object.at(&["defaults", field]).str().to_owned();
        if let Some(text) = Some(text_of(mode)).filter(|text| !text.is_empty()) {
            match parse_level(&text) {
                Ok(level) => standard.level = level,
                Err(error) => errors.push(format!("{mode}: {error}")),
            }
        }
        if let Some(text) = Some(text_of(&of_version)).filter(|text| !text.is_empty()) {
            match parse_version(&text) {
                Ok(version) => standard.version = version,
                Err(error) => errors.push(format!("{of_version}: {error}")),
            }
        }
    }
    if errors.is_empty() {
        return Ok(policy);
    }
    let message = format!("PodSecurity configuration error: {}", aggregate(errors));
    Err(PluginConfigurationError::Message(message))
}

/// Reads a list of exempt names, which must be unique and valid.
fn exemptions(
    object: &Object,
    list: &str,
    diagnose: fn(&str) -> Vec<String>,
    errors: &mut Vec<Error>,
) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for name in object.at(&["exemptions", list]).items() {
        let diagnostics = diagnose(name.str());
        if !diagnostics.is_empty() {
            errors.push(name.invalid(&diagnostics.join(", ")));
        } else if !names.insert(name.str().to_owned()) {
            errors.push(name.duplicate());
        }
    }
    names
}

fn user_name(name: &str) -> Vec<String> {
    if name.is_empty() { vec!["username must not be empty".to_owned()] } else { Vec::new() }
}
