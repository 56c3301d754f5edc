//! Escalation check: finds the rights that a user grants without having them.

use std::collections::{BTreeMap, BTreeSet};

use super::rule::path_matches;
use super::{ALL, Rule};
use crate::user::UserInfo;

/// Returns the rules that a user needs to write an aggregation rule: every verb on everything.
#[must_use]
pub fn cluster_admin() -> [Rule; 2] {
    let all = || vec![ALL.to_owned()];
    [
        Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() },
        Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() },
    ]
}

/// Returns the rights of `wanted` that no rule of `held` covers, each with one verb on one resource or path.
#[must_use]
pub fn missing(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let rights = wanted.iter().flat_map(rights_of);
    rights.filter(|right| !held.iter().any(|rule| covers(rule, right))).collect()
}

/// Returns upstream's message if a user grants rights that the user does not have, otherwise `None`. `errors` are errors from
/// resolving the rules of the user.
#[must_use]
pub fn escalation(user: &UserInfo, held: &[Rule], errors: &[String], wanted: &[Rule]) -> Option<String> {
    let missing = missing(held, wanted);
    if missing.is_empty() {
        return None;
    }
    let lines: BTreeSet<String> = compact(missing).iter().map(describe).collect();
    let lines: Vec<String> = lines.into_iter().collect();
    let mut words = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        quoted(&user.groups),
        lines.join("\n")
    );
    if !errors.is_empty() {
        words.push_str(&format!("; resolution errors: [{}]", super::policy::aggregate(errors)));
    }
    Some(words)
}

/// Splits a rule into its smallest parts: (group, resource, name, verb) or (URL, verb).
fn rights_of(rule: &Rule) -> Vec<Rule> {
    let mut rights = Vec::new();
    let one = |text: &String| vec![text.clone()];
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let right = Rule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..Rule::default()
                };
                if rule.resource_names.is_empty() {
                    rights.push(right);
                    continue;
                }
                let named = rule.resource_names.iter();
                rights.extend(named.map(|name| Rule { resource_names: one(name), ..right.clone() }));
            }
        }
    }
    for url in &rule.non_resource_urls {
        let verbs = rule.verbs.iter();
        rights.extend(verbs.map(|verb| Rule {
            verbs: one(verb),
            non_resource_urls: one(url),
            ..Rule::default()
        }));
    }
    rights
}

/// True if a held rule covers a single right.
fn covers(held: &Rule, right: &Rule) -> bool {
    let names = match (held.resource_names.is_empty(), right.resource_names.is_empty()) {
        (true, _) => true,
        (false, true) => false,
        (false, false) => right.resource_names.iter().all(|name| held.resource_names.contains(name)),
    };
    names
        && has_all(&held.verbs, &right.verbs)
        && has_all(&held.api_groups, &right.api_groups)
        && right.resources.iter().all(|resource| resource_covered(&held.resources, resource))
        && right
            .non_resource_urls
            .iter()
            .all(|url| held.non_resource_urls.iter().any(|h| path_matches(h, url)))
}

fn has_all(held: &[String], wanted: &[String]) -> bool {
    held.iter().any(|one| one == ALL) || wanted.iter().all(|one| held.contains(one))
}

/// True if a held pattern is `*`, is equal, or is `*/sub` and the wanted resource is `resource/sub`.
fn resource_covered(held: &[String], wanted: &str) -> bool {
    let subresource = wanted.split_once('/').map(|(_, sub)| sub);
    held.iter().any(|one| {
        one == ALL || one == wanted || one.strip_prefix("*/").is_some_and(|sub| subresource == Some(sub))
    })
}

/// Joins the verbs of rights to the same resource; rights to paths are not changed.
fn compact(rights: Vec<Rule>) -> Vec<Rule> {
    // Keyed by the right without its verbs.
    let mut joined: BTreeMap<Rule, Vec<String>> = BTreeMap::new();
    let mut compacted = Vec::new();
    for mut right in rights {
        if right.resources.is_empty() {
            compacted.push(right);
            continue;
        }
        let verbs = std::mem::take(&mut right.verbs);
        joined.entry(right).or_default().extend(verbs);
    }
    compacted.extend(joined.into_iter().map(|(thing, verbs)| Rule { verbs, ..thing }));
    compacted
}

/// Formats a rule: `{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}`.
fn describe(rule: &Rule) -> String {
    let parts = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.non_resource_urls),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("{name}:{}", quoted(list)))
        .collect();
    format!("{{{}}}", parts.join(", "))
}

/// Formats a list: `["a" "b"]`.
fn quoted(list: &[String]) -> String {
    let words: Vec<String> = list.iter().map(|word| format!("{word:?}")).collect();
    format!("[{}]", words.join(" "))
}

#[cfg(test)]
#[path = "cover_tests.rs"]
mod tests;
