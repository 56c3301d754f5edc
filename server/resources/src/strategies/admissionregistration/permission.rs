//! Permissions to read the parameters of admission policies (upstream's `authz.go` of policies and bindings).

use portico_machinery::user::MASTERS;
use portico_machinery::{Attributes, Cursor, GroupResource, GroupVersion, UserInfo};
use portico_registry::{Objects, Result, ResultFuture, Write, WritePermissions};
use portico_validation::{Errors, checks};

use super::{Binding, Policy};

const GROUP: &str = "admissionregistration.k8s.io";
const PARAM_KIND: [&str; 2] = ["spec", "paramKind"];
const PARAM_REF: [&str; 2] = ["spec", "paramRef"];
const POLICY_NAME: [&str; 2] = ["spec", "policyName"];

impl WritePermissions for Policy {
    fn missing_permissions<'a>(&'a self, objects: &'a Objects, write: Write<'a>) -> ResultFuture<'a, Errors> {
        Box::pin(async move {
            let kind = write.new.at(&PARAM_KIND);
            let is_exempt = !kind.is_present() || write.user.in_group(MASTERS);
            if is_exempt || write.old.is_some_and(|old| checks::is_same(&kind, &old.at(&PARAM_KIND))) {
                return Ok(Vec::new());
            }
            let read = ParamRead { verb: "get", namespace: "*", name: "*" };
            if ParamResource::of_kind(objects, &kind).is_readable(objects, write.user, read).await {
                return Ok(Vec::new());
            }
            let text = format!(
                "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={})",
                print_user(write.user),
                kind.field("kind").str(),
                kind.field("apiVersion").str()
            );
            Ok(vec![kind.forbidden(&text)])
        })
    }
}

impl WritePermissions for Binding {
    fn missing_permissions<'a>(&'a self, objects: &'a Objects, write: Write<'a>) -> ResultFuture<'a, Errors> {
        Box::pin(async move {
            let reference = write.new.at(&PARAM_REF);
            if !reference.is_present() || write.user.in_group(MASTERS) {
                return Ok(Vec::new());
            }
            // Also checks an unchanged reference: upstream compares pointers, which always differ.
            let (name, namespace) = (reference.field("name").str(), reference.field("namespace").str());
            let read = ParamRead { verb: if name.is_empty() { "list" } else { "get" }, namespace, name };
            let params = self.params(objects, write.new.at(&POLICY_NAME).str()).await?;
            if params.is_readable(objects, write.user, read).await {
                return Ok(Vec::new());
            }
            Ok(vec![reference.forbidden(&self.refusal(&params, write.user, read.verb))])
        })
    }
}

impl Binding {
    /// Returns the parameter resource of a policy, or all resources if the policy cannot be read or has no parameters.
    async fn params(&self, objects: &Objects, policy: &str) -> Result<ParamResource> {
        let resource = if self.mutates { "mutatingadmissionpolicies" } else { "validatingadmissionpolicies" };
        let policies = objects.served_resource(&GroupResource::new(GROUP, resource))?;
        let Ok(Some(record)) = objects.read(&policies, "", policy).await else {
            return Ok(ParamResource::all(Some(format!("get policy {policy}"))));
        };
        let policy = objects.recent.get_or_insert(record);
        let kind = policy.object().at(&PARAM_KIND);
        Ok(if kind.is_present() { ParamResource::of_kind(objects, &kind) } else { ParamResource::all(None) })
    }

    fn refusal(&self, params: &ParamResource, user: &UserInfo, verb: &str) -> String {
        let user = print_user(user);
        if let Some(unable) = &params.failed_action {
            return format!(
                "unable to {unable} to determine minimum required permissions and user {user} does not have \"{verb}\" permission for all groups, versions and resources"
            );
        }
        // Upstream swaps these two arguments for mutating policies.
        let (user, verb) = if self.mutates { (verb, &*user) } else { (&*user, verb) };
        format!("user {user} does not have \"{verb}\" permission on the object referenced by paramRef")
    }
}

/// A read of parameters.
#[derive(Clone, Copy)]
struct ParamRead<'a> {
    verb: &'a str,
    namespace: &'a str,
    name: &'a str,
}

/// Resource that contains parameters.
struct ParamResource {
    resource: GroupResource,
    version: String,
    /// Action that failed when the resource was determined.
    failed_action: Option<String>,
}

impl ParamResource {
    /// Returns a pattern for all resources.
    fn all(failed_action: Option<String>) -> Self {
        Self { resource: GroupResource::new("*", "*"), version: "*".to_owned(), failed_action }
    }

    /// Returns the resource of a kind, or all resources of its group version if this server does not serve the kind.
    fn of_kind(objects: &Objects, kind: &Cursor<'_>) -> Self {
        let (api_version, name) = (kind.field("apiVersion").str(), kind.field("kind").str());
        let unable = |verb: &str| Some(format!("{verb} paramKind &{{{api_version} {name}}}"));
        let Ok(version) = api_version.parse::<GroupVersion>() else { return Self::all(unable("parse")) };
        let (resource, failed_action) = match objects.by_kind(&version.kind(name)) {
            Some(served) => (served.resource.clone(), None),
            None => (GroupResource::new(&*version.group, "*"), unable("resolve")),
        };
        Self { resource, version: version.version, failed_action }
    }

    async fn is_readable(&self, objects: &Objects, user: &UserInfo, read: ParamRead<'_>) -> bool {
        let attributes =
            Attributes::resource(user.clone(), read.verb, &self.resource, read.namespace, read.name);
        objects.authorizer.decide(&attributes.with_version(&self.version)).await.is_allowed()
    }
}

/// Formats a user as Go prints the struct.
fn print_user(user: &UserInfo) -> String {
    let extra: Vec<String> =
        user.extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
    format!("&{{{} {} [{}] map[{}]}}", user.name, user.uid, user.groups.join(" "), extra.join(" "))
}
