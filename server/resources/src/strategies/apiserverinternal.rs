//! internal.apiserver.k8s.io: StorageVersion, in which each server reports the storage version of a resource.

use std::collections::HashMap;

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, Object, names};

use portico_registry::{Strategy, SubresourceStrategy};
use portico_validation::Errors;

/// Message of upstream for a text that is not a `group/version`.
const INVALID_VERSION: &str = "an apiVersion is a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')";
const MUST_NOT_BE_EMPTY: &str = "must be non-empty";

pub(crate) struct StorageVersion;

impl Strategy for StorageVersion {}

impl SubresourceStrategy for StorageVersion {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        let status = new.at(&["status"]);
        let mut seen = Vec::new();
        for server in status.field("storageVersions").items() {
            let id = server.field("apiServerID");
            if seen.contains(&id.str()) {
                errors.push(id.duplicate());
            }
            seen.push(id.str());
            validate_server(&server, errors);
        }
        validate_common(&status, errors);
        validate_conditions(&status, errors);
    }
}

fn validate_server(server: &Cursor<'_>, errors: &mut Errors) {
    let [id, encoding, decodable, served] =
        ["apiServerID", "encodingVersion", "decodableVersions", "servedVersions"].map(|f| server.field(f));
    errors.extend(names::to_field_errors(&id.path(), id.str(), names::dns1123_subdomain(id.str())));
    validate_version(&encoding, errors);
    for version in decodable.items() {
        validate_version(&version, errors);
    }
    let decodable_versions: Vec<&str> = decodable.items().map(|version| version.str()).collect();
    if !decodable_versions.contains(&encoding.str()) {
        let text = format!("decodableVersions must include encodingVersion {}", encoding.str());
        errors.push(decodable.invalid(&text));
    }
    for version in served.items() {
        validate_version(&version, errors);
        if !decodable_versions.contains(&version.str()) {
            let (version_name, decodable_list) = (version.str(), decodable_versions.join(" "));
            errors.push(version.invalid(&format!(
                "individual served version : {version_name} must be included in decodableVersions : [{decodable_list}]"
            )));
        }
    }
}

fn validate_version(version: &Cursor<'_>, errors: &mut Errors) {
    let diagnostics = diagnostics(version.str());
    if !diagnostics.is_empty() {
        errors.push(version.invalid(&diagnostics.join(",")));
    }
}

/// Returns diagnostics about a `group/version` or `version`.
fn diagnostics(api_version: &str) -> Vec<String> {
    let prefix_with = |part: &'static str| move |message: String| format!("{part} part: {message}");
    let (group, version) = match api_version.split('/').collect::<Vec<_>>().as_slice() {
        [version] => (None, *version),
        [group, version] => (Some(*group), *version),
        _ => return vec![INVALID_VERSION.to_owned()],
    };
    let empty = |text: &str, or: fn(&str) -> Vec<String>| {
        if text.is_empty() { vec![MUST_NOT_BE_EMPTY.to_owned()] } else { or(text) }
    };
    let group = group.map(|group| empty(group, names::dns1123_subdomain)).unwrap_or_default();
    let version = empty(version, names::dns1035_label);
    group
        .into_iter()
        .map(prefix_with("group"))
        .chain(version.into_iter().map(prefix_with("version")))
        .collect()
}

/// Checks that the common version is the version of all servers, and that it is unset if they differ or none has reported.
fn validate_common(status: &Cursor<'_>, errors: &mut Errors) {
    let mut reported = status.field("storageVersions").items().map(|s| s.field("encodingVersion").str());
    let first = reported.next();
    let actual = first.filter(|first| reported.all(|other| other == *first));
    let common = status.field("commonEncodingVersion");
    match (actual, common.opt_str()) {
        (None, Some(_)) => errors.push(common.invalid(
            "should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet",
        )),
        (Some(actual), None) => errors.push(common.invalid(&format!("the common encoding version is {actual}"))),
        (Some(actual), Some(text)) if actual != text => {
            errors.push(common.invalid(&format!("the actual common encoding version is {actual}")));
        }
        _ => {}
    }
}

/// Validates conditions. As upstream, errors have paths of the form `status[i]`.
fn validate_conditions(status: &Cursor<'_>, errors: &mut Errors) {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (index, condition) in status.field("conditions").items().enumerate() {
        let path: Path = status.path().index(index);
        let [kind, value, reason, message] =
            ["type", "status", "reason", "message"].map(|f| condition.field(f).str());
        if let Some(other) = seen.insert(kind, index) {
            let text =
                format!("the type of the condition is not unique, it also appears in conditions[{other}]");
            errors.push(Error::invalid(&path.child("type"), kind, &text));
        }
        for (field, text) in [("type", kind), ("status", value)] {
            errors.extend(names::to_field_errors(&path.child(field), text, names::qualified_name(text)));
        }
        for (field, text) in [("reason", reason), ("message", message)] {
            if text.is_empty() {
                errors.push(Error::required(&path.child(field), ""));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validation_errors(status: &str) -> Vec<String> {
        let object = Object::from_json(format!(r#"{{"status":{status}}}"#).as_bytes()).unwrap();
        let mut errors = Errors::new();
        StorageVersion.validate_status(&object, &object, &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_common_version_must_match_all_servers() {
        let good = r#"{"storageVersions":[{"apiServerID":"a","encodingVersion":"apps/v1","decodableVersions":["apps/v1"],
            "servedVersions":["apps/v1"]}],"commonEncodingVersion":"apps/v1",
            "conditions":[{"type":"AllEncodingVersionsEqual","status":"True","reason":"R","message":"m"}]}"#;
        assert_eq!(validation_errors(good), [""; 0]);
        assert_eq!(validation_errors("{}"), [""; 0]);
        let invalid = r#"{"storageVersions":[{"apiServerID":"a","encodingVersion":"v1","decodableVersions":["a/b/c","/v2"],"servedVersions":["v3"]}],
            "conditions":[{"type":"T","status":"True","reason":"","message":"m"},{"type":"T","status":"True","reason":"R","message":"m"}]}"#;
        let fields: Vec<String> = validation_errors(invalid)
            .iter()
            .map(|e| e.split(": ").next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(
            fields,
            [
                "status.storageVersions[0].decodableVersions[0]",
                "status.storageVersions[0].decodableVersions[1]",
                "status.storageVersions[0].decodableVersions",
                "status.storageVersions[0].servedVersions[0]",
                "status.commonEncodingVersion",
                "status[0].reason",
                "status[1].type",
            ]
        );
    }

    #[test]
    fn an_api_version_is_validated_part_by_part() {
        assert!(diagnostics("v1").is_empty() && diagnostics("example.com/v1").is_empty());
        assert_eq!(diagnostics("/v1"), ["group part: must be non-empty"]);
        assert_eq!(diagnostics("a/"), ["version part: must be non-empty"]);
        assert_eq!(diagnostics("a/b/c"), [INVALID_VERSION]);
        assert!(diagnostics("A_/1").len() == 2);
    }
}
