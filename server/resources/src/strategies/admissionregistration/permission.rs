//! Who makes a policy look at objects must be able to look at them. Kinds are not resolved to resources here, so that
//! the question is about all of a group (a policy), or about everything (a binding): never less than upstream asks.

use portico_machinery::user::MASTERS;
use portico_machinery::{Attributes, GroupResource, Object, UserInfo};

use portico_registry::Write;
use portico_validation::Errors;
use portico_validation::checks;

/// Whether the writer may read all parameters of the kind that a policy names.
pub(super) fn param_kind(write: &Write<'_>) -> Errors {
    let path = ["spec", "paramKind"];
    let kind = write.new.at(&path);
    if !kind.is_present() || !changes(write, &[&path]) || is_master(write.user) {
        return Vec::new();
    }
    let (version, name) = (kind.field("apiVersion").str(), kind.field("kind").str());
    let group = version.split_once('/').map_or("", |(group, _)| group);
    if may_get(write, &GroupResource::new(group, "*")) {
        return Vec::new();
    }
    let text = format!(
        "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={name}, apiVersion={version})",
        printed(write.user)
    );
    vec![kind.forbidden(&text)]
}

/// Whether the writer may read what a binding hands to its policy.
pub(super) fn param_ref(write: &Write<'_>) -> Errors {
    let (reference, policy) = (["spec", "paramRef"], ["spec", "policyName"]);
    let at = write.new.at(&reference);
    if !at.is_present() || !changes(write, &[&reference, &policy]) || is_master(write.user) {
        return Vec::new();
    }
    if may_get(write, &GroupResource::new("*", "*")) {
        return Vec::new();
    }
    let text = format!(
        "unable to get policy {} to determine minimum required permissions and user {} does not have \"get\" permission for all groups, versions and resources",
        write.new.at(&policy).str(),
        printed(write.user)
    );
    vec![at.forbidden(&text)]
}

fn changes(write: &Write<'_>, paths: &[&[&str]]) -> bool {
    let changed = |old: &Object| paths.iter().any(|path| !checks::same(&write.new.at(path), &old.at(path)));
    write.old.is_none_or(changed)
}

fn is_master(user: &UserInfo) -> bool {
    user.groups.iter().any(|group| group == MASTERS)
}

fn may_get(write: &Write<'_>, resource: &GroupResource) -> bool {
    let question = Attributes::resource(write.user.clone(), "get", resource, "*", "*");
    write.authorizer.check(&question).is_ok()
}

/// A user as upstream prints one.
fn printed(user: &UserInfo) -> String {
    format!("&{{{} {} [{}] map[]}}", user.name, user.uid, user.groups.join(" "))
}
