//! Converts the spec of a review to the user and the request that the authorizer checks.

use portico_machinery::selector::{FieldSelector, LabelSelector};
use portico_machinery::{Cursor, RequestInfo, UserInfo};

/// Returns the user of the spec. No groups are added.
pub(super) fn user(spec: &Cursor<'_>) -> UserInfo {
    let strings = |list: &Cursor<'_>| list.items().map(|item| item.str().to_owned()).collect();
    let extra = spec.field("extra");
    UserInfo {
        name: spec.field("user").str().to_owned(),
        uid: spec.field("uid").str().to_owned(),
        groups: strings(&spec.field("groups")),
        extra: extra.entries().map(|(key, values)| (key.to_lowercase(), strings(&values))).collect(),
    }
}

/// Returns the request of the spec. An empty version becomes `*`.
pub(super) fn request(spec: &Cursor<'_>) -> RequestInfo {
    let (path, resource) = (spec.field("nonResourceAttributes"), spec.field("resourceAttributes"));
    let text = |at: &Cursor<'_>, field: &str| at.field(field).str().to_owned();
    if path.is_present() {
        return RequestInfo {
            verb: text(&path, "verb"),
            path: text(&path, "path"),
            ..RequestInfo::default()
        };
    }
    let version = match resource.field("version").str() {
        "" => "*",
        version => version,
    };
    RequestInfo {
        is_resource_request: true,
        verb: text(&resource, "verb"),
        namespace: text(&resource, "namespace"),
        api_group: text(&resource, "group"),
        api_version: version.to_owned(),
        resource: text(&resource, "resource"),
        subresource: text(&resource, "subresource"),
        name: text(&resource, "name"),
        field_selector: field_selector(&resource.field("fieldSelector")),
        label_selector: label_selector(&resource.field("labelSelector")),
        ..RequestInfo::default()
    }
}

/// Returns the field selector in the form of a query parameter. Requirements that cannot be expressed are omitted, which makes
/// the request match more objects and therefore need more permissions.
fn field_selector(selector: &Cursor<'_>) -> String {
    let raw = selector.field("rawSelector").str();
    if FieldSelector::parse(raw).is_ok_and(|read| !read.is_empty()) {
        return raw.to_owned();
    }
    let terms = selector.field("requirements").items().filter_map(|requirement| {
        let operator = match requirement.field("operator").str() {
            "In" => "=",
            "NotIn" => "!=",
            _ => return None,
        };
        let mut values = requirement.field("values").items();
        let value = values.next().filter(|_| values.next().is_none())?;
        Some(format!("{}{operator}{}", requirement.field("key").str(), FieldSelector::escape(value.str())))
    });
    terms.collect::<Vec<_>>().join(",")
}

/// Returns the label selector in the form of a query parameter. Requirements that cannot be expressed are omitted.
fn label_selector(selector: &Cursor<'_>) -> String {
    let raw = selector.field("rawSelector").str();
    if LabelSelector::parse(raw).is_ok_and(|read| !read.is_empty()) {
        return raw.to_owned();
    }
    let terms = selector.field("requirements").items().filter_map(|requirement| {
        let key = requirement.field("key").str();
        let values: Vec<_> = requirement.field("values").items().map(|value| value.str()).collect();
        let term = match (requirement.field("operator").str(), values.is_empty()) {
            ("In", false) => format!("{key} in ({})", values.join(",")),
            ("NotIn", false) => format!("{key} notin ({})", values.join(",")),
            ("Exists", true) => key.to_owned(),
            ("DoesNotExist", true) => format!("!{key}"),
            _ => return None,
        };
        LabelSelector::parse(&term).is_ok().then_some(term)
    });
    terms.collect::<Vec<_>>().join(",")
}

/// Describes selectors that could not be parsed. Such selectors are ignored in the decision.
pub(super) fn selector_errors(resource: &Cursor<'_>) -> Vec<String> {
    let field = (resource.field("fieldSelector"), "fieldSelector", &["In", "NotIn"][..]);
    let label =
        (resource.field("labelSelector"), "labelSelector", &["In", "NotIn", "Exists", "DoesNotExist"][..]);
    [field, label]
        .into_iter()
        .filter_map(|(selector, name, operators)| {
            let failure = parse_failure(&selector, name, operators)?;
            Some(format!("spec.resourceAttributes.{name} {failure} due to parse error"))
        })
        .collect()
}

/// Returns how much of a selector is ignored, or `None` if it was parsed completely.
fn parse_failure(selector: &Cursor<'_>, name: &str, operators: &[&str]) -> Option<&'static str> {
    let raw = selector.field("rawSelector").str();
    if !raw.is_empty() {
        let reads = if name == "labelSelector" {
            LabelSelector::parse(raw).is_ok()
        } else {
            FieldSelector::parse(raw).is_ok()
        };
        return (!reads).then_some("ignored");
    }
    let all: Vec<_> = selector.field("requirements").items().collect();
    let read =
        all.iter().filter(|requirement| operators.contains(&requirement.field("operator").str())).count();
    match read {
        read if read == all.len() => None,
        0 => Some("ignored"),
        _ => Some("partially ignored"),
    }
}
