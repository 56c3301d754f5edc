//! Matching of rules and requests, and validation of policies.

use proptest::prelude::*;

use portico_machinery::{RequestInfo, UserInfo};

use super::*;
use crate::level::{Level, Stage};

fn policy(rules: &str) -> Policy {
    Policy::parse(&format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}")).unwrap()
}

fn level(policy: &Policy, user: Option<&UserInfo>, method: &str, path: &str) -> &'static str {
    let request = RequestInfo::parse(method, path, "").unwrap();
    policy.evaluate(user, &request).level.as_str()
}

/// Cases of upstream's `TestChecker` and further patterns: rule, method, path, and whether the rule matches.
#[test]
fn a_rule_matches_a_request_if_all_its_fields_match() {
    let tim = UserInfo::new("tim@k8s.io", ["humans", "system:authenticated"]);
    let pods = "/api/v1/namespaces/default/pods/busybox";
    for (rule, method, path, matches) in [
        ("{}", "GET", pods, true),
        ("users: [tim@k8s.io]", "GET", pods, true),
        ("users: [john]", "GET", pods, false),
        ("userGroups: [others, humans]", "GET", pods, true),
        ("userGroups: [others]", "GET", pods, false),
        ("verbs: [get]", "GET", pods, true),
        ("verbs: [get]", "DELETE", pods, false),
        ("namespaces: [default]", "GET", pods, true),
        ("namespaces: ['']", "GET", pods, false),
        ("namespaces: ['']", "GET", "/api/v1/nodes", true),
        ("namespaces: ['']", "GET", "/healthz", false),
        ("resources: [{resources: [pods]}]", "GET", pods, true),
        ("resources: [{resources: [pods]}]", "GET", &format!("{pods}/log"), false),
        ("resources: [{resources: [pods/log]}]", "GET", &format!("{pods}/log"), true),
        ("resources: [{resources: [pods/log]}]", "GET", pods, false),
        ("resources: [{resources: [pods/*]}]", "GET", &format!("{pods}/log"), true),
        ("resources: [{resources: [pods/*]}]", "GET", pods, true),
        ("resources: [{resources: ['*/log']}]", "GET", &format!("{pods}/log"), true),
        ("resources: [{resources: ['*/log']}]", "GET", &format!("{pods}/status"), false),
        ("resources: [{resources: ['*/']}]", "GET", pods, false),
        ("resources: [{resources: ['*']}]", "GET", &format!("{pods}/log"), true),
        ("resources: [{}]", "GET", pods, true),
        ("resources: [{group: apps}]", "GET", pods, false),
        ("resources: [{group: '*', resources: [pods]}]", "GET", pods, true),
        ("resources: [{resources: [pods], resourceNames: [busybox]}]", "GET", pods, true),
        ("resources: [{resources: [pods], resourceNames: [nginx]}]", "GET", pods, false),
        ("resources: [{resources: [pods]}], namespaces: [other]", "GET", pods, false),
        ("resources: [{}]", "GET", "/healthz", false),
        ("nonResourceURLs: ['*']", "GET", "/healthz", true),
        ("nonResourceURLs: [/health*]", "GET", "/healthz/ping", true),
        ("nonResourceURLs: [/healthz]", "GET", "/healthz/ping", false),
        ("nonResourceURLs: [/healthz]", "GET", "/healthz", true),
        ("nonResourceURLs: ['*']", "GET", pods, false),
    ] {
        let fields = if rule == "{}" { String::new() } else { format!(", {rule}") };
        let policy = policy(&format!("rules: [{{level: Metadata{fields}}}]"));
        let expected = if matches { "Metadata" } else { "None" };
        assert_eq!(level(&policy, Some(&tim), method, path), expected, "{rule}: {method} {path}");
    }
}

#[test]
fn an_unauthenticated_request_matches_no_rule_with_users() {
    let policy = policy(
        "rules: [{level: Request, users: ['']}, {level: Request, userGroups: [a]}, {level: Metadata}]",
    );
    assert_eq!(level(&policy, None, "GET", "/healthz"), "Metadata");
}

#[test]
fn the_first_matching_rule_decides_with_its_settings() {
    let policy = policy(
        "omitStages: [RequestReceived]\nomitManagedFields: true\nrules:\n\
         - {level: Request, verbs: [get], omitStages: [Panic], omitManagedFields: false}\n- {level: Metadata, verbs: [get, post]}",
    );
    let config = |method| policy.evaluate(None, &RequestInfo::parse(method, "/x", "").unwrap());
    let (get, post, put) = (config("GET"), config("POST"), config("PUT"));
    assert_eq!((get.level, get.omit_managed_fields), (Level::Request, false));
    assert!(get.omit_stages.contains(Stage::Panic) && get.omit_stages.contains(Stage::RequestReceived));
    assert_eq!((post.level, post.omit_managed_fields), (Level::Metadata, true));
    assert!(!post.omit_stages.contains(Stage::Panic) && post.omit_stages.contains(Stage::RequestReceived));
    assert_eq!((put.level, put.omit_managed_fields), (Level::None, true));
}

