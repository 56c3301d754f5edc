//! Validation of fields common to admission and conversion webhooks: client configuration and review versions.

use std::collections::HashSet;

use portico_gostd::url::Url;
use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use super::{checks, values};
use crate::Errors;

/// Review versions that upstream sends.
pub const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const FORM: &str = "; desired format: https://host[/path]";

/// Validates a client configuration: exactly one of a URL and a Service.
pub fn client_config(config: &Cursor<'_>, errors: &mut Errors) {
    let (address, service) = (config.field("url"), config.field("service"));
    match (address.is_present(), service.is_present()) {
        (true, false) => self::address(&address, errors),
        (false, true) => self::service(&service, errors),
        _ => errors.push(config.required("exactly one of url or service is required")),
    }
}

/// True if the list contains a version that upstream sends.
pub fn has_known_version(versions: &Cursor<'_>) -> bool {
    versions.items().any(|version| REVIEW_VERSIONS.contains(&version.str()))
}

/// Validates review versions: at least one, without duplicates. With `requires_supported`, requires one that upstream sends.
pub fn review_versions(versions: &Cursor<'_>, none: &str, requires_supported: bool, errors: &mut Errors) {
    if versions.is_empty() {
        errors.push(versions.required(none));
        return;
    }
    let mut seen = HashSet::new();
    for version in versions.items() {
        if seen.insert(version.str()) {
            checks::matches_rule(&version, names::dns1035_label, errors);
        } else {
            errors.push(version.invalid("duplicate version"));
        }
    }
    if requires_supported && !has_known_version(versions) {
        let list = REVIEW_VERSIONS.join(", ");
        errors.push(versions.invalid(&format!("must include at least one of {list}")));
    }
}

/// Validates the URL of a webhook. Each error contains the invalid part.
fn address(at: &Cursor<'_>, errors: &mut Errors) {
    let url = match Url::read(at.str()) {
        Ok(url) => url,
        Err(reason) => return errors.push(at.required(&format!("url must be a valid URL: {reason}{FORM}"))),
    };
    let mut reject = |when: bool, part: &str, text: &str| {
        if when {
            errors.push(Error::invalid(&at.path(), part, text));
        }
    };
    reject(url.scheme != "https", &url.scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    reject(url.host().is_empty(), "", &format!("host must be specified{FORM}"));
    let (user, fragment) = (url.user(), url.fragment());
    let named = user.as_deref().unwrap_or_default();
    reject(user.is_some(), named, "user information is not permitted in the URL");
    reject(!fragment.is_empty(), &fragment, "fragments are not permitted in the URL");
    reject(!url.query().is_empty(), url.query(), "query parameters are not permitted in the URL");
}

fn service(service: &Cursor<'_>, errors: &mut Errors) {
    // Upstream swaps the paths of these two errors.
    if service.field("namespace").str().is_empty() {
        errors.push(service.field("name").required(""));
    }
    if service.field("name").str().is_empty() {
        errors.push(service.field("namespace").required(""));
    }
    let port = service.field("port");
    if let Some(text) = port.i64().and_then(values::port_number) {
        errors.push(port.invalid(&format!("port is not valid: {text}")));
    }
    path(&service.field("path"), errors);
}

fn path(at: &Cursor<'_>, errors: &mut Errors) {
    let text = at.str();
    if text.is_empty() || text == "/" {
        return;
    }
    if !text.starts_with('/') {
        errors.push(at.invalid("must start with a '/'"));
    }
    // Upstream skips the first byte without a check.
    let segments = text.get(1..).unwrap_or(text);
    for (number, segment) in segments.strip_suffix('/').unwrap_or(segments).split('/').enumerate() {
        if segment.is_empty() {
            errors.push(at.invalid(&format!("segment[{number}] may not be empty")));
            continue;
        }
        for diagnostic in names::dns1123_subdomain(segment) {
            errors.push(at.invalid(&format!("segment[{number}]: {diagnostic}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use portico_machinery::Object;

    use super::*;

    fn client_errors(config: &str) -> Vec<String> {
        let object = Object::from_json(format!(r#"{{"c":{config}}}"#).as_bytes()).unwrap();
        let mut errors = Vec::new();
        client_config(&object.at(&["c"]), &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_client_config_has_exactly_one_of_url_and_service() {
        let one = "c: Required value: exactly one of url or service is required";
        assert_eq!(client_errors("{}"), [one]);
        assert_eq!(client_errors(r#"{"url":"https://a","service":{}}"#), [one]);
        assert!(client_errors(r#"{"url":"https://a.example/path"}"#).is_empty());
        assert!(client_errors(r#"{"service":{"name":"n","namespace":"s","path":"/a/b"}}"#).is_empty());
    }

    #[test]
    fn each_part_of_a_url_is_reported_by_itself() {
        let form = "; desired format: https://host[/path]";
        assert_eq!(
            client_errors(r#"{"url":"http://u@h?q#f"}"#),
            [
                format!(r#"c.url: Invalid value: "http": 'https' is the only allowed URL scheme{form}"#),
                r#"c.url: Invalid value: "u": user information is not permitted in the URL"#.to_owned(),
                r#"c.url: Invalid value: "f": fragments are not permitted in the URL"#.to_owned(),
                r#"c.url: Invalid value: "q": query parameters are not permitted in the URL"#.to_owned(),
            ]
        );
        let message = format!(
            r#"c.url: Required value: url must be a valid URL: parse ":x": missing protocol scheme{form}"#
        );
        assert_eq!(client_errors(r#"{"url":":x"}"#), [message]);
    }
}
