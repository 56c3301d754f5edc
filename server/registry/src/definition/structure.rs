//! Check of all schemas of a definition for structural validity.

use portico_machinery::{Object, aggregate};
use portico_schema::structural::definition::violations;

/// Result of the check that all schemas of a definition are structural. New definitions always are; older ones may not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Structure {
    /// All schemas are structural.
    #[default]
    Sound,
    /// A schema is not structural; contains upstream's combined errors.
    Violated(String),
    /// A schema cannot be read.
    Unreadable(String),
}

impl Structure {
    /// Checks all versions of a definition.
    #[must_use]
    pub fn check(definition: &Object) -> Self {
        let spec = definition.at(&["spec"]);
        let preserves = spec.field("preserveUnknownFields");
        let mut errors: Vec<String> = Vec::new();
        if preserves.bool() {
            errors.push(preserves.invalid("must be false").to_string());
        }
        for version in spec.field("versions").items() {
            match violations(&version.field("schema").field("openAPIV3Schema")) {
                Ok(more) => errors.extend(more.iter().map(ToString::to_string)),
                Err(reason) => {
                    let name = version.field("name").str();
                    return Self::Unreadable(format!(
                        "failed to check validation schema for version {name}: {reason}"
                    ));
                }
            }
        }
        if errors.is_empty() { Self::Sound } else { Self::Violated(aggregate(&errors)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_of_old_schemas_are_reported() {
        let structure = |spec: &str| {
            Structure::check(&Object::from_json(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap())
        };
        let versions =
            |schema: &str| format!(r#""versions":[{{"name":"v1","schema":{{"openAPIV3Schema":{schema}}}}}]"#);
        assert_eq!(structure(&format!("{{{}}}", versions(r#"{"type":"object"}"#))), Structure::Sound);
        let preserves = "spec.preserveUnknownFields: Invalid value: true: must be false";
        assert_eq!(structure(r#"{"preserveUnknownFields":true}"#), Structure::Violated(preserves.into()));
        let untyped = versions(r#"{"type":"object","properties":{"a":{}}}"#);
        let missing = "spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields";
        assert_eq!(structure(&format!("{{{untyped}}}")), Structure::Violated(missing.into()));
        let both = format!(r#"{{"preserveUnknownFields":true,{untyped}}}"#);
        assert_eq!(structure(&both), Structure::Violated(format!("[{preserves}, {missing}]")));
    }
}
