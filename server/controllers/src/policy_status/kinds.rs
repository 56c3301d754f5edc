//! Kinds against which a policy's expressions are checked (upstream's `typesToCheck`). Pure.

use std::collections::BTreeSet;

use portico_machinery::{Cursor, GroupVersionKind, Object};

/// Kinds that the expressions of a policy are type-checked against.
///
/// `maxTypesToCheck` of kube-apiserver.
///
/// Limit (Expressions): the other kinds are skipped.
const MAX_KINDS: usize = 10;

/// Returns the kinds that the rules of a policy name, ordered by group, version and kind. Rules with wildcards are ignored.
/// `kinds_for` returns the kinds of a group, version and resource.
pub(super) fn policy_kinds(
    policy: &Object,
    kinds_for: impl Fn(&str, &str, &str) -> Vec<GroupVersionKind>,
) -> Vec<GroupVersionKind> {
    let rules = policy.at(&["spec", "matchConstraints", "resourceRules"]);
    let mut found = BTreeSet::new();
    for rule in rules.items() {
        let mut of_rule = rule_kinds(&rule, &kinds_for);
        let full = of_rule.len() >= MAX_KINDS;
        of_rule.truncate(MAX_KINDS);
        found.extend(of_rule);
        if full {
            break;
        }
    }
    found.into_iter().collect()
}

fn rule_kinds(
    rule: &Cursor<'_>,
    kinds_for: impl Fn(&str, &str, &str) -> Vec<GroupVersionKind>,
) -> Vec<GroupVersionKind> {
    let (groups, versions) = (texts(rule, "apiGroups"), texts(rule, "apiVersions"));
    let mut resources = texts(rule, "resources");
    if groups.iter().chain(&versions).any(|text| text.contains('*')) {
        return Vec::new();
    }
    resources.retain(|resource| !resource.contains(['*', '/']));
    let mut found = Vec::new();
    for group in &groups {
        for version in &versions {
            for resource in &resources {
                found.extend(kinds_for(group, version, resource));
                if found.len() >= MAX_KINDS {
                    return found;
                }
            }
        }
    }
    found
}

/// Returns the values of a field of a rule, sorted, as in upstream.
fn texts<'r>(rule: &Cursor<'r>, field: &'static str) -> Vec<&'r str> {
    let mut texts: Vec<&str> = rule.field(field).items().map(|at| at.str()).collect();
    texts.sort_unstable();
    texts
}

#[cfg(test)]
mod tests {
    use portico_machinery::GroupVersion;

    use super::*;

    /// Returns the kinds of these rules. Each resource has a kind with its own name, except the resource `none`.
    fn kinds(rules: &str) -> Vec<String> {
        let json = format!(r#"{{"spec": {{"matchConstraints": {{"resourceRules": {rules}}}}}}}"#);
        let policy = Object::from_json(json.as_bytes()).unwrap();
        let named = |group: &str, version: &str, resource: &str| {
            let kind = GroupVersion::new(group, version).kind(resource);
            if resource == "none" { Vec::new() } else { vec![kind] }
        };
        policy_kinds(&policy, named)
            .iter()
            .map(|kind| format!("{}/{}/{}", kind.group, kind.version, kind.kind))
            .collect()
    }

    fn rule(groups: &str, versions: &str, resources: &str) -> String {
        format!(r#"{{"apiGroups": {groups}, "apiVersions": {versions}, "resources": {resources}}}"#)
    }

    #[test]
    fn kinds_are_those_of_rules_without_wildcards_in_order() {
        let kinds_of_rule =
            |one: &str, two: &str, three: &str| kinds(&format!("[{}]", rule(one, two, three)));
        assert_eq!(
            kinds_of_rule(r#"["b", "a"]"#, r#"["v1"]"#, r#"["y", "x", "none"]"#),
            ["a/v1/x", "a/v1/y", "b/v1/x", "b/v1/y"]
        );
        assert_eq!(kinds_of_rule(r#"["a"]"#, r#"["v1"]"#, r#"["x/status", "*", "y"]"#), ["a/v1/y"]);
        for (groups, versions) in
            [(r#"["*"]"#, r#"["v1"]"#), (r#"["a"]"#, r#"["v1", "*"]"#), ("[]", r#"["v1"]"#)]
        {
            assert_eq!(kinds_of_rule(groups, versions, r#"["x"]"#), [""; 0], "{groups} {versions}");
        }
    }

    #[test]
    fn a_rule_of_many_kinds_is_the_last() {
        let many: Vec<String> = (10..30).map(|n| format!("\"r{n}\"")).collect();
        let many = rule(r#"["a"]"#, r#"["v1"]"#, &format!("[{}]", many.join(",")));
        let few = rule(r#"["b"]"#, r#"["v1"]"#, r#"["x"]"#);
        assert_eq!(kinds(&format!("[{few},{many}]")).len(), 11, "kinds of earlier rules are kept");
        assert_eq!(kinds(&format!("[{many},{few}]")).len(), 10);
    }
}
