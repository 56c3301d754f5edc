//! One webhook: what it is asked about, where it is, and how long one waits.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use super::{expressions, rules};
use crate::strategies::Errors;
use crate::validation::{checks, label_selector, values};

const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const NOT_QUALIFIED: &str = "should be a domain with at least three segments separated by dots";
const FORM: &str = "; desired format: https://host[/path]";

/// Judges a webhook of either kind.
pub(super) fn webhook(webhook: &Cursor<'_>, errors: &mut Errors) {
    qualified(&webhook.field("name"), errors);
    review_versions(&webhook.field("admissionReviewVersions"), errors);
    webhook.field("rules").items().for_each(|at| rules::rule(&at, errors));
    checks::one_of(&webhook.field("failurePolicy"), &["Fail", "Ignore"], errors);
    checks::one_of(&webhook.field("matchPolicy"), &["Equivalent", "Exact"], errors);
    let effects = webhook.field("sideEffects");
    match effects.str() {
        "" => errors.push(effects.required("must specify one of None, NoneOnDryRun")),
        _ => checks::one_of(&effects, &["None", "NoneOnDryRun"], errors),
    }
    let timeout = webhook.field("timeoutSeconds");
    if timeout.i64().is_some_and(|n| !(1..=30).contains(&n)) {
        errors.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
    }
    label_selector(&webhook.field("namespaceSelector"), errors);
    label_selector(&webhook.field("objectSelector"), errors);
    checks::one_of(&webhook.field("reinvocationPolicy"), &["IfNeeded", "Never"], errors);
    client(&webhook.field("clientConfig"), errors);
    expressions::match_conditions(&webhook.field("matchConditions"), errors);
}

/// A name of at least three parts.
fn qualified(name: &Cursor<'_>, errors: &mut Errors) {
    if name.str().is_empty() {
        errors.push(name.required(""));
        return;
    }
    let complaints = names::dns1123_subdomain(name.str());
    if complaints.is_empty() && name.str().split('.').count() < 3 {
        errors.push(name.invalid(NOT_QUALIFIED));
    }
    errors.extend(names::errors(&name.path(), name.str(), complaints));
}

fn review_versions(versions: &Cursor<'_>, errors: &mut Errors) {
    if versions.is_empty() {
        errors.push(versions.required(&format!("must specify one of {}", VERSIONS.join(", "))));
        return;
    }
    let (mut seen, mut known) = (HashSet::new(), false);
    for version in versions.items() {
        if seen.insert(version.str()) {
            checks::follows(&version, names::dns1035_label, errors);
        } else {
            errors.push(version.invalid("duplicate version"));
        }
        known |= VERSIONS.contains(&version.str());
    }
    if !known {
        errors.push(versions.invalid(&format!("must include at least one of {}", VERSIONS.join(", "))));
    }
}

fn client(config: &Cursor<'_>, errors: &mut Errors) {
    let (address, service) = (config.field("url"), config.field("service"));
    match (address.is_present(), service.is_present()) {
        (true, false) => url(&address, errors),
        (false, true) => self::service(&service, errors),
        _ => errors.push(config.required("exactly one of url or service is required")),
    }
}

/// Each complaint shows the part that it is about.
fn url(at: &Cursor<'_>, errors: &mut Errors) {
    let (rest, fragment) = at.str().split_once('#').unwrap_or((at.str(), ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once(':').unwrap_or(("", rest));
    let authority = rest.strip_prefix("//").unwrap_or("").split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let mut complain = |when: bool, part: &str, text: &str| {
        if when {
            errors.push(Error::invalid(&at.path(), part, text));
        }
    };
    complain(scheme != "https", scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    complain(host.is_empty(), host, &format!("host must be specified{FORM}"));
    complain(!user.is_empty(), user, "user information is not permitted in the URL");
    complain(!fragment.is_empty(), fragment, "fragments are not permitted in the URL");
    complain(!query.is_empty(), query, "query parameters are not permitted in the URL");
}

fn service(service: &Cursor<'_>, errors: &mut Errors) {
    // Upstream reports the one at the place of the other.
    if service.field("name").str().is_empty() {
        errors.push(service.field("namespace").required(""));
    }
    if service.field("namespace").str().is_empty() {
        errors.push(service.field("name").required(""));
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
    let steps = text.get(1..).unwrap_or_default();
    for (number, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        if step.is_empty() {
            errors.push(at.invalid(&format!("segment[{number}] may not be empty")));
            continue;
        }
        for complaint in names::dns1123_subdomain(step) {
            errors.push(at.invalid(&format!("segment[{number}]: {complaint}")));
        }
    }
}
