//! Decides requests by RBAC without a server: `cargo run --example authorize`.

use std::error::Error;

use portico_machinery::object::NotAnObject;
use portico_machinery::rbac::{Fact, Key, Policy, PolicyDecision, Resource};
use portico_machinery::{Object, RequestInfo, UserInfo};

const ROLE: &[u8] = br#"{
    "metadata": {"namespace": "shop", "name": "pod-reader"},
    "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
}"#;
const BINDING: &[u8] = br#"{
    "metadata": {"namespace": "shop", "name": "support"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "pod-reader"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "support"}]
}"#;

/// Adds a role or a binding to the policy, or replaces it.
fn add(policy: &mut Policy, resource: Resource, json: &[u8]) -> Result<(), NotAnObject> {
    let object = Object::from_json(json)?;
    let key = Key { resource, namespace: object.namespace().to_owned(), name: object.name().to_owned() };
    policy.set(key, Some(Fact::read(resource, &object)));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut policy = Policy::default();
    add(&mut policy, Resource::Roles, ROLE)?;
    add(&mut policy, Resource::RoleBindings, BINDING)?;

    let alice = UserInfo::new("alice", ["support", "system:authenticated"]);
    let pod = "/api/v1/namespaces/shop/pods/web-1";
    for (method, path) in [("GET", pod), ("DELETE", pod), ("GET", "/api/v1/namespaces/bank/pods")] {
        let request = RequestInfo::parse(method, path, "")?;
        match policy.decide(&alice, &request) {
            PolicyDecision::Allowed(reason) => println!("{} {path}: allowed: {reason}", request.verb),
            PolicyDecision::NoOpinion(_) => println!("{} {path}: no rule allows it", request.verb),
        }
    }
    Ok(())
}
