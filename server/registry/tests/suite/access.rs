//! Privilege escalation: a user cannot grant permissions that the user does not have, unless a verb allows it.

use std::sync::Arc;

use portico_auth::Authorizer;
use portico_auth::authz::{AuthorizationMode, NodeRelations, RbacAuthorizer, authorizer_for_modes};
use portico_machinery::rbac::{Fact, Resource};
use portico_machinery::{Object, Reason, UserInfo};
use portico_registry::{Context, CreateOptions, ObjectPart, Registry, UpdateOptions};

use crate::harness::{self, Harness};

const ROLE: &str = r#"{"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"NAME","namespace":"default"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":VERBS}]}"#;
const BINDING: &str = r#"{"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"b","namespace":"default"},"roleRef":{"kind":"Role","name":"NAME"},"subjects":[{"kind":"User","name":"zoe"}]}"#;

fn role(name: &str, verbs: &str) -> Object {
    Object::from_json(ROLE.replace("NAME", name).replace("VERBS", verbs).as_bytes()).unwrap()
}

fn binding(role: &str) -> Object {
    Object::from_json(BINDING.replace("NAME", role).as_bytes()).unwrap()
}

/// Harness with the user Alice: permission to `get pods` in `default` and to bind the role `gift`.
async fn harness() -> (Harness, Context) {
    let rbac = Arc::new(RbacAuthorizer::default());
    let gift = r#"[{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"resourceNames":["gift"],"verbs":["bind"]},
        {"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]"#;
    let held = Object::from_json(format!(r#"{{"rules":{gift}}}"#).as_bytes()).unwrap();
    let mut bound = binding("held");
    bound.set(&["subjects"], vec![harness::subject("User", "alice")]);
    let facts = [
        ("roles/default/held", Fact::read(Resource::Roles, &held)),
        ("rolebindings/default/b", Fact::read(Resource::RoleBindings, &bound)),
    ];
    rbac.replace(facts.map(|(key, fact)| (key.parse().unwrap(), fact)));
    let authorizer: Arc<dyn Authorizer> =
        authorizer_for_modes(&[AuthorizationMode::Rbac], &(rbac.clone() as _), &NodeRelations::Remote);
    let alice = Context::new(UserInfo::new("alice", ["dev"]), "suite");
    (Harness::open_with(authorizer).await, alice)
}

async fn create(
    registry: &Registry,
    context: &Context,
    resource: Resource,
    object: Object,
) -> Result<(), (Reason, String)> {
    let created =
        registry.create(context, &resource.group_resource(), object, &CreateOptions::default()).await;
    created.map(drop).map_err(|status| (status.reason(), status.message.clone()))
}

#[tokio::test]
async fn a_role_may_contain_only_permissions_of_its_writer() {
    let (harness, alice) = harness().await;
    assert_eq!(create(&harness.registry, &alice, Resource::Roles, role("small", r#"["get"]"#)).await, Ok(()));
    let (reason, message) =
        create(&harness.registry, &alice, Resource::Roles, role("large", r#"["get","list"]"#))
            .await
            .unwrap_err();
    assert_eq!(reason, Reason::Forbidden);
    assert_eq!(
        message,
        "roles.rbac.authorization.k8s.io \"large\" is forbidden: user \"alice\" (groups=[\"dev\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\"]}"
    );
    let none = create(&harness.registry, &alice, Resource::Roles, role("none", "[]")).await.unwrap_err();
    assert_eq!(none.0, Reason::Invalid, "no rights are needed for a rule without verbs");
}

#[tokio::test]
async fn a_role_may_gain_only_permissions_of_its_writer_but_finalizers_can_always_be_removed() {
    let (harness, alice) = harness().await;
    let admin = Context::system("suite");
    let mut large = role("large", r#"["get","list"]"#);
    large.set(&["metadata", "finalizers"], ["example.com/hold"]);
    create(&harness.registry, &admin, Resource::Roles, large).await.unwrap();
    let resource = Resource::Roles.group_resource();
    let update = |object| {
        let (registry, resource, alice) = (harness.registry.clone(), resource.clone(), alice.clone());
        async move {
            registry.update(&alice, &resource, ObjectPart::Main, object, &UpdateOptions::default()).await
        }
    };
    let mut object = harness.registry.get(&resource, "default", "large").await.unwrap().object().clone();
    object.set(&["metadata", "labels", "a"], "b");
    assert_eq!(update(object).await.unwrap_err().reason(), Reason::Forbidden);
    let mut object = harness.registry.get(&resource, "default", "large").await.unwrap().object().clone();
    object.remove(&["metadata", "finalizers"]);
    assert!(update(object).await.is_ok());
}

#[tokio::test]
async fn a_binding_requires_the_permissions_of_the_role_or_the_verb_bind() {
    let (harness, alice) = harness().await;
    let admin = Context::system("suite");
    for name in ["gift", "large"] {
        create(&harness.registry, &admin, Resource::Roles, role(name, r#"["delete"]"#)).await.unwrap();
    }
    let bind = |name: &str| create(&harness.registry, &alice, Resource::RoleBindings, binding(name));
    assert_eq!(bind("large").await.unwrap_err().0, Reason::Forbidden);
    let (reason, message) = bind("nowhere").await.unwrap_err();
    assert_eq!(
        (reason, message.as_str()),
        (Reason::NotFound, "rolebindings.rbac.authorization.k8s.io \"nowhere\" not found")
    );
    assert_eq!(bind("gift").await, Ok(()));
}
