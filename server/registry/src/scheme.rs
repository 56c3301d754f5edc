//! Known kinds, for errors about bodies of a wrong kind (upstream's scheme and its conversions).

mod retired;

use std::collections::HashSet;

use portico_kinds::Kinds;
use portico_machinery::GroupVersionKind;
use portico_schema::DecodeError;

pub(crate) use self::retired::has_current_fields;

/// Kinds that every group version has (`metav1.AddToGroupVersion`).
const OF_EACH_VERSION: [&str; 7] = [
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "ListOptions",
    "PatchOptions",
    "UpdateOptions",
    "WatchEvent",
];
/// Kinds of `v1` that belong to no resource.
const UNVERSIONED: [&str; 6] =
    ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "List", "Status"];
/// Groups whose servers have separate schemes.
const OTHER_SCHEMES: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Kinds of the core server's scheme.
#[derive(Default)]
pub(crate) struct Scheme {
    kinds: HashSet<GroupVersionKind>,
    versions: HashSet<(String, String)>,
}

impl Scheme {
    pub(crate) fn new(kinds: &Kinds) -> Self {
        let mut scheme = Self::default();
        for info in kinds.iter().filter(|info| !OTHER_SCHEMES.contains(&info.gvk.group.as_str())) {
            let list = GroupVersionKind { kind: info.list_kind.clone(), ..info.gvk.clone() };
            let views = info.subresources.iter().map(|subresource| subresource.kind.clone());
            scheme.kinds.extend([info.gvk.clone(), list].into_iter().chain(views));
            scheme.versions.insert((info.gvk.group.clone(), info.gvk.version.clone()));
        }
        scheme
    }

    fn contains(&self, found: &GroupVersionKind) -> bool {
        let kind = found.kind.as_str();
        let unversioned = found.group.is_empty() && found.version == "v1" && UNVERSIONED.contains(&kind);
        let is_of_every_version = || OF_EACH_VERSION.contains(&kind) && self.has_version(found);
        unversioned || self.kinds.contains(found) || retired::is_retired(found) || is_of_every_version()
    }

    fn has_version(&self, kind: &GroupVersionKind) -> bool {
        self.versions.contains(&(kind.group.clone(), kind.version.clone()))
    }

    /// Converts the error about a body of a wrong kind to upstream's error: upstream decodes any known kind,
    /// then finds no conversion.
    pub(crate) fn refusal(&self, error: DecodeError, expected: &GroupVersionKind) -> DecodeError {
        let other_scheme = OTHER_SCHEMES.contains(&expected.group.as_str());
        if !other_scheme && !self.has_version(expected) {
            // Custom resources have no scheme.
            return error;
        }
        match error {
            DecodeError::WrongKind { found, expected: name } if !other_scheme && self.contains(&found) => {
                let error = format!(
                    "converting ({}.{}) to ({}.{name}): unknown conversion",
                    package(&found),
                    found.kind,
                    internal_package(&expected.group)
                );
                DecodeError::CannotBeHandled { found, expected: name, error }
            }
            DecodeError::Version { found: text, expected: wanted } => {
                let found =
                    text.parse().ok().map(|version: portico_machinery::GroupVersion| GroupVersionKind {
                        group: version.group,
                        version: version.version,
                        kind: expected.kind.clone(),
                    });
                match found.filter(|found| !self.contains(found)) {
                    Some(found) => DecodeError::WrongKind { found, expected: expected.kind.clone() },
                    None => DecodeError::Version { found: text, expected: wanted },
                }
            }
            error => error,
        }
    }
}

/// Go package of a kind's type.
fn package(found: &GroupVersionKind) -> &str {
    let kind = found.kind.as_str();
    let is_meta_kind = OF_EACH_VERSION.contains(&kind) || UNVERSIONED.contains(&kind);
    if is_meta_kind { "v1" } else { &found.version }
}

/// Go package of the internal types to which upstream converts all versions of a group.
fn internal_package(group: &str) -> &str {
    match group {
        "" | "events.k8s.io" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        group => group.split('.').next().unwrap_or(group),
    }
}
