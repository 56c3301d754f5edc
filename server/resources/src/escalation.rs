//! Escalation checks of RBAC: users can grant only permissions that they have (upstream's `rbac/escalation_check.go` and its
//! policy-based storages). The checks run after mutating admission and before validation.

use portico_machinery::rbac::{self, RoleRef, Rule};
use portico_machinery::user::MASTERS;
use portico_machinery::{Attributes, GroupResource, Object, Status};
use portico_registry::{Context, Objects, Result, ResultFuture, ServedResource, WriteGuard};

/// Metadata fields whose change grants no permissions.
const GC_FIELDS: [&str; 3] = ["finalizers", "ownerReferences", "managedFields"];

/// Guard of roles: the user must have the rules of the role, or permission to `escalate`.
pub(crate) struct RolesGuard;

/// Guard of bindings: the user must have the rules of the role, or permission to `bind` it.
pub(crate) struct BindingsGuard;

/// Write of a role or binding.
struct GrantingWrite<'a> {
    objects: &'a Objects,
    context: &'a Context,
    served: &'a ServedResource,
    /// Name in the request path; empty for a POST.
    name: &'a str,
    new: &'a Object,
    old: Option<&'a Object>,
}

impl WriteGuard for RolesGuard {
    fn check<'a>(
        &'a self,
        objects: &'a Objects,
        context: &'a Context,
        served: &'a ServedResource,
        name: &'a str,
        new: &'a Object,
        old: Option<&'a Object>,
    ) -> ResultFuture<'a, ()> {
        let grant = GrantingWrite { objects, context, served, name, new, old };
        Box::pin(async move { if grant.is_exempt() { Ok(()) } else { grant.check_rules().await } })
    }
}

impl WriteGuard for BindingsGuard {
    fn check<'a>(
        &'a self,
        objects: &'a Objects,
        context: &'a Context,
        served: &'a ServedResource,
        name: &'a str,
        new: &'a Object,
        old: Option<&'a Object>,
    ) -> ResultFuture<'a, ()> {
        let grant = GrantingWrite { objects, context, served, name, new, old };
        Box::pin(async move { if grant.is_exempt() { Ok(()) } else { grant.check_role().await } })
    }
}

impl GrantingWrite<'_> {
    /// True if the rules need no check.
    fn is_exempt(&self) -> bool {
        self.context.user.in_group(MASTERS)
            || self.old.is_some_and(|old| changes_only_gc_fields(self.served, self.new, old))
    }

    fn forbidden(&self, message: &str) -> Result<()> {
        Err(Box::new(Status::forbidden(&self.served.resource, self.new.name(), message)))
    }

    async fn check_rules(&self) -> Result<()> {
        let Self { objects, context, served, name, new, old } = *self;
        let escalate = self.is_authorized("escalate", &served.resource, new.namespace(), name).await;
        if escalate {
            return Ok(());
        }
        let user_rules = objects.authorizer.rules_for(&context.user, new.namespace());
        let granted_rules = Rule::read_all(&new.at(&["rules"]));
        if let Some(message) =
            rbac::escalation_message(&context.user, &user_rules.rules, &user_rules.errors, &granted_rules)
        {
            return self.forbidden(&message);
        }
        let aggregates =
            |object: &Object| !object.at(&["aggregationRule", "clusterRoleSelectors"]).is_empty();
        let is_aggregate = aggregates(new) || old.is_some_and(aggregates);
        if is_aggregate && !rbac::missing_rights(&user_rules.rules, &rbac::cluster_admin_rules()).is_empty() {
            return self.forbidden("must have cluster-admin privileges to use the aggregationRule");
        }
        Ok(())
    }

    async fn check_role(&self) -> Result<()> {
        let Self { objects, context, served, new, .. } = *self;
        let role = RoleRef {
            is_cluster_role: new.at(&["roleRef", "kind"]).str() == "ClusterRole",
            name: new.at(&["roleRef", "name"]).str().to_owned(),
        };
        if role.name.is_empty() || !matches!(new.at(&["roleRef", "kind"]).str(), "Role" | "ClusterRole") {
            // Validation refuses such a reference.
            return Ok(());
        }
        let resource =
            if role.is_cluster_role { rbac::Resource::ClusterRoles } else { rbac::Resource::Roles };
        let resource = resource.group_resource();
        if self.is_authorized("bind", &resource, new.namespace(), &role.name).await {
            return Ok(());
        }
        let namespace = if role.is_cluster_role { "" } else { new.namespace() };
        let kind = objects.served_resource(&resource)?;
        let Some(record) = objects.read(&kind, namespace, &role.name).await? else {
            return Err(Box::new(Status::not_found(&served.resource, &role.name)));
        };
        let stored = objects.recent.get_or_insert(record);
        let granted_rules = Rule::read_all(&stored.object().at(&["rules"]));
        let user_rules = objects.authorizer.rules_for(&context.user, new.namespace());
        match rbac::escalation_message(&context.user, &user_rules.rules, &user_rules.errors, &granted_rules) {
            Some(message) => self.forbidden(&message),
            None => Ok(()),
        }
    }

    async fn is_authorized(&self, verb: &str, resource: &GroupResource, namespace: &str, name: &str) -> bool {
        let attributes = Attributes::resource(self.context.user.clone(), verb, resource, namespace, name);
        self.objects.authorizer.decide(&attributes).await.is_allowed()
    }
}

/// True if only fields that the garbage collector changes differ.
fn changes_only_gc_fields(served: &ServedResource, new: &Object, old: &Object) -> bool {
    let mut new = new.clone();
    served.stored_info().schema.normalize(&mut new);
    for field in GC_FIELDS {
        new.copy_from(old, &["metadata", field]);
    }
    new == *old
}
