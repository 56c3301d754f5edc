//! Valid configuration files, and upstream's messages for invalid ones.

use super::*;

fn read_file(rest: &str) -> Result<Configuration, String> {
    let text = format!("apiVersion: apiserver.config.k8s.io/v1\nkind: {KIND}\n{rest}");
    Configuration::read(text.as_bytes(), &["https://own".to_owned()], None)
}

fn issuer(issuer: &str, mappings: &str, fields: &str) -> Result<Configuration, String> {
    read_file(&format!("jwt: [{{issuer: {{{issuer}}}, claimMappings: {{{mappings}}}{fields}}}]"))
}

const ISSUER: &str = "url: 'https://i', audiences: [a]";
const SUB: &str = "username: {claim: sub, prefix: ''}";

#[test]
fn a_valid_file_configures_issuers_and_anonymous_access() {
    let read =
        issuer(ISSUER, SUB, ", userValidationRules: [{expression: \"user.username != 'x'\"}]").unwrap();
    assert_eq!((read.issuers[0].address.url.as_str(), &read.anonymous), ("https://i", &None));
    assert_eq!(read.issuers[0].authenticator.user_rules.len(), 1);
    assert!(read_file("").unwrap().issuers.is_empty());
    for (anonymous, expected) in [
        ("{enabled: true}", AnonymousAccess::Allowed),
        ("{enabled: false}", AnonymousAccess::Denied),
        (
            "{enabled: true, conditions: [{path: /livez}]}",
            AnonymousAccess::Paths(["/livez".to_owned()].into()),
        ),
    ] {
        assert_eq!(read_file(&format!("anonymous: {anonymous}")).unwrap().anonymous, Some(expected));
    }
    for version in ["v1beta1", "v1alpha1"] {
        let text = format!("apiVersion: apiserver.config.k8s.io/{version}\nkind: {KIND}\njwt: []\n");
        assert!(Configuration::read(text.as_bytes(), &[], None).is_ok(), "{version}");
    }
}

