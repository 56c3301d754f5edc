//! Configuration of PodTolerationRestriction (upstream's `podtolerationrestriction.admission.k8s.io/v1alpha1`).

use portico_machinery::Object;
use portico_schema::Format;
use portico_validation::tolerations::tolerations;

use super::toleration::Toleration;
use crate::configuration_kinds::{ConfigKind, PluginConfigurationError, Scheme, decode_untagged};

/// Types of the configuration, and of an annotation: its list is decoded as a field of an object.
const TYPES: &str = r#"{
    "Configuration": {"fields": {
        "kind": {"type": "string"}, "apiVersion": {"type": "string"},
        "default": {"type": "[]Toleration"}, "whitelist": {"type": "[]Toleration"}
    }},
    "Annotation": {"fields": {"list": {"type": "[]Toleration"}}},
    "Toleration": {"fields": {
        "key": {"type": "string"}, "operator": {"type": "string"}, "value": {"type": "string"},
        "effect": {"type": "string"}, "tolerationSeconds": {"type": "int64"}
    }}
}"#;

const SCHEME: Scheme = Scheme {
    kinds: &[ConfigKind {
        version: "podtolerationrestriction.admission.k8s.io/v1alpha1",
        kind: "Configuration",
        ty: "Configuration",
    }],
    types: TYPES,
    strict: false,
};

/// Reads a JSON list of tolerations from an annotation of a namespace.
///
/// # Errors
/// Go's message about the invalid JSON.
pub(super) fn parse_list(json: &[u8]) -> Result<Vec<Toleration>, String> {
    let object = decode_untagged(TYPES, "Annotation", &[br#"{"list":"#, json, b"}"].concat(), Format::Json);
    // Upstream decodes the list without an object around it.
    let without_wrapper = |text: String| {
        let text = text.replace("struct field Annotation.list", "value").replace(".list.", ".");
        text.trim_start_matches("json parse error: ").to_owned()
    };
    let object = object.map_err(|error| without_wrapper(error.to_string()))?;
    Ok(object.at(&["list"]).items().map(|item| Toleration::read(&item)).collect())
}

/// Configuration of PodTolerationRestriction.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodTolerationRestrictionConfiguration {
    /// Tolerations of pods in namespaces without the annotation.
    pub(super) default: Vec<Toleration>,
    /// Tolerations that pods in namespaces without the annotation may have; empty to allow all.
    pub(super) whitelist: Vec<Toleration>,
}

impl PodTolerationRestrictionConfiguration {
    /// Reads a configuration. Without one, nothing is added and everything is allowed.
    pub(crate) fn read(bytes: Option<&[u8]>) -> Result<Self, PluginConfigurationError> {
        let Some(bytes) = bytes else { return Ok(Self::default()) };
        let read = SCHEME.decode(bytes)?;
        // Paths in upstream's errors start with the name of the plugin.
        let (mut object, lists) = (Object::default(), ["default", "whitelist"]);
        for list in lists {
            if let Some(node) = read.get(&[list]) {
                object.put(&["podtolerationrestriction", list], node);
            }
        }
        let [default, whitelist] = lists.map(|list| object.at(&["podtolerationrestriction", list]));
        let mut errors = Vec::new();
        tolerations(&default, &mut errors);
        tolerations(&whitelist, &mut errors);
        if !errors.is_empty() {
            let errors: Vec<_> =
                errors.iter().map(|error| format!("{}: {}", error.path, error.body)).collect();
            return Err(PluginConfigurationError::Message(format!("invalid config: [{}]", errors.join(" "))));
        }
        let [default, whitelist] =
            [default, whitelist].map(|list| list.items().map(|item| Toleration::read(&item)).collect());
        Ok(Self { default, whitelist })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_lists_are_refused_with_gos_messages() {
        for (text, error) in [
            ("{", "unexpected end of JSON input"),
            (r#"{"key":1}"#, "json: cannot unmarshal object into Go value of type []v1.Toleration"),
            (
                r#"[{"key":1}]"#,
                "json: cannot unmarshal number into Go struct field Toleration.key of type string",
            ),
        ] {
            assert_eq!(parse_list(text.as_bytes()), Err(error.to_owned()), "{text}");
        }
        assert_eq!(parse_list(b"[]"), Ok(Vec::new()));
    }
}
