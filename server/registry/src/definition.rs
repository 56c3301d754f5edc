//! Properties of CustomResourceDefinitions that serving, their strategy, controllers and documents share.

mod approval;
mod schema;
mod structure;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_kinds::Kinds;
use portico_kit::pki;
use portico_machinery::{GroupResource, Object};

pub use approval::{APPROVAL_ANNOTATION, Approval, is_protected};
pub use schema::schema_of;
pub use structure::Structure;

/// API group of definitions.
pub const GROUP: &str = "apiextensions.k8s.io";
/// Resource name of definitions.
pub const RESOURCE: &str = "customresourcedefinitions";
/// Finalizer that keeps a definition until its custom resources are deleted.
pub const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Condition type: the names do not conflict with another definition of the group.
pub const NAMES_ACCEPTED: &str = "NamesAccepted";
/// Condition type: the custom resources are served.
pub const ESTABLISHED: &str = "Established";
/// Condition type: the definition and its custom resources are being deleted.
pub const TERMINATING: &str = "Terminating";

/// Group and resource of definitions.
#[must_use]
pub fn resource() -> GroupResource {
    GroupResource::new(GROUP, RESOURCE)
}

/// True if a server of these kinds serves definitions.
#[must_use]
pub fn are_served(kinds: &Kinds) -> bool {
    kinds.iter().any(|kind| kind.group_resource() == resource())
}

/// Name of the storage version of a definition; the first one if there are several.
#[must_use]
pub fn storage_version(definition: &Object) -> Option<String> {
    let versions = definition.at(&["spec", "versions"]);
    let storage = versions.items().find(|version| version.field("storage").bool());
    storage.map(|version| version.field("name").str().to_owned())
}

/// True if a webhook's `caBundle` (base64) is empty, which trusts the system's roots, or contains a valid certificate.
#[must_use]
pub fn is_ca_bundle(base64: &str) -> bool {
    match STANDARD.decode(base64) {
        Ok(pem) => pem.is_empty() || pki::root_store("caBundle", &pem).is_ok(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_empty_or_contains_certificates() {
        let pem = portico_kit::pki::Authority::create("ca").unwrap().cert_pem().to_owned();
        assert!(is_ca_bundle("") && is_ca_bundle(&STANDARD.encode(pem)));
        assert!(!is_ca_bundle(&STANDARD.encode("no certificate")) && !is_ca_bundle("%"));
    }
}
