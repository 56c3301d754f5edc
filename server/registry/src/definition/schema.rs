//! Extraction of a version's schema from the JSON of a definition, without parsing the rest.

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Definition<'a> {
    #[serde(borrow)]
    spec: Spec<'a>,
}

#[derive(Deserialize)]
struct Spec<'a> {
    #[serde(borrow)]
    versions: Vec<Version<'a>>,
}

#[derive(Deserialize)]
struct Version<'a> {
    name: String,
    #[serde(borrow)]
    schema: Option<Validation<'a>>,
}

#[derive(Deserialize)]
struct Validation<'a> {
    #[serde(borrow, rename = "openAPIV3Schema")]
    schema: Option<&'a RawValue>,
}

/// JSON of a version's `openAPIV3Schema`; `None` if it has none.
///
/// # Errors
/// Bytes that are not a definition, which the store never contains.
pub fn schema_of<'a>(definition: &'a [u8], version: &str) -> Result<Option<&'a str>, serde_json::Error> {
    let definition: Definition<'a> = serde_json::from_slice(definition)?;
    let found = definition.spec.versions.into_iter().find(|known| known.name == version);
    Ok(found.and_then(|version| version.schema?.schema).map(RawValue::get))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_its_own_schema_or_none() {
        let definition = br#"{"spec":{"group":"g","versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type": "object"}}},
            {"name":"v2","schema":{}},{"name":"v3"}]}}"#;
        let of = |version| schema_of(definition, version).unwrap();
        assert_eq!(of("v1"), Some(r#"{"type": "object"}"#));
        assert_eq!((of("v2"), of("v3"), of("v4")), (None, None, None));
        assert!(schema_of(b"{}", "v1").is_err());
    }
}
