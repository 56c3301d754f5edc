//! Validation of probes and lifecycle hooks: actions and thresholds.

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use crate::Errors;
use crate::{checks, values};

/// Validates lifecycle hooks and probes of a container that may have them.
pub(super) fn lifecycle_and_probes(container: &Cursor<'_>, spec: &Cursor<'_>, errors: &mut Errors) {
    let grace = spec.field("terminationGracePeriodSeconds").i64().unwrap_or(0);
    let lifecycle = container.field("lifecycle");
    for hook in ["postStart", "preStop"] {
        let hook = lifecycle.field(hook);
        if hook.is_present() {
            handler(&hook, grace, errors);
        }
    }
    for (name, must_succeed_once) in
        [("livenessProbe", true), ("readinessProbe", false), ("startupProbe", true)]
    {
        let probe = container.field(name);
        if !probe.is_present() {
            continue;
        }
        validate_probe(&probe, grace, errors);
        if must_succeed_once && probe.field("successThreshold").i64().unwrap_or(0) != 1 {
            let threshold = probe.field("successThreshold");
            errors.push(Error::invalid(&threshold.path(), threshold.i64().unwrap_or(0), "must be 1"));
        }
        if name == "readinessProbe" && probe.field("terminationGracePeriodSeconds").is_present() {
            let field = probe.field("terminationGracePeriodSeconds");
            errors.push(field.invalid("must not be set for readinessProbes"));
        }
    }
}

fn validate_probe(probe: &Cursor<'_>, grace: i64, errors: &mut Errors) {
    handler(probe, grace, errors);
    for number in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        checks::not_negative(&probe.field(number), errors);
    }
    let probe_grace_period = probe.field("terminationGracePeriodSeconds");
    if probe_grace_period.i64().is_some_and(|seconds| seconds <= 0) {
        errors.push(probe_grace_period.invalid("must be greater than 0"));
    }
}

/// Requires exactly one action in a handler.
fn handler(handler: &Cursor<'_>, grace: i64, errors: &mut Errors) {
    let mut count = 0;
    for kind in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let action = handler.field(kind);
        if !action.is_present() {
            continue;
        }
        if count > 0 {
            errors.push(action.forbidden("may not specify more than 1 handler type"));
            continue;
        }
        count += 1;
        match kind {
            "exec" => {
                if action.field("command").is_empty() {
                    errors.push(action.field("command").required(""));
                }
            }
            "httpGet" => http_get(&action, errors),
            "tcpSocket" => values::port_or_name(&action.field("port"), errors),
            "grpc" => values::port(&action.field("port"), errors),
            _ => sleep(&action, grace, errors),
        }
    }
    if count == 0 {
        errors.push(handler.required("must specify a handler type"));
    }
}

fn http_get(get: &Cursor<'_>, errors: &mut Errors) {
    checks::not_empty(&get.field("path"), errors);
    values::port_or_name(&get.field("port"), errors);
    let scheme = get.field("scheme");
    if !matches!(scheme.str(), "HTTP" | "HTTPS") {
        errors.push(scheme.not_supported(&["HTTP", "HTTPS"]));
    }
    let headers = get.field("httpHeaders");
    for header in headers.items() {
        let name = header.field("name").str();
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            errors.push(Error::invalid(&headers.path(), name, HEADER_NAME));
        }
    }
}

const HEADER_NAME: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";

fn sleep(sleep: &Cursor<'_>, grace: i64, errors: &mut Errors) {
    let seconds = sleep.field("seconds").i64().unwrap_or(0);
    if seconds < 0 || seconds > grace {
        let text = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.push(Error::invalid(&sleep.path(), seconds, &text));
    }
}
