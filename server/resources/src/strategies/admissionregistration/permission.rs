//! Permissions to read the parameters of admission policies (upstream's `authz.go` of policies and bindings).

use portico_machinery::user::MASTERS;
use portico_machinery::{Attributes, Cursor, GroupResource, GroupVersion, UserInfo};
use portico_registry::{Objects, Pending, Result, Write, WritePermissions};
use portico_validation::{Errors, checks};

use super::{Binding, Policy};

const GROUP: &str = "admissionregistration.k8s.io";
const PARAM_KIND: [&str; 2] = ["spec", "paramKind"];
const PARAM_REF: [&str; 2] = ["spec", "paramRef"];
const POLICY_NAME: [&str; 2] = ["spec", "policyName"];

impl WritePermissions for Policy {
    fn denied<'a>(&'a self, objects: &'a Objects, write: Write<'a>) -> Pending<'a, Errors> {
        Box::pin(async move {
            let kind = write.new.at(&PARAM_KIND);
            let is_exempt = !kind.is_present() || write.user.in_group(MASTERS);
            if is_exempt || write.old.is_some_and(|old| checks::same(&kind, &old.at(&PARAM_KIND))) {
                return Ok(Vec::new());
            }
            let read = ParamRead { verb: "get", namespace: "*", name: "*" };
            if Params::of_kind(objects, &kind).may(objects, write.user, read).await {
                return Ok(Vec::new());
            }
            let text = format!(
                "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={})",
                printed(write.user),
                kind.field("kind").str(),
                kind.field("apiVersion").str()
            );
            Ok(vec![kind.forbidden(&text)])
        })
    }
}

impl WritePermissions for Binding {
    fn denied<'a>(&'a self, objects: &'a Objects, write: Write<'a>) -> Pending<'a, Errors> {
        Box::pin(async move {
            let reference = write.new.at(&PARAM_REF);
            if !reference.is_present() || write.user.in_group(MASTERS) {
                return Ok(Vec::new());
            }
            // Also of an unchanged reference: upstream compares pointers, which are never the same.
            let (name, namespace) = (reference.field("name").str(), reference.field("namespace").str());
            let read = ParamRead { verb: if name.is_empty() { "list" } else { "get" }, namespace, name };
            let params = self.params(objects, write.new.at(&POLICY_NAME).str()).await?;
            if params.may(objects, write.user, read).await {
                return Ok(Vec::new());
            }
            Ok(vec![reference.forbidden(&self.refusal(&params, write.user, read.verb))])
        })
    }
}

impl Binding {
    /// The parameters of a policy; those of any kind if the policy cannot be read or has none.
    async fn params(&self, objects: &Objects, policy: &str) -> Result<Params> {
        let resource = if self.mutates { "mutatingadmissionpolicies" } else { "validatingadmissionpolicies" };
        let policies = objects.served(&GroupResource::new(GROUP, resource))?;
        let Ok(Some(record)) = objects.read(&policies, "", policy).await else {
            return Ok(Params::any(Some(format!("get policy {policy}"))));
        };
        let policy = objects.recent.stored(record);
        let kind = policy.object().at(&PARAM_KIND);
        Ok(if kind.is_present() { Params::of_kind(objects, &kind) } else { Params::any(None) })
    }

    fn refusal(&self, params: &Params, user: &UserInfo, verb: &str) -> String {
        let user = printed(user);
        if let Some(unable) = &params.unable {
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

/// Resources that hold parameters.
struct Params {
    resource: GroupResource,
    version: String,
    /// Action that failed while the resource was determined.
    unable: Option<String>,
}

impl Params {
    /// All resources of all groups.
    fn any(unable: Option<String>) -> Self {
        Self { resource: GroupResource::new("*", "*"), version: "*".to_owned(), unable }
    }

    /// The resource of a kind, all of its group version if it is not served here.
    fn of_kind(objects: &Objects, kind: &Cursor<'_>) -> Self {
        let (api_version, name) = (kind.field("apiVersion").str(), kind.field("kind").str());
        let unable = |verb: &str| Some(format!("{verb} paramKind &{{{api_version} {name}}}"));
        let Ok(version) = api_version.parse::<GroupVersion>() else { return Self::any(unable("parse")) };
        let (resource, unable) = match objects.by_kind(&version.kind(name)) {
            Some(served) => (served.resource.clone(), None),
            None => (GroupResource::new(&*version.group, "*"), unable("resolve")),
        };
        Self { resource, version: version.version, unable }
    }

    async fn may(&self, objects: &Objects, user: &UserInfo, read: ParamRead<'_>) -> bool {
        let question =
            Attributes::resource(user.clone(), read.verb, &self.resource, read.namespace, read.name);
        objects.authorizer.decide(&question.with_version(&self.version)).await.allowed()
    }
}

/// A user as Go prints the struct.
fn printed(user: &UserInfo) -> String {
    let extra: Vec<String> =
        user.extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
    format!("&{{{} {} [{}] map[{}]}}", user.name, user.uid, user.groups.join(" "), extra.join(" "))
}
