//! What all parts that deal with CustomResourceDefinitions share: who serves them, their strategy, their controllers,
//! documents.

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

/// The group of definitions.
pub const GROUP: &str = "apiextensions.k8s.io";
/// Their resource.
pub const RESOURCE: &str = "customresourcedefinitions";
/// What holds a definition until its instances are gone.
pub const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Condition: the group has nobody else with these names.
pub const NAMES_ACCEPTED: &str = "NamesAccepted";
/// Condition: it is served.
pub const ESTABLISHED: &str = "Established";
/// Condition: it is on its way out, and its instances with it.
pub const TERMINATING: &str = "Terminating";

/// The resource of definitions.
#[must_use]
pub fn resource() -> GroupResource {
    GroupResource::new(GROUP, RESOURCE)
}

/// Whether a server of these kinds has definitions.
#[must_use]
pub fn are_served(kinds: &Kinds) -> bool {
    kinds.iter().any(|kind| kind.group_resource() == resource())
}

/// The name of the version that a definition's objects are stored in, of the first one where there are several.
#[must_use]
pub fn storage_version(definition: &Object) -> Option<String> {
    let versions = definition.at(&["spec", "versions"]);
    let storage = versions.items().find(|version| version.field("storage").bool());
    storage.map(|version| version.field("name").str().to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_nothing_or_certificates() {
        let pem = portico_kit::pki::Authority::create("ca").unwrap().cert_pem().to_owned();
        assert!(is_ca_bundle("") && is_ca_bundle(&STANDARD.encode(pem)));
        assert!(!is_ca_bundle(&STANDARD.encode("no certificate")) && !is_ca_bundle("%"));
    }
}