/// Issuer, mappings, further fields, and the expected error.
const INVALID: &[(&str, &str, &str, &str)] = &[
    ("audiences: [a]", SUB, "", "jwt[0].issuer.url: Required value"),
    (
        "url: 'http://i', audiences: [a]",
        SUB,
        "",
        "jwt[0].issuer.url: Invalid value: \"http://i\": URL scheme must be https",
    ),
    (
        "url: 'https://own', audiences: [a]",
        SUB,
        "",
        "jwt[0].issuer.url: Invalid value: \"https://own\": URL must not overlap with disallowed issuers: [https://own]",
    ),
    ("url: 'https://i?q#f', audiences: [a]", SUB, "", "URL must not contain a query"),
    ("url: 'https://u:p@i', audiences: [a]", SUB, "", "URL must not contain a username or password"),
    (
        "url: 'https://i', discoveryURL: 'https://i/', audiences: [a]",
        SUB,
        "",
        "jwt[0].issuer.discoveryURL: Invalid value: \"https://i/\": discoveryURL must be different from URL",
    ),
    (
        "url: 'https://i'",
        SUB,
        "",
        "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required",
    ),
    (
        "url: 'https://i', audiences: [a, a]",
        SUB,
        "",
        "[jwt[0].issuer.audiences[1]: Duplicate value: \"a\", jwt[0].issuer.audienceMatchPolicy: Invalid value: \"\": audienceMatchPolicy must be MatchAny for multiple audiences]",
    ),
    (
        "url: 'https://i', audiences: [a], certificateAuthority: bad",
        SUB,
        "",
        "jwt[0].issuer.certificateAuthority: Invalid value: \"<omitted>\": data does not contain any valid RSA or ECDSA certificates",
    ),
    (ISSUER, "", "", "jwt[0].claimMappings.username: Required value: claim or expression is required"),
    (
        ISSUER,
        "username: {claim: sub}",
        "",
        "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing",
    ),
    (
        ISSUER,
        "username: {claim: sub, expression: claims.sub}",
        "",
        "jwt[0].claimMappings.username: Invalid value: \"\": claim and expression can't both be set",
    ),
    (
        ISSUER,
        "username: {prefix: p, expression: claims.sub}",
        "",
        "jwt[0].claimMappings.username.prefix: Invalid value: \"p\": may not be specified when expression is set",
    ),
    (
        ISSUER,
        "username: {expression: claims.email}",
        "",
        "claims.email_verified must be used in claimMappings.username.expression",
    ),
    (
        ISSUER,
        "username: {expression: foo}",
        "",
        "jwt[0].claimMappings.username.expression: Invalid value: \"foo\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo'",
    ),
    (
        ISSUER,
        "username: {claim: s, prefix: ''}, extra: [{key: k, valueExpression: claims.k}]",
        "",
        "jwt[0].claimMappings.extra[0].key: Invalid value: \"k\": must be a domain-prefixed path (such as \"acme.io/foo\")",
    ),
    (
        ISSUER,
        "username: {claim: s, prefix: ''}, extra: [{key: a.k8s.io/K, valueExpression: ''}]",
        "",
        "must be lowercase",
    ),
    (
        ISSUER,
        "username: {claim: s, prefix: ''}, extra: [{key: a.k8s.io/K, valueExpression: ''}]",
        "",
        "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use, jwt[0].claimMappings.extra[0].valueExpression: Required value",
    ),
    (
        ISSUER,
        SUB,
        ", claimValidationRules: [{claim: a, expression: b}]",
        "jwt[0].claimValidationRules[0]: Invalid value: \"a\": claim and expression can't both be set",
    ),
    (
        ISSUER,
        SUB,
        ", claimValidationRules: [{message: a}]",
        "jwt[0].claimValidationRules[0]: Required value: claim or expression is required",
    ),
    (
        ISSUER,
        SUB,
        ", claimValidationRules: [{expression: claims.a}]",
        "jwt[0].claimValidationRules[0].expression: Invalid value: \"claims.a\": must evaluate to bool",
    ),
    (
        ISSUER,
        SUB,
        ", userValidationRules: [{message: a}]",
        "jwt[0].userValidationRules[0].expression: Required value",
    ),
    (
        "url: 'https://i', audiences: [a], egressSelectorType: x",
        SUB,
        "",
        "jwt[0].issuer.egressSelectorType: Invalid value: \"x\": egress selector must be either controlplane or cluster",
    ),
];

#[test]
fn errors_have_upstreams_messages() {
    for (issuer_fields, mappings, fields, expected) in INVALID {
        let error = issuer(issuer_fields, mappings, fields).unwrap_err();
        assert!(error.contains(expected), "{error}\n{expected}");
    }
    let duplicate_issuers =
        "{issuer: {url: 'https://i', audiences: [a]}, claimMappings: {username: {claim: s, prefix: ''}}}";
    let error = read_file(&format!("jwt: [{duplicate_issuers}, {duplicate_issuers}]")).unwrap_err();
    assert_eq!(
        error,
        "invalid authentication configuration: jwt[1].issuer.url: Duplicate value: \"https://i\""
    );
    let error = read_file("anonymous: {enabled: false, conditions: [{path: /x}]}").unwrap_err();
    assert!(error.contains("anonymous.conditions: Invalid value: "), "{error}");
    assert!(read_file("jwts: []").unwrap_err().contains("strict decoding error: unknown field \"jwts\""));
}

#[test]
fn a_later_file_cannot_change_anonymous_access() {
    let text = |fields: &str| format!("apiVersion: apiserver.config.k8s.io/v1\nkind: {KIND}\n{fields}");
    let initial = InitialAnonymous(Some(AnonymousAccess::Denied));
    let read = |fields: &str| Configuration::read(text(fields).as_bytes(), &[], Some(&initial));
    assert!(read("anonymous: {enabled: false}").is_ok());
    let expected =
        "invalid authentication configuration: anonymous: Forbidden: changed from initial configuration file";
    assert_eq!(read("jwt: []").unwrap_err(), expected);
}
