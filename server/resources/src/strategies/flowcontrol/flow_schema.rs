//! FlowSchema: assigns requests to a priority level.

use portico_machinery::field::Error;
use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object, names};

use portico_registry::{Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::{checks, values};

const PRECEDENCE_MAX: i64 = 10_000;
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
const KINDS: [(&str, &str); 3] = [("User", "user"), ("Group", "group"), ("ServiceAccount", "serviceAccount")];

pub(crate) struct FlowSchema;

impl Strategy for FlowSchema {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn compares_metadata_again(&self, _is_status: bool) -> bool {
        false
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate_spec(new, errors);
        let text = format!("spec of '{}' must equal the fixed value", new.name());
        super::validate_mandatory(new, "FlowSchema", &text, &[], errors);
        super::validate_status(new, errors);
    }
}

impl SubresourceStrategy for FlowSchema {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        super::validate_status(new, errors);
    }
}

impl TableStrategy for FlowSchema {
    fn cell(&self, _function: &str, object: &Object) -> Cell {
        let conditions = object.at(&["status", "conditions"]);
        let dangling = conditions.items().find(|c| c.field("type").str() == "Dangling");
        Cell::text(dangling.map_or("?", |condition| condition.field("status").str()))
    }

    fn row_order(&self) -> Option<fn(&Object) -> i64> {
        Some(|schema| schema.at(&["spec", "matchingPrecedence"]).i64().unwrap_or_default())
    }
}

fn validate_spec(new: &Object, errors: &mut Errors) {
    let spec = new.at(&["spec"]);
    let precedence = spec.field("matchingPrecedence");
    let number = precedence.i64().unwrap_or(0);
    if number <= 0 {
        errors.push(precedence.invalid("must be a positive value"));
    }
    if number > PRECEDENCE_MAX {
        errors.push(precedence.invalid(&format!("must not be greater than {PRECEDENCE_MAX}")));
    }
    if number == 1 && new.name() != "exempt" {
        errors.push(precedence.invalid("only the schema named 'exempt' may have matchingPrecedence 1"));
    }
    let method = spec.field("distinguisherMethod");
    if method.is_present() && !matches!(method.field("type").str(), "ByNamespace" | "ByUser") {
        let mut error = method.field("type").not_supported(&["ByNamespace", "ByUser"]);
        let printed = format!("Unsupported value: {}", method.printed());
        error.body =
            error.body.replacen(&format!("Unsupported value: {:?}", method.field("type").str()), &printed, 1);
        errors.push(error);
    }
    let level = spec.field("priorityLevelConfiguration").field("name");
    if level.str().is_empty() {
        errors.push(level.required("must reference a priority level"));
    } else {
        checks::matches_rule(&level, names::dns1123_subdomain, errors);
    }
    spec.field("rules").items().for_each(|at| validate_rule(&at, errors));
}

fn validate_rule(rule: &Cursor<'_>, errors: &mut Errors) {
    let [subjects, resources, others] =
        ["subjects", "resourceRules", "nonResourceRules"].map(|field| rule.field(field));
    if subjects.is_empty() {
        errors.push(subjects.required("subjects must contain at least one value"));
    }
    subjects.items().for_each(|at| validate_subject(&at, errors));
    if resources.is_empty() && others.is_empty() {
        let text = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(rule.required(text));
    }
    resources.items().for_each(|at| validate_resource_rule(&at, errors));
    for other in others.items() {
        validate_verbs(&other.field("verbs"), errors);
        validate_urls(&other.field("nonResourceURLs"), errors);
    }
}

fn validate_subject(subject: &Cursor<'_>, errors: &mut Errors) {
    let kind = subject.field("kind");
    if !KINDS.iter().any(|(name, _)| *name == kind.str()) {
        errors.push(kind.not_supported(&["Group", "ServiceAccount", "User"]));
        return;
    }
    for (name, member) in KINDS {
        let at = subject.field(member);
        match (name == kind.str(), at.is_present()) {
            (true, false) => {
                errors.push(at.required(&format!("{member} is required when subject kind is '{name}'")));
            }
            (true, true) => validate_subject_name(name, &at, errors),
            (false, true) => {
                errors
                    .push(at.forbidden(&format!("{member} is forbidden when subject kind is not '{name}'")));
            }
            (false, false) => {}
        }
    }
}