#[test]
fn a_malformed_file_is_refused_with_upstreams_message() {
    let typed = |rest: &str| format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rest}");
    let untyped = "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy";
    let stages = "allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic";
    for (text, error) in [
        (String::new(), untyped.to_owned()),
        ("rules: [{level: Metadata}]".to_owned(), untyped.to_owned()),
        (typed("rules: []"), "loaded illegal policy with 0 rules".to_owned()),
        (typed(""), "loaded illegal policy with 0 rules".to_owned()),
        (
            "apiVersion: audit.k8s.io/v2\nkind: Policy".to_owned(),
            "failed decoding: no kind \"Policy\" is registered for version \"audit.k8s.io/v2\" in scheme \"pkg/runtime/scheme.go:111\"".to_owned(),
        ),
        (
            "apiVersion: audit.k8s.io/v1\nkind: Event".to_owned(),
            "failed decoding: converting (v1.Event) to (audit.Policy): unknown conversion".to_owned(),
        ),
        (
            typed("rules: [{level: X}]"),
            "rules[0].level: Unsupported value: \"X\": supported values: \"None\", \"Metadata\", \"Request\", \"RequestResponse\"".to_owned(),
        ),
        (
            typed("omitStages: [Nope]\nrules: [{users: [a]}]"),
            format!("[omitStages[0]: Invalid value: \"Nope\": {stages}, rules[0].level: Required value]"),
        ),
        (
            typed("rules: [{level: None, nonResourceURLs: [x, '/a*b', '/c*', '*'], namespaces: [a]}]"),
            "[rules[0].nonResourceURLs[0]: Invalid value: \"x\": non-resource URL rules must begin with a '/' character, \
             rules[0].nonResourceURLs[1]: Invalid value: \"/a*b\": non-resource URL wildcards '*' must be the final character of the rule, \
             rules[0].nonResourceURLs: Invalid value: [\"x\",\"/a*b\",\"/c*\",\"*\"]: rules cannot apply to both regular resources and non-resource URLs]".to_owned(),
        ),
        (
            typed("rules: [{level: None, resources: [{resourceNames: [x]}]}]"),
            "rules[0].resources.resourceNames: Invalid value: [\"x\"]: using resourceNames requires at least one resource".to_owned(),
        ),
    ] {
        assert_eq!(Policy::parse(&text).unwrap_err().to_string(), error, "{text}");
    }
    for (text, beginning) in [
        ("a: b: c".to_owned(), "failed decoding: "),
        (typed("rules: foo"), "failed decoding: "),
        (typed("rules: [{level: [1]}]"), "failed decoding: "),
        (
            typed("rules: [{level: None, resources: [{group: a/v1}]}]"),
            "rules[0].resources.group: Invalid value: \"a/v1\": a lowercase RFC 1123 subdomain",
        ),
    ] {
        let error = Policy::parse(&text).unwrap_err().to_string();
        assert!(error.starts_with(beginning), "{error}");
    }
}

#[test]
fn unknown_fields_are_ignored_with_a_warning_and_null_is_empty() {
    let policy = policy(
        "foo: 1\nmetadata: {name: x}\nrules:\n- {level: Metadata, bar: [], users: null, resources: [{zap: 1}]}",
    );
    let expected = ["foo", "rules[0].bar", "rules[0].resources[0].zap"];
    assert_eq!(policy.warnings(), expected.map(|field| format!("unknown field \"{field}\"")));
    let json =
        Policy::parse(r#"{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Request"}]}"#);
    assert_eq!(level(&json.unwrap(), None, "GET", "/"), "Request");
}

proptest! {
    #[test]
    fn a_catch_all_behind_any_rule_always_decides(
        verb in "[a-z]{1,6}", resource in "[a-z*]{1,4}(/[a-z*]{1,4})?", path in "/[a-z/]{0,12}",
    ) {
        let text = format!("rules: [{{level: Request, verbs: ['{verb}'], resources: [{{resources: ['{resource}']}}]}}, {{level: Metadata}}]");
        let found = level(&policy(&text), None, "GET", &path);
        prop_assert!(found == "Metadata" || found == "Request");
    }

    #[test]
    fn no_text_causes_a_panic(text in "\\PC{0,200}") {
        let _ = Policy::parse(&text);
    }
}
