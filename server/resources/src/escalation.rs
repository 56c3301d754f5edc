//! Escalation checks of RBAC: users can grant only permissions that they have (upstream's `rbac/escalation_check.go` and its
//! policy-based storages). The checks run after mutating admission and before validation.

use portico_machinery::rbac::{self, RoleRef, Rule};
use portico_machinery::user::MASTERS;
use portico_machinery::{Attributes, GroupResource, Object, Status};
use portico_registry::{Context, Objects, Pending, Result, ServedResource, WriteGuard};

/// Metadata fields whose change grants no permissions.
const GARBAGE_FIELDS: [&str; 3] = ["finalizers", "ownerReferences", "managedFields"];

/// Guard of roles: the user must have the rules of the role, or permission to `escalate`.
pub(crate) struct RolesGuard;

/// Guard of bindings: the user must have the rules of the role, or permission to `bind` it.
pub(crate) struct BindingsGuard;

/// Write of a role or binding.
struct Grant<'a> {
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
    ) -> Pending<'a, ()> {
        let grant = Grant { objects, context, served, name, new, old };
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
    ) -> Pending<'a, ()> {
        let grant = Grant { objects, context, served, name, new, old };
        Box::pin(async move { if grant.is_exempt() { Ok(()) } else { grant.check_role().await } })
    }
}

impl Grant<'_> {
    /// True if the rules need no check.
    fn is_exempt(&self) -> bool {
        self.context.user.in_group(MASTERS)
            || self.old.is_some_and(|old| only_garbage(self.served, self.new, old))
    }

    fn forbidden(&self, why: &str) -> Result<()> {
        Err(Box::new(Status::forbidden(&self.served.resource, self.new.name(), why)))
    }

    async fn check_rules(&self) -> Result<()> {
        let Self { objects, context, served, name, new, old } = *self;
        let escalate = self.may("escalate", &served.resource, new.namespace(), name).await;
        if escalate {
            return Ok(());
        }
        let held = objects.authorizer.rules_for(&context.user, new.namespace());
        let wanted = Rule::read_all(&new.at(&["rules"]));
        if let Some(why) = rbac::escalation(&context.user, &held.rules, &held.errors, &wanted) {
            return self.forbidden(&why);
        }
        let gathers = |object: &Object| !object.at(&["aggregationRule", "clusterRoleSelectors"]).is_empty();
        let gathering = gathers(new) || old.is_some_and(gathers);
        if gathering && !rbac::missing(&held.rules, &rbac::cluster_admin()).is_empty() {
            return self.forbidden("must have cluster-admin privileges to use the aggregationRule");
        }
        Ok(())
    }

    async fn check_role(&self) -> Result<()> {
        let Self { objects, context, served, new, .. } = *self;
        let role = RoleRef {
            cluster: new.at(&["roleRef", "kind"]).str() == "ClusterRole",
            name: new.at(&["roleRef", "name"]).str().to_owned(),
        };
        if role.name.is_empty() || !matches!(new.at(&["roleRef", "kind"]).str(), "Role" | "ClusterRole") {
            // Validation refuses such a reference.
            return Ok(());
        }
        let resource = if role.cluster { rbac::Resource::ClusterRoles } else { rbac::Resource::Roles };
        let resource = resource.group_resource();
        if self.may("bind", &resource, new.namespace(), &role.name).await {
            return Ok(());
        }
        let namespace = if role.cluster { "" } else { new.namespace() };
        let kind = objects.served(&resource)?;
        let Some(record) = objects.read(&kind, namespace, &role.name).await? else {
            return Err(Box::new(Status::not_found(&served.resource, &role.name)));
        };
        let stored = objects.recent.stored(record);
        let wanted = Rule::read_all(&stored.object().at(&["rules"]));
        let held = objects.authorizer.rules_for(&context.user, new.namespace());
        match rbac::escalation(&context.user, &held.rules, &held.errors, &wanted) {
            Some(why) => self.forbidden(&why),
            None => Ok(()),
        }
    }

    async fn may(&self, verb: &str, resource: &GroupResource, namespace: &str, name: &str) -> bool {
        let question = Attributes::resource(self.context.user.clone(), verb, resource, namespace, name);
        self.objects.authorizer.decide(&question).await.allowed()
    }
}

/// True if only fields that the garbage collector changes differ.
fn only_garbage(served: &ServedResource, new: &Object, old: &Object) -> bool {
    let mut new = new.clone();
    served.stored_info().schema.normalise(&mut new);
    for field in GARBAGE_FIELDS {
        new.copy_from(old, &["metadata", field]);
    }
    new == *old
}
