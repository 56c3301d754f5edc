//! Nobody gives away what they do not hold (access kinds 1.3): asked before a role or binding is judged otherwise.
//!
//! It must not know which kinds grant: strategies tell.

use portico_machinery::rbac::{self, RoleRef, Rule};
use portico_machinery::user::MASTERS;
use portico_machinery::{Attributes, GroupResource, Object, Status};

use crate::Result;
use crate::registry::{Context, Inner};
use crate::served::Served;

/// What the objects of a kind give away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grants {
    /// Nothing.
    Nothing,
    /// Their own rules.
    OwnRules,
    /// The rules of the role that they name.
    RoleOf,
}

/// Whether a write goes on without a look at its rules.
const GARBAGE_FIELDS: [&str; 3] = ["finalizers", "ownerReferences", "managedFields"];

/// A write that gives something away.
struct Giving<'a> {
    context: &'a Context,
    served: &'a Served,
    new: &'a Object,
    old: Option<&'a Object>,
}

impl Giving<'_> {
    fn forbidden(&self, why: &str) -> Result<()> {
        Err(Box::new(Status::forbidden(&self.served.resource, self.new.name(), why)))
    }
}

impl Inner {
    /// 403 when this caller may not give away what this write gives away.
    pub(crate) async fn guard(
        &self,
        context: &Context,
        served: &Served,
        new: &Object,
        old: Option<&Object>,
    ) -> Result<()> {
        let grants = served.strategy.grants();
        let exempt =
            || context.user.in_group(MASTERS) || old.is_some_and(|old| only_garbage(served, new, old));
        if grants == Grants::Nothing || exempt() {
            return Ok(());
        }
        let giving = Giving { context, served, new, old };
        match grants {
            Grants::Nothing => Ok(()),
            Grants::OwnRules => self.guard_rules(&giving),
            Grants::RoleOf => self.guard_binding(&giving).await,
        }
    }

    fn guard_rules(&self, giving: &Giving<'_>) -> Result<()> {
        let Giving { context, served, new, old } = *giving;
        // The request of a create carries no name.
        let name = old.map(Object::name).unwrap_or_default();
        let escalate = self.may(context, "escalate", &served.resource, new.namespace(), name);
        if escalate {
            return Ok(());
        }
        let held = self.authorizer.rules_for(&context.user, new.namespace());
        let wanted = Rule::read_all(&new.at(&["rules"]));
        if let Some(why) = rbac::escalation(&context.user, &held.rules, &held.errors, &wanted) {
            return giving.forbidden(&why);
        }
        let gathers = |object: &Object| !object.at(&["aggregationRule", "clusterRoleSelectors"]).is_empty();
        let gathering = gathers(new) || old.is_some_and(gathers);
        if gathering && !rbac::missing(&held.rules, &rbac::cluster_admin()).is_empty() {
            return giving.forbidden("must have cluster-admin privileges to use the aggregationRule");
        }
        Ok(())
    }

    async fn guard_binding(&self, giving: &Giving<'_>) -> Result<()> {
        let Giving { context, served, new, .. } = *giving;
        let role = RoleRef {
            cluster: new.at(&["roleRef", "kind"]).str() == "ClusterRole",
            name: new.at(&["roleRef", "name"]).str().to_owned(),
        };
        if role.name.is_empty() || !matches!(new.at(&["roleRef", "kind"]).str(), "Role" | "ClusterRole") {
            // Validation refuses it.
            return Ok(());
        }
        let resource = if role.cluster { rbac::Resource::ClusterRoles } else { rbac::Resource::Roles };
        let resource = resource.group_resource();
        if self.may(context, "bind", &resource, new.namespace(), &role.name) {
            return Ok(());
        }
        let namespace = if role.cluster { "" } else { new.namespace() };
        let kind = self.served(&resource)?;
        let Some(record) = self.read(&kind, namespace, &role.name).await? else {
            return Err(Box::new(Status::not_found(&served.resource, &role.name)));
        };
        let stored = self.recent.stored(record);
        let wanted = Rule::read_all(&stored.object().at(&["rules"]));
        let held = self.authorizer.rules_for(&context.user, new.namespace());
        match rbac::escalation(&context.user, &held.rules, &held.errors, &wanted) {
            Some(why) => giving.forbidden(&why),
            None => Ok(()),
        }
    }

    fn may(
        &self,
        context: &Context,
        verb: &str,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
    ) -> bool {
        let question = Attributes::resource(context.user.clone(), verb, resource, namespace, name);
        self.authorizer.authorize(&question).allowed()
    }
}

/// Whether only what the garbage collector needs to change is changed.
fn only_garbage(served: &Served, new: &Object, old: &Object) -> bool {
    let mut new = new.clone();
    served.stored_info().schema.normalise(&mut new);
    for field in GARBAGE_FIELDS {
        new.copy_from(old, &["metadata", field]);
    }
    new == *old
}
