//! Upstream's `ValidateEncryptionConfiguration`. Error messages never contain keys.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_gostd::time::parse_duration;
use portico_gostd::url::Url;
use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};
use zeroize::Zeroizing;

const AES_KEY_BYTES: &[usize] = &[16, 24, 32];
const SECRETBOX_KEY_BYTES: &[usize] = &[32];
/// Names of the providers in upstream's order.
const PROVIDERS: [&str; 5] = ["kms", "aesgcm", "aescbc", "secretbox", "identity"];
/// Stored resources that are not part of the API.
const INTERNAL_RESOURCES: [&str; 3] =
    ["apiserveripinfo", "serviceipallocations", "servicenodeportallocations"];
/// Replacement for keys in error messages.
const REDACTED: &str = "\"REDACTED\"";

/// Timeout of a key service that does not set it.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3);
/// API version of a key service that does not set it (upstream's default).
const DEFAULT_API_VERSION: &str = "v1";

/// Returns the errors of a decoded file, in upstream's order.
pub(super) fn validate(object: &Object, reload: bool) -> Vec<Error> {
    let resources = object.at(&["resources"]);
    if resources.is_empty() {
        return vec![at_least_one(&resources)];
    }
    let (mut errors, mut names) = (Vec::new(), BTreeSet::new());
    for rule in resources.items() {
        let (resources, providers) = (rule.field("resources"), rule.field("providers"));
        if resources.is_empty() {
            errors.push(at_least_one(&resources));
        }
        errors.extend(overlap(&resources));
        errors.extend(resources.items().filter_map(|resource| check_resource_name(&resource)));
        if providers.is_empty() {
            errors.push(at_least_one(&providers));
        }
        for provider in providers.items() {
            errors.extend(check_single_provider(&provider));
            let present = |name: &&str| provider.field(name).is_present();
            match PROVIDERS.into_iter().find(|name| present(name)) {
                Some("kms") => {
                    let kms = provider.field("kms");
                    errors.extend(check_key_service(&kms, &names, reload));
                    names.insert(kms.field("name").str().to_owned());
                }
                Some(kind @ ("aesgcm" | "aescbc")) => {
                    errors.extend(check_keys(&provider.field(kind), AES_KEY_BYTES))
                }
                Some("secretbox") => {
                    errors.extend(check_keys(&provider.field("secretbox"), SECRETBOX_KEY_BYTES))
                }
                _ => {}
            }
        }
    }
    errors
}

/// Returns the API version of a key service, or its default.
pub(super) fn api_version<'a>(kms: &Cursor<'a>) -> &'a str {
    kms.field("apiVersion").opt_str().filter(|version| !version.is_empty()).unwrap_or(DEFAULT_API_VERSION)
}

/// Returns the timeout of a key service, or its default; `None` if it is not a duration.
pub(super) fn timeout(kms: &Cursor<'_>) -> Option<Duration> {
    match kms.field("timeout").opt_str() {
        None => Some(DEFAULT_TIMEOUT),
        Some(text) => parse_duration(text).ok(),
    }
}

fn at_least_one(at: &Cursor<'_>) -> Error {
    at.required(&format!("at least one {} is required", at.path().as_str()))
}

/// Splits a resource into name and group.
fn split_resource(resource: &str) -> (&str, &str) {
    resource.split_once('.').unwrap_or((resource, ""))
}

/// Checks for overlapping resources (upstream's `validateResourceOverlap`).
fn overlap(resources: &Cursor<'_>) -> Vec<Error> {
    let all: Vec<_> = resources.items().map(|resource| split_resource(resource.str())).collect();
    let (mut duplicate, mut overlaps) = (false, false);
    for (i, first) in all.iter().enumerate() {
        for other in all.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, other)| other) {
            if first == other && !duplicate {
                duplicate = true;
                continue;
            }
            let any = first.0 == "*" || other.0 == "*";
            overlaps |= *first == ("*", "*") || (first.1 == other.1 && any);
        }
    }
    let found = [
        (duplicate, "the same resource cannot be specified multiple times"),
        (
            overlaps,
            "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked",
        ),
    ];
    found.into_iter().filter(|(found, _)| *found).map(|(_, message)| resources.invalid(message)).collect()
}

