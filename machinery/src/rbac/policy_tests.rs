//! The index compared with a scan of all bindings.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::rbac::Resource;

fn rules(verb: &str, resource: &str) -> Fact {
    Fact::Rules(vec![Rule {
        verbs: vec![verb.into()],
        api_groups: vec![String::new()],
        resources: vec![resource.into()],
        ..Rule::default()
    }])
}

fn binding(is_cluster_role: bool, role: &str, subjects: Vec<Subject>) -> Fact {
    Fact::Binding(Binding { role: RoleRef { is_cluster_role, name: role.into() }, subjects })
}

fn policy(facts: Vec<(&str, Fact)>) -> Policy {
    let mut policy = Policy::default();
    facts.into_iter().for_each(|(key, fact)| policy.set(key.parse().unwrap(), Some(fact)));
    policy
}

fn get(resource: &str, namespace: &str) -> RequestInfo {
    RequestInfo {
        is_resource_request: true,
        verb: "get".into(),
        resource: resource.into(),
        namespace: namespace.into(),
        ..RequestInfo::default()
    }
}

fn user(name: &str) -> Subject {
    Subject::User(name.into())
}

#[test]
fn reasons_name_binding_role_and_subject() {
    let account = Subject::ServiceAccount { namespace: "n".into(), name: "sa".into() };
    let policy = policy(vec![
        ("clusterroles/nodes", rules("get", "nodes")),
        ("roles/n/pods", rules("get", "pods")),
        ("clusterrolebindings/c", binding(true, "nodes", vec![Subject::Group("ops".into())])),
        ("rolebindings/n/r", binding(false, "pods", vec![user("bob"), account])),
    ]);
    let ops = UserInfo::new("x", ["dev", "ops"]);
    let reason = r#"RBAC: allowed by ClusterRoleBinding "c" of ClusterRole "nodes" to Group "ops""#;
    assert_eq!(policy.decide(&ops, &get("nodes", "")), PolicyDecision::Allowed(reason.into()));
    let account = UserInfo::new("system:serviceaccount:n:sa", ["g"]);
    let reason = r#"RBAC: allowed by RoleBinding "r/n" of Role "pods" to ServiceAccount "sa/n""#;
    assert_eq!(policy.decide(&account, &get("pods", "n")), PolicyDecision::Allowed(reason.into()));
    assert_eq!(policy.decide(&account, &get("pods", "m")), PolicyDecision::NoOpinion(String::new()));
    assert_eq!(policy.decide(&account, &get("pods", "")), PolicyDecision::NoOpinion(String::new()));
}

#[test]
fn a_binding_in_a_namespace_grants_no_paths() {
    let fact = Fact::Rules(crate::rbac::cluster_admin_rules().to_vec());
    let policy = policy(vec![
        ("clusterroles/all", fact),
        ("rolebindings/n/all", binding(true, "all", vec![user("bob")])),
    ]);
    let bob = UserInfo::new("bob", ["g"]);
    let path = RequestInfo { verb: "get".into(), path: "/metrics".into(), ..RequestInfo::default() };
    assert_eq!(policy.decide(&bob, &path), PolicyDecision::NoOpinion(String::new()));
    assert!(matches!(policy.decide(&bob, &get("anything", "n")), PolicyDecision::Allowed(_)));
}

#[test]
fn missing_roles_are_listed_once() {
    let policy = policy(vec![
        ("rolebindings/n/a", binding(false, "ghost", vec![user("bob")])),
        ("rolebindings/n/b", binding(false, "ghost", vec![user("bob")])),
    ]);
    let bob = UserInfo::new("bob", ["g"]);
    let reason = r#"RBAC: role.rbac.authorization.k8s.io "ghost" not found"#;
    assert_eq!(policy.decide(&bob, &get("pods", "n")), PolicyDecision::NoOpinion(reason.into()));
    assert_eq!(policy.resolve_rules(&bob, "n").errors.len(), 2);
}

/// Generates one step of a history: a key and its new content.
fn step() -> impl Strategy<Value = (Key, Option<Fact>)> {
    let name = select(vec!["a", "b"]);
    let namespace = select(vec!["n", "m"]);
    let subjects = select(vec![
        user("u"),
        Subject::Group("g".into()),
        Subject::ServiceAccount { namespace: "n".into(), name: "s".into() },
    ]);
    let fact =
        (any::<bool>(), name.clone(), prop::collection::vec(subjects, 0..3), select(vec!["pods", "*"]));
    (select(Resource::ALL.to_vec()), namespace, name, prop::option::weighted(0.8, fact)).prop_map(
        |(resource, namespace, name, fact)| {
            let cluster = matches!(resource, Resource::ClusterRoles | Resource::ClusterRoleBindings);
            let namespace = if cluster { String::new() } else { namespace.to_owned() };
            let fact = fact.map(|(global, role, subjects, resource_name)| match resource.is_binding() {
                true => binding(cluster || global, role, subjects),
                false => rules("get", resource_name),
            });
            (Key { resource, namespace, name: name.to_owned() }, fact)
        },
    )
}

/// Scans all bindings.
fn decide_by_scan(facts: &BTreeMap<Key, Fact>, user: &UserInfo, request: &RequestInfo) -> bool {
    facts.iter().any(|(key, fact)| {
        let Fact::Binding(binding) = fact else { return false };
        let is_in_namespace = key.namespace.is_empty() || key.namespace == request.namespace;
        let role = Key {
            resource: if binding.role.is_cluster_role { Resource::ClusterRoles } else { Resource::Roles },
            namespace: if binding.role.is_cluster_role { String::new() } else { key.namespace.clone() },
            name: binding.role.name.clone(),
        };
        let allows =
            matches!(facts.get(&role), Some(Fact::Rules(rules)) if rules.iter().any(|r| r.allows(request)));
        is_in_namespace && allows && binding.subjects.iter().any(|subject| applies_to(subject, user))
    })
}

proptest! {
    #[test]
    fn the_index_decides_like_a_scan(history in prop::collection::vec(step(), 0..30)) {
        let (mut policy, mut facts) = (Policy::default(), BTreeMap::new());
        for (key, fact) in history {
            match fact.clone() {
                Some(fact) => facts.insert(key.clone(), fact),
                None => facts.remove(&key),
            };
            policy.set(key, fact);
        }
        for user in [UserInfo::new("u", ["x"]), UserInfo::new("v", ["g"]), UserInfo::new("system:serviceaccount:n:s", ["x"])] {
            for namespace in ["", "n", "m"] {
                for resource in ["pods", "nodes"] {
                    let request = get(resource, namespace);
                    let allowed = matches!(policy.decide(&user, &request), PolicyDecision::Allowed(_));
                    prop_assert_eq!(allowed, decide_by_scan(&facts, &user, &request));
                }
            }
        }
    }
}
