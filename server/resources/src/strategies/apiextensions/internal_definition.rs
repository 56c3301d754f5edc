//! Definition in the layout of upstream's internal type, which has parts at the top level if they are equal in all versions.
//!
//! Clients see this layout only in the paths of errors and in a few rules that depend on it.

use std::collections::HashMap;

use portico_machinery::{Cursor, Object};

use portico_validation::checks;

/// Part of a version that is at the top level if all versions have the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VersionPart {
    Schema,
    Subresources,
    Columns,
    Selectable,
}

impl VersionPart {
    const ALL: [Self; 4] = [Self::Schema, Self::Subresources, Self::Columns, Self::Selectable];

    /// Field name in a version.
    pub(super) fn version_field(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Subresources => "subresources",
            Self::Columns => "additionalPrinterColumns",
            Self::Selectable => "selectableFields",
        }
    }

    fn top_level_field(self) -> &'static str {
        if self == Self::Schema { "validation" } else { self.version_field() }
    }
}

/// Definition in the layout of upstream's internal type.
pub(super) struct InternalDefinition<'a> {
    /// `spec`.
    pub(super) spec: Cursor<'a>,
    /// `spec.versions[*]` as written.
    pub(super) versions: Vec<Cursor<'a>>,
    shared: [bool; 4],
    /// Presence of a status subresource, by version name. If several versions have one name, the first one counts.
    has_status_by_name: HashMap<&'a str, bool>,
}

impl<'a> InternalDefinition<'a> {
    pub(super) fn of(definition: &'a Object) -> Self {
        let spec = definition.at(&["spec"]);
        let versions: Vec<_> = spec.field("versions").items().collect();
        let shared = VersionPart::ALL.map(|part| is_shared(&versions, part.version_field()));
        let mut has_status_by_name = HashMap::with_capacity(versions.len());
        for version in &versions {
            has_status_by_name.entry(version.field("name").str()).or_insert_with(|| has_status(version));
        }
        Self { spec, versions, shared, has_status_by_name }
    }

    /// True if the part is at the top level, even if it is absent.
    fn is_shared(&self, part: VersionPart) -> bool {
        self.shared[part as usize]
    }

    /// Returns a part that all versions share, with its path at the top level.
    pub(super) fn shared_part(&self, part: VersionPart) -> Option<Cursor<'a>> {
        let first = self.versions.first()?.field(part.version_field());
        (self.is_shared(part) && first.is_present())
            .then(|| self.spec.field(part.top_level_field()).with_value_of(&first))
    }

    /// Returns a part that is specific to this version.
    pub(super) fn version_part(&self, version: &Cursor<'a>, part: VersionPart) -> Option<Cursor<'a>> {
        let version_part = version.field(part.version_field());
        (!self.is_shared(part) && version_part.is_present()).then_some(version_part)
    }

    /// Returns the schemas: one for all versions, or that of each version.
    pub(super) fn schemas(&self) -> Vec<Cursor<'a>> {
        let common = self.shared_part(VersionPart::Schema);
        let own_schemas =
            self.versions.iter().filter_map(|version| self.version_part(version, VersionPart::Schema));
        let schemas = common.into_iter().chain(own_schemas).map(|schema| schema.field("openAPIV3Schema"));
        schemas.filter(Cursor::is_present).collect()
    }

    /// True if a version has a status subresource. If several versions have one name, the first one counts.
    pub(super) fn has_status(&self, version: &Cursor<'a>) -> bool {
        self.has_status_by_name.get(version.field("name").str()).copied().unwrap_or_default()
    }

    /// True if any version has a status subresource.
    pub(super) fn any_has_status(&self) -> bool {
        self.versions.iter().any(has_status)
    }
}

fn has_status(version: &Cursor<'_>) -> bool {
    version.field("subresources").field("status").is_present()
}

fn is_shared(versions: &[Cursor<'_>], part: &str) -> bool {
    let Some((first, rest)) = versions.split_first() else { return false };
    rest.iter().all(|version| checks::is_same(&version.field(part), &first.field(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(json: &str) -> Vec<String> {
        let definition = Object::from_json(json.as_bytes()).unwrap();
        let layout = InternalDefinition::of(&definition);
        let mut found: Vec<_> =
            VersionPart::ALL.iter().filter_map(|part| layout.shared_part(*part)).collect();
        for version in &layout.versions {
            found.extend(VersionPart::ALL.iter().filter_map(|part| layout.version_part(version, *part)));
        }
        found.iter().map(|at| at.path().to_string()).collect()
    }

    #[test]
    fn shared_parts_are_at_the_top_level() {
        let single_version = r#"{"spec":{"versions":[{"name":"v1","schema":{"a":1},"subresources":{}}]}}"#;
        assert_eq!(paths(single_version), ["spec.validation", "spec.subresources"]);
        let equal_schemas =
            r#"{"spec":{"versions":[{"schema":{"a":1},"selectableFields":[1]},{"schema":{"a":1}}]}}"#;
        assert_eq!(paths(equal_schemas), ["spec.validation", "spec.versions[0].selectableFields"]);
        let other = r#"{"spec":{"versions":[{"schema":{"a":1}},{"schema":{"a":2}}]}}"#;
        assert_eq!(paths(other), ["spec.versions[0].schema", "spec.versions[1].schema"]);
        assert!(paths(r#"{"spec":{}}"#).is_empty());
    }
}
