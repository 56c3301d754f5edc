//! How upstream lays a definition out inside: what is alike in all versions stands once, outside of them.
//!
//! Nobody sees that layout but in the paths of errors, and in a few rules that only it explains.

use std::collections::HashMap;

use portico_machinery::{Cursor, Object};

use portico_validation::checks;

/// A part of a version that stands outside when all versions have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Schema,
    Subresources,
    Columns,
    Selectable,
}

impl Part {
    const ALL: [Self; 4] = [Self::Schema, Self::Subresources, Self::Columns, Self::Selectable];

    /// Its name in a version.
    pub(super) fn in_version(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Subresources => "subresources",
            Self::Columns => "additionalPrinterColumns",
            Self::Selectable => "selectableFields",
        }
    }

    fn outside(self) -> &'static str {
        if self == Self::Schema { "validation" } else { self.in_version() }
    }
}

/// A definition as upstream holds it.
pub(super) struct Layout<'a> {
    /// `spec`.
    pub(super) spec: Cursor<'a>,
    /// `spec.versions[*]` as written.
    pub(super) versions: Vec<Cursor<'a>>,
    shared: [bool; 4],
    /// Whether a version of this name has a status subresource; of versions of one name the first counts.
    status_of: HashMap<&'a str, bool>,
}

impl<'a> Layout<'a> {
    pub(super) fn of(definition: &'a Object) -> Self {
        let spec = definition.at(&["spec"]);
        let versions: Vec<_> = spec.field("versions").items().collect();
        let shared = Part::ALL.map(|part| is_shared(&versions, part.in_version()));
        let mut status_of = HashMap::with_capacity(versions.len());
        for version in &versions {
            status_of.entry(version.field("name").str()).or_insert_with(|| has_status(version));
        }
        Self { spec, versions, shared, status_of }
    }

    /// Whether the part stands outside of the versions, be it there or not.
    fn is_shared(&self, part: Part) -> bool {
        self.shared[part as usize]
    }

    /// The part that all versions share, where upstream holds it.
    pub(super) fn common(&self, part: Part) -> Option<Cursor<'a>> {
        let first = self.versions.first()?.field(part.in_version());
        (self.is_shared(part) && first.is_present()).then(|| self.spec.field(part.outside()).holding(&first))
    }

    /// The part that is this version's own.
    pub(super) fn own(&self, version: &Cursor<'a>, part: Part) -> Option<Cursor<'a>> {
        let own = version.field(part.in_version());
        (!self.is_shared(part) && own.is_present()).then_some(own)
    }

    /// The schemas as upstream holds them: one for all versions, or each version's own.
    pub(super) fn schemas(&self) -> Vec<Cursor<'a>> {
        let common = self.common(Part::Schema);
        let own = self.versions.iter().filter_map(|version| self.own(version, Part::Schema));
        let schemas = common.into_iter().chain(own).map(|schema| schema.field("openAPIV3Schema"));
        schemas.filter(Cursor::is_present).collect()
    }

    /// Whether a version has a status subresource; of versions of one name the first counts.
    pub(super) fn has_status(&self, version: &Cursor<'a>) -> bool {
        self.status_of.get(version.field("name").str()).copied().unwrap_or_default()
    }

    /// Whether any version has one.
    pub(super) fn any_has_status(&self) -> bool {
        self.versions.iter().any(has_status)
    }
}

fn has_status(version: &Cursor<'_>) -> bool {
    version.field("subresources").field("status").is_present()
}

fn is_shared(versions: &[Cursor<'_>], part: &str) -> bool {
    let Some((first, rest)) = versions.split_first() else { return false };
    rest.iter().all(|version| checks::same(&version.field(part), &first.field(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(json: &str) -> Vec<String> {
        let definition = Object::from_json(json.as_bytes()).unwrap();
        let layout = Layout::of(&definition);
        let mut found: Vec<_> = Part::ALL.iter().filter_map(|part| layout.common(*part)).collect();
        for version in &layout.versions {
            found.extend(Part::ALL.iter().filter_map(|part| layout.own(version, *part)));
        }
        found.iter().map(|at| at.path().to_string()).collect()
    }

    #[test]
    fn what_versions_share_stands_outside_of_them() {
        let one = r#"{"spec":{"versions":[{"name":"v1","schema":{"a":1},"subresources":{}}]}}"#;
        assert_eq!(paths(one), ["spec.validation", "spec.subresources"]);
        let same = r#"{"spec":{"versions":[{"schema":{"a":1},"selectableFields":[1]},{"schema":{"a":1}}]}}"#;
        assert_eq!(paths(same), ["spec.validation", "spec.versions[0].selectableFields"]);
        let other = r#"{"spec":{"versions":[{"schema":{"a":1}},{"schema":{"a":2}}]}}"#;
        assert_eq!(paths(other), ["spec.versions[0].schema", "spec.versions[1].schema"]);
        assert!(paths(r#"{"spec":{}}"#).is_empty());
    }
}
