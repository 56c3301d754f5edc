//! Files that are refused with upstream's messages, and files that are accepted.

use std::path::PathBuf;

use crate::encryption::EncryptionSettings;

/// Key of 16 bytes.
const KEY: &str = "c2VjcmV0IGlzIHNlY3VyZQ==";
/// Key of 32 bytes.
const LONG: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// Returns the error for a file with these resources; empty if the file is accepted.
fn refusal(resources: &str, automatic_reload: bool) -> String {
    let text = format!(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources: {}",
        resources.replace("KEY", KEY).replace("LONG", LONG)
    );
    check_text(&text, automatic_reload)
}

fn check_text(text: &str, automatic_reload: bool) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, text).unwrap();
    let settings = EncryptionSettings { config: Some(file.clone()), automatic_reload };
    let refused = settings.check().err().map(|error| error.to_string()).unwrap_or_default();
    refused.replace(&file.display().to_string(), "FILE")
}

#[test]
fn files_that_upstream_accepts_are_accepted() {
    for resources in [
        "[{resources: [secrets], providers: [{identity: {}}]}]",
        "[{resources: [secrets, things.example.com], providers: [{aescbc: {keys: [{name: a, secret: KEY}]}}, {identity: {}}]}]",
        "[{resources: [secrets], providers: [{aesgcm: {keys: [{name: a, secret: KEY}, {name: b, secret: KEY}]}}]}]",
        "[{resources: [events], providers: [{identity: {}}]}, {resources: ['*.apps'], providers: [{secretbox: {keys: \
         [{name: a, secret: LONG}]}}]}, {resources: ['*.*'], providers: [{identity: {}}]}]",
        "[{resources: [secrets], providers: [{kms: {apiVersion: v2, name: a, endpoint: 'unix:///tmp/s.sock', timeout: 3s}}]}]",
    ] {
        assert_eq!(refusal(resources, true), "", "{resources}");
    }
}

#[test]
fn files_that_upstream_refuses_are_refused_with_its_messages() {
    let parsing = |message: &str| format!("error while parsing file: {message}");
    for (resources, expected) in [
        ("[]", "resources: Required value: at least one resources is required"),
        (
            "[{resources: [], providers: []}]",
            "[resources[0].resources: Required value: at least one resources[0].resources is required, \
             resources[0].providers: Required value: at least one resources[0].providers is required]",
        ),
        (
            "[{resources: [secrets, secrets], providers: [{identity: {}}]}]",
            "resources[0].resources: Invalid value: [\"secrets\",\"secrets\"]: the same resource cannot be specified multiple times",
        ),
        (
            "[{resources: [secrets, '*.'], providers: [{identity: {}}]}]",
            "resources[0].resources: Invalid value: [\"secrets\",\"*.\"]: using overlapping resources such as 'secrets' and '*.' in \
             the same resource list is not allowed as they will be masked",
        ),
        (
            "[{resources: [Secrets], providers: [{identity: {}}]}]",
            "resources[0].resources[0]: Invalid value: \"Secrets\": resource name should not contain capital letters",
        ),
        (
            "[{resources: ['*'], providers: [{identity: {}}]}]",
            "resources[0].resources[0]: Invalid value: \"*\": use '*.' to encrypt all the resources from core API group or *.* to \
             encrypt all resources",
        ),
        (
            "[{resources: [secrets], providers: [{}]}]",
            "resources[0].providers[0]: Invalid value: \"REDACTED\": provider does not contain any of the expected providers: \
             KMS, AESGCM, AESCBC, Secretbox, Identity",
        ),
        (
            "[{resources: [secrets], providers: [{identity: {}, aescbc: {keys: [{name: a, secret: KEY}]}}]}]",
            "resources[0].providers[0]: Invalid value: \"REDACTED\": more than one provider specified in a single element, should \
             split into different list elements",
        ),
        (
            "[{resources: [secrets], providers: [{aescbc: {keys: [{name: '', secret: YQ==}, {name: a, secret: '!'}]}}]}]",
            "[resources[0].providers[0].aescbc.keys[0].name: Required value: name is a mandatory field for a key, \
             resources[0].providers[0].aescbc.keys[0].secret: Invalid value: \"REDACTED\": secret is not of the expected length, \
             got 1, expected one of [16 24 32], resources[0].providers[0].aescbc.keys[1].secret: Invalid value: \"REDACTED\": \
             secrets must be base64 encoded]",
        ),
        (
            "[{resources: [secrets], providers: [{secretbox: {keys: []}}]}]",
            "resources[0].providers[0].secretbox.keys: Required value: at least one keys is required",
        ),
        (
            "[{resources: [secrets], providers: [{kms: {apiVersion: v2, name: 'a:b', endpoint: 'tcp:///x', cachesize: 3}}]}]",
            "[resources[0].providers[0].kms.name: Invalid value: \"a:b\": invalid KMS provider name a:b, must not contain ':', \
             resources[0].providers[0].kms.endpoint: Invalid value: \"tcp:///x\": unsupported scheme \"tcp\" for KMS provider, only \
             unix is supported, resources[0].providers[0].kms.cachesize: Invalid value: 3: cachesize is not supported in v2]",
        ),
    ] {
        assert_eq!(refusal(resources, false), parsing(expected), "{resources}");
    }
}

#[test]
fn masked_rules_and_the_first_version_of_key_services_are_refused() {
    let masked = "[{resources: ['*.'], providers: [{identity: {}}]}, {resources: [secrets], providers: [{identity: {}}]}]";
    let message = "error while building transformers: resource \"secrets\" is masked by earlier rule \"*.\"";
    assert_eq!(refusal(masked, false), message);
    let first = "[{resources: [secrets], providers: [{kms: {name: a, endpoint: 'unix:///s'}}]}]";
    assert!(refusal(first, false).contains("KMSv1 is deprecated"), "{}", refusal(first, false));
}

#[test]
fn other_files_are_refused() {
    for (text, expected) in [
        ("", "encryption provider configuration file \"FILE\" is empty"),
        ("kind: Pod\napiVersion: v1", "no kind \"Pod\" is registered for version \"v1\""),
        (
            "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources: []\nother: 1",
            "strict decoding error: unknown field \"other\"",
        ),
    ] {
        assert!(check_text(text, false).contains(expected), "{text}: {}", check_text(text, false));
    }
    let missing = EncryptionSettings { config: Some(PathBuf::from("/nowhere")), automatic_reload: false };
    assert!(missing.check().unwrap_err().to_string().contains("open /nowhere: no such file or directory"));
}
