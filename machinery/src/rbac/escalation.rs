//! Escalation check: finds the rights that a user grants without having them.

use std::collections::{BTreeMap, BTreeSet};

use super::rule::path_matches;
use super::{ALL, Rule};
use crate::user::UserInfo;

/// Returns the rules that a user needs to write an aggregation rule: every verb on everything.
#[must_use]
pub fn cluster_admin_rules() -> [Rule; 2] {
    let all = || vec![ALL.to_owned()];
    [
        Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() },
        Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() },
    ]
}

/// Returns the rights of `requested` that no rule of `granted` covers, each with one verb on one resource or path.
#[must_use]
pub fn missing_rights(granted: &[Rule], requested: &[Rule]) -> Vec<Rule> {
    let rights = requested.iter().flat_map(rights_of);
    rights.filter(|right| !granted.iter().any(|rule| covers(rule, right))).collect()
}

/// Returns upstream's message if a user grants rights that the user does not have, otherwise `None`. `errors` are errors from
/// resolving the rules of the user.
#[must_use]
pub fn escalation_message(
    user: &UserInfo,
    granted: &[Rule],
    errors: &[String],
    requested: &[Rule],
) -> Option<String> {
    let missing = missing_rights(granted, requested);
    if missing.is_empty() {
        return None;
    }
    let lines: BTreeSet<String> = join_verbs(missing).iter().map(describe).collect();
    let lines: Vec<String> = lines.into_iter().collect();
    let mut words = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        format_list(&user.groups),
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

/// True if a granted rule covers a single right.
fn covers(granted: &Rule, right: &Rule) -> bool {
    let names = match (granted.resource_names.is_empty(), right.resource_names.is_empty()) {
        (true, _) => true,
        (false, true) => false,
        (false, false) => right.resource_names.iter().all(|name| granted.resource_names.contains(name)),
    };
    names
        && has_all(&granted.verbs, &right.verbs)
        && has_all(&granted.api_groups, &right.api_groups)
        && right.resources.iter().all(|resource| covers_resource(&granted.resources, resource))
        && right
            .non_resource_urls
            .iter()
            .all(|url| granted.non_resource_urls.iter().any(|h| path_matches(h, url)))
}

fn has_all(granted: &[String], requested: &[String]) -> bool {
    granted.iter().any(|one| one == ALL) || requested.iter().all(|one| granted.contains(one))
}

/// True if a granted pattern is `*`, is equal, or is `*/sub` and the requested resource is `resource/sub`.
fn covers_resource(granted: &[String], requested: &str) -> bool {
    let subresource = requested.split_once('/').map(|(_, sub)| sub);
    granted.iter().any(|one| {
        one == ALL || one == requested || one.strip_prefix("*/").is_some_and(|sub| subresource == Some(sub))
    })
}

/// Joins the verbs of rights to the same resource; rights to paths are not changed.
fn join_verbs(rights: Vec<Rule>) -> Vec<Rule> {
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
    compacted.extend(joined.into_iter().map(|(rule, verbs)| Rule { verbs, ..rule }));
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
        .map(|(name, list)| format!("{name}:{}", format_list(list)))
        .collect();
    format!("{{{}}}", parts.join(", "))
}

/// Formats a list: `["a" "b"]`.
fn format_list(list: &[String]) -> String {
    let words: Vec<String> = list.iter().map(|word| format!("{word:?}")).collect();
    format!("[{}]", words.join(" "))
}

#[cfg(test)]
#[path = "cover_tests.rs"]
mod tests;
