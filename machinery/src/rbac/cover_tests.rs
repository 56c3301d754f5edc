//! Escalation: messages, and property tests that no uncovered right is missed.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;
use crate::request_info::RequestInfo;

fn list(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

fn rule(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> Rule {
    Rule {
        verbs: list(verbs),
        api_groups: list(groups),
        resources: list(resources),
        resource_names: list(names),
        ..Rule::default()
    }
}

fn urls(verbs: &[&str], urls: &[&str]) -> Rule {
    Rule { verbs: list(verbs), non_resource_urls: list(urls), ..Rule::default() }
}

#[test]
fn missing_permissions_are_listed_by_resource_with_their_verbs() {
    let alice = UserInfo::new("alice", ["dev", "system:authenticated"]);
    let granted = [rule(&["get"], &["apps"], &["deployments"], &[])];
    let requested = [
        rule(&["get", "list", "watch"], &["apps", ""], &["deployments"], &[]),
        rule(&["delete"], &["apps"], &["deployments/scale"], &["web", "db"]),
        urls(&["get", "post"], &["/x"]),
    ];
    let words = escalation_message(&alice, &granted, &[], &requested).unwrap();
    assert_eq!(
        words,
        r#"user "alice" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["deployments"], Verbs:["get" "list" "watch"]}
{APIGroups:["apps"], Resources:["deployments"], Verbs:["list" "watch"]}
{APIGroups:["apps"], Resources:["deployments/scale"], ResourceNames:["db"], Verbs:["delete"]}
{APIGroups:["apps"], Resources:["deployments/scale"], ResourceNames:["web"], Verbs:["delete"]}
{NonResourceURLs:["/x"], Verbs:["get"]}
{NonResourceURLs:["/x"], Verbs:["post"]}"#
    );
    let with = escalation_message(&alice, &[], &["a".into(), "b".into()], &granted).unwrap();
    assert!(with.ends_with("Verbs:[\"get\"]}; resolution errors: [[a, b]]"), "{with}");
}

#[test]
fn held_rules_cover_what_they_contain() {
    #[rustfmt::skip]
    let cases = [
        (rule(&["*"], &["*"], &["*"], &[]), rule(&["get"], &["apps"], &["deployments/scale"], &["a"]), true),
        (rule(&["get"], &[""], &["pods"], &[]), rule(&["get"], &[""], &["pods/log"], &[]), false),
        (rule(&["get"], &[""], &["*/log"], &[]), rule(&["get"], &[""], &["pods/log"], &[]), true),
        (rule(&["get"], &[""], &["pods"], &["a"]), rule(&["get"], &[""], &["pods"], &[]), false),
        (rule(&["get"], &[""], &["pods"], &[]), rule(&["get"], &[""], &["pods"], &["a"]), true),
        (rule(&["get"], &[""], &["pods"], &[]), rule(&["*"], &[""], &["pods"], &[]), false),
        (rule(&["get"], &[""], &["pods"], &[]), rule(&[], &[""], &["nodes"], &[]), true),
        (urls(&["get"], &["/a/*"]), urls(&["get"], &["/a/b", "/a/*"]), true),
        (urls(&["get"], &["/a/*"]), urls(&["get"], &["/a"]), false),
    ];
    for (granted, requested, covered) in cases {
        assert_eq!(
            missing_rights(std::slice::from_ref(&granted), std::slice::from_ref(&requested)).is_empty(),
            covered,
            "{granted:?} {requested:?}"
        );
    }
    assert!(missing_rights(&cluster_admin_rules(), &[urls(&["get"], &["/x"])]).is_empty());
}

const VERBS: [&str; 3] = ["get", "list", "*"];
const GROUPS: [&str; 3] = ["", "apps", "*"];
const RESOURCES: [&str; 5] = ["pods", "pods/log", "*/log", "nodes/log", "*"];
const NAMES: [&str; 2] = ["a", "b"];
const URLS: [&str; 4] = ["/a", "/a/*", "/a/b", "*"];

fn some(of: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    subsequence(of, 0..=2.min(of.len())).prop_map(|words| list(&words))
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let resource = (some(&VERBS), some(&GROUPS), some(&RESOURCES), some(&NAMES)).prop_map(
        |(verbs, api_groups, resources, resource_names)| Rule {
            verbs,
            api_groups,
            resources,
            resource_names,
            ..Rule::default()
        },
    );
    let url = (some(&VERBS), some(&URLS)).prop_map(|(verbs, non_resource_urls)| Rule {
        verbs,
        non_resource_urls,
        ..Rule::default()
    });
    prop_oneof![3 => resource, 1 => url]
}

fn any_request() -> impl Strategy<Value = RequestInfo> {
    let verb = select(vec!["get", "list"]);
    let group = select(vec!["", "apps"]);
    let resource = select(vec![("pods", ""), ("pods", "log"), ("nodes", "log"), ("nodes", "")]);
    let name = select(vec!["", "a", "b"]);
    let path = select(vec!["", "/a", "/a/b", "/a/c"]);
    (verb, group, resource, name, path).prop_map(|(verb, group, (resource, sub), name, path)| RequestInfo {
        is_resource_request: path.is_empty(),
        verb: verb.into(),
        api_group: group.into(),
        resource: resource.into(),
        subresource: sub.into(),
        name: name.into(),
        path: path.into(),
        ..RequestInfo::default()
    })
}

proptest! {
    #[test]
    fn users_with_all_rights_can_do_everything_granted(
        held in prop::collection::vec(any_rule(), 0..4),
        wanted in prop::collection::vec(any_rule(), 0..3),
        request in any_request(),
    ) {
        let granted = wanted.iter().any(|rule| rule.allows(&request));
        if granted && missing_rights(&held, &wanted).is_empty() {
            prop_assert!(held.iter().any(|rule| rule.allows(&request)));
        }
    }

    #[test]
    fn held_and_missing_rights_cover_everything_wanted(
        held in prop::collection::vec(any_rule(), 0..4),
        wanted in prop::collection::vec(any_rule(), 0..3),
    ) {
        let mut all = held.clone();
        all.extend(missing_rights(&held, &wanted));
        prop_assert!(missing_rights(&all, &wanted).is_empty());
        prop_assert!(missing_rights(&wanted, &wanted).is_empty());
    }
}
