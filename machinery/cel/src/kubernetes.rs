//! Libraries that each release of kube-apiserver offers to expressions.

use crate::language::Language;
use crate::library::{self, Library};

/// Minor release of Kubernetes (1.x) whose libraries new expressions may use.
///
/// kube-apiserver compiles new and changed expressions with the libraries of the previous release, so that they
/// survive a rollback.
pub const NEW_EXPRESSIONS: u16 = 35;
/// Minor release of Kubernetes (1.x) whose libraries stored expressions may use.
pub const STORED_EXPRESSIONS: u16 = 36;

/// Libraries, with the minor release of Kubernetes 1.x that introduced each (0: available in all).
const LIBRARIES: [(u16, fn() -> Library); 16] = [
    (0, library::standard),
    (0, library::url),
    (27, library::authorization),
    (0, library::regex),
    (0, library::kubernetes_lists),
    (0, library::strings),
    (28, library::optional),
    (28, library::quantity),
    (29, library::string_formatting),
    (29, library::sets),
    (30, library::ip),
    (30, library::cidr),
    (31, library::format),
    (32, library::comprehensions),
    (33, library::semver),
    (34, library::lists),
];

impl Language {
    /// Returns the libraries of kube-apiserver 1.`minor`. Building a language takes some time: build it once and share it.
    /// Most expressions may not use `cel.bind`; [`Language::with_bindings`] includes it.
    #[must_use]
    pub fn of_release(minor: u16) -> Self {
        Self::of(release_libraries(minor), true)
    }

    /// Returns the libraries of kube-apiserver 1.`minor` and `cel.bind`.
    #[must_use]
    pub fn with_bindings(minor: u16) -> Self {
        Self::of(release_libraries(minor).chain([library::bindings()]), true)
    }
}

fn release_libraries(minor: u16) -> impl Iterator<Item = Library> {
    LIBRARIES.into_iter().filter(move |(since, _)| *since <= minor).map(|(_, library)| library())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_is_offered_to_new_and_to_stored_expressions() {
        assert_eq!(release_libraries(NEW_EXPRESSIONS).count(), LIBRARIES.len());
        assert_eq!(release_libraries(STORED_EXPRESSIONS).count(), LIBRARIES.len());
        let names = |libraries: &mut dyn Iterator<Item = Library>| -> Vec<_> {
            libraries.map(|library| library.name).collect()
        };
        let mut all = names(&mut library::all().into_iter());
        let of_few = [library::bindings().name, library::json_patch().name];
        all.retain(|name| !of_few.contains(name));
        let mut offered = names(&mut release_libraries(NEW_EXPRESSIONS));
        all.sort_unstable();
        offered.sort_unstable();
        assert_eq!(all, offered, "every library of this crate but those that few expressions may use");
    }

    #[test]
    fn earlier_releases_offer_less() {
        assert!(Language::of_release(27).function("isQuantity").is_none());
        assert!(Language::of_release(28).function("isQuantity").is_some());
    }
}