/// Checks the name of a resource (upstream's `validateResourceNames`).
fn check_resource_name(resource: &Cursor<'_>) -> Option<Error> {
    let text = resource.str();
    let (name, group) = split_resource(text);
    let message = if text.to_lowercase() != text {
        "resource name should not contain capital letters"
    } else if text == "*" {
        "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
    } else if INTERNAL_RESOURCES.contains(&text) {
        "resources which do not have REST API/s cannot be encrypted"
    } else if group == "events.k8s.io" {
        "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file"
    } else if group == "extensions" {
        "'extensions' group has been removed and cannot be used for encryption"
    } else if group == "*" && name != "*" {
        "encrypting the same resource across groups is not supported"
    } else {
        return None;
    };
    Some(resource.invalid(message))
}

/// Checks that a provider has exactly one type (upstream's `validateSingleProvider`). Upstream's message would contain the keys.
fn check_single_provider(provider: &Cursor<'_>) -> Option<Error> {
    let found = PROVIDERS.iter().filter(|name| provider.field(name).is_present()).count();
    let message = match found {
        0 => {
            "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"
        }
        1 => return None,
        _ => {
            "more than one provider specified in a single element, should split into different list elements"
        }
    };
    Some(provider.invalid_as(REDACTED, message))
}

fn check_keys(provider: &Cursor<'_>, lengths: &[usize]) -> Vec<Error> {
    let keys = provider.field("keys");
    if keys.is_empty() {
        return vec![keys.required("at least one keys is required")];
    }
    keys.items().flat_map(|key| self::check_key(&key, lengths)).collect()
}

fn check_key(key: &Cursor<'_>, lengths: &[usize]) -> Vec<Error> {
    let mut errors = Vec::new();
    let (name, secret) = (key.field("name"), key.field("secret"));
    if name.str().is_empty() {
        errors.push(name.required("name is a mandatory field for a key"));
    }
    if secret.str().is_empty() {
        errors.push(secret.required("secret is a mandatory field for a key"));
        return errors;
    }
    match STANDARD.decode(secret.str()).map(Zeroizing::new) {
        Err(_) => errors.push(secret.invalid_as(REDACTED, "secrets must be base64 encoded")),
        Ok(bytes) if !lengths.contains(&bytes.len()) => {
            let expected: Vec<String> = lengths.iter().map(ToString::to_string).collect();
            let (got, expected) = (bytes.len(), expected.join(" "));
            let message =
                format!("secret is not of the expected length, got {got}, expected one of [{expected}]");
            errors.push(secret.invalid_as(REDACTED, &message));
        }
        Ok(_) => {}
    }
    errors
}

/// Checks a key service (upstream's `validateKMSConfiguration`).
fn check_key_service(kms: &Cursor<'_>, names: &BTreeSet<String>, reload: bool) -> Vec<Error> {
    let mut errors = Vec::new();
    let (version, field) = (api_version(kms), kms.field("name"));
    let name = field.str();
    if name.is_empty() {
        errors.push(field.required("name is a mandatory field for a provider"));
    }
    if version != "v1" && name.contains(':') {
        let message = format!("invalid KMS provider name {name}, must not contain ':'");
        errors.push(field.invalid_text(&message));
    }
    if (reload || version != "v1") && names.contains(name) {
        let message = format!("duplicate KMS provider name {name}, names must be unique");
        errors.push(field.invalid_text(&message));
    }
    if timeout(kms).is_none_or(|timeout| timeout.is_zero()) {
        errors.push(kms.field("timeout").invalid("timeout should be a positive value"));
    }
    errors.extend(check_endpoint(&kms.field("endpoint")));
    let cache = kms.field("cachesize");
    if version != "v1" && cache.is_present() {
        errors.push(cache.invalid("cachesize is not supported in v2"));
    }
    if version == "v1" && cache.i64() == Some(0) {
        errors.push(cache.invalid("cachesize should be a positive value, or negative to disable"));
    }
    if !["v1", "v2"].contains(&version) {
        let message = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported";
        errors.push(kms.field("apiVersion").invalid_text(message));
    }
    errors
}

fn check_endpoint(endpoint: &Cursor<'_>) -> Option<Error> {
    let text = endpoint.str();
    if text.is_empty() {
        return Some(endpoint.invalid_text("endpoint is a mandatory field for a kms"));
    }
    let message = match Url::parse(text) {
        Err(error) => format!("invalid endpoint for kms provider, error: {error}"),
        Ok(url) if url.scheme != "unix" => {
            format!("unsupported scheme {:?} for KMS provider, only unix is supported", url.scheme)
        }
        Ok(_) => return None,
    };
    Some(endpoint.invalid_text(&message))
}

#[cfg(test)]
mod tests;