fn validate_subject_name(kind: &str, member: &Cursor<'_>, errors: &mut Errors) {
    let (name, namespace) = (member.field("name"), member.field("namespace"));
    if name.str().is_empty() {
        errors.push(name.required(""));
    } else if kind == "ServiceAccount" && name.str() != "*" {
        checks::matches_rule(&name, names::dns1123_subdomain, errors);
    }
    if kind == "ServiceAccount" {
        if namespace.str().is_empty() {
            errors.push(namespace.required("must specify namespace for service account"));
        } else {
            checks::matches_rule(&namespace, values::label, errors);
        }
    }
}

/// True if a list has `*` and other entries.
fn has_wildcard_and_others(list: &Cursor<'_>) -> bool {
    list.len() > 1 && list.items().any(|item| item.str() == "*")
}

fn validate_verbs(verbs: &Cursor<'_>, errors: &mut Errors) {
    if verbs.is_empty() {
        errors.push(verbs.required("verbs must contain at least one value"));
    } else if has_wildcard_and_others(verbs) {
        errors.push(verbs.invalid("if '*' is present, must not specify other verbs"));
    } else if verbs.items().any(|verb| verb.str() != "*" && !VERBS.contains(&verb.str())) {
        let mut error = verbs.not_supported(&VERBS);
        error.body = error.body.replacen(
            "Unsupported value: \"\"",
            &format!("Unsupported value: {}", verbs.printed()),
            1,
        );
        errors.push(error);
    }
}

fn validate_resource_rule(rule: &Cursor<'_>, errors: &mut Errors) {
    validate_verbs(&rule.field("verbs"), errors);
    for (field, missing, others) in [
        ("apiGroups", "resource rules must supply at least one api group", "api groups"),
        ("resources", "resource rules must supply at least one resource", "resources"),
    ] {
        let list = rule.field(field);
        if list.is_empty() {
            errors.push(list.required(missing));
        } else if has_wildcard_and_others(&list) {
            errors.push(list.invalid(&format!("if '*' is present, must not specify other {others}")));
        }
    }
    let namespaces = rule.field("namespaces");
    if namespaces.is_empty() && !rule.field("clusterScope").bool() {
        let text = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.push(namespaces.required(text));
    } else if has_wildcard_and_others(&namespaces) {
        errors.push(namespaces.invalid("if '*' is present, must not specify other namespaces"));
    } else {
        for namespace in namespaces.items().filter(|namespace| namespace.str() != "*") {
            for diagnostic in values::label(namespace.str()) {
                let text = format!("each member of this list must be '*' or a DNS-1123 label; {diagnostic}");
                errors.push(namespace.invalid(&text));
            }
        }
    }
}

fn validate_urls(urls: &Cursor<'_>, errors: &mut Errors) {
    if urls.is_empty() {
        errors.push(urls.required("nonResourceURLs must contain at least one value"));
        return;
    }
    if has_wildcard_and_others(urls) {
        errors.push(urls.invalid("if '*' is present, must not specify other non-resource URLs"));
        return;
    }
    for url in urls.items().filter(|url| url.str() != "*") {
        if let Some(text) = url_diagnostic(url.str()) {
            errors.push(Error::invalid(&url.path(), url.str(), text));
        }
    }
}

fn url_diagnostic(url: &str) -> Option<&'static str> {
    if url.is_empty() {
        Some("must not be empty")
    } else if url == "/" {
        None
    } else if !url.starts_with('/') {
        Some("must start with slash")
    } else if url.contains(' ') {
        Some("must not contain white-space")
    } else if url.contains("//") {
        Some("must not contain double slash")
    } else if url.strip_suffix("/*").unwrap_or(url).contains('*') {
        Some("wildcard can only do suffix matching")
    } else {
        None
    }
}
