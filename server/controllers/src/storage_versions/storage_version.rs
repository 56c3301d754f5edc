//! Computes the content of a StorageVersion. Pure.

use jiff::Timestamp;
use portico_machinery::{GroupResource, Object, time};
use serde::Serialize;

/// Storage of a resource on this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Resource; the first by group if several share their storage.
    pub resource: GroupResource,
    /// Version in which objects are written, such as `apps/v1`.
    pub encoding: String,
    /// Versions that can be decoded, newest stable first, including the written one.
    pub decodable: Vec<String>,
    /// Served versions of the group.
    pub served: Vec<String>,
    /// The resource and all others that share its storage.
    pub covers: Vec<GroupResource>,
}

impl Registration {
    /// Returns the name of the StorageVersion: `<group>.<resource>`, with `core` for the core group.
    #[must_use]
    pub fn name(&self) -> String {
        let GroupResource { group, resource } = &self.resource;
        format!("{}.{resource}", if group.is_empty() { "core" } else { group })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(rename = "apiServerID")]
    server: &'a str,
    encoding_version: &'a str,
    decodable_versions: &'a [String],
    served_versions: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Condition<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    status: &'static str,
    #[serde(skip_serializing_if = "is_zero")]
    observed_generation: i64,
    last_transition_time: &'a str,
    reason: &'static str,
    message: &'static str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(generation: &i64) -> bool {
    *generation == 0
}

const STATUS: &str = "status";
const SERVERS: [&str; 2] = [STATUS, "storageVersions"];
const COMMON: [&str; 2] = [STATUS, "commonEncodingVersion"];
const CONDITIONS: [&str; 2] = [STATUS, "conditions"];
const AGREED: &str = "AllEncodingVersionsEqual";

/// Returns the object with this server's entry, and the common version and condition of all servers.
#[must_use]
pub fn updated(current: &Object, server: &str, registration: &Registration, now: Timestamp) -> Object {
    let mut object = current.clone();
    let entry = Entry {
        server,
        encoding_version: &registration.encoding,
        decodable_versions: &registration.decodable,
        served_versions: &registration.served,
    };
    let is_listed = current.at(&SERVERS).items().any(|e| e.field("apiServerID").str() == server);
    if is_listed {
        object.edit_each(&SERVERS, |old| {
            if old.str_at("apiServerID") == server {
                old.set(&["encodingVersion"], entry.encoding_version);
                old.set(&["decodableVersions"], entry.decodable_versions);
                old.set(&["servedVersions"], entry.served_versions);
            }
        });
    } else {
        object.push(&SERVERS, &entry);
    }
    update_common_version(&mut object, now);
    object
}

/// Sets the common version and the condition that reports whether there is one.
fn update_common_version(object: &mut Object, now: Timestamp) {
    let before = object.at(&COMMON).opt_str().map(str::to_owned);
    let common = {
        let versions = object.at(&SERVERS);
        let mut versions = versions.items().map(|e| e.field("encodingVersion").str().to_owned());
        let first = versions.next();
        first.filter(|first| versions.all(|other| other == *first))
    };
    match &common {
        Some(version) => object.set(&COMMON, version),
        None => drop(object.remove(&COMMON)),
    }
    let has_changed = matches!((&before, &common), (Some(before), Some(common)) if before != common);
    let (status, reason, message) = match common {
        Some(_) => ("True", "CommonEncodingVersionSet", "Common encoding version set"),
        None => ("False", "CommonEncodingVersionUnset", "Common encoding version unset"),
    };
    let previous = object.at(&CONDITIONS).items().find(|c| c.field("type").str() == AGREED);
    let since = previous
        .filter(|old| !has_changed && old.field("status").str() == status)
        .map_or_else(|| time::rfc3339(now), |old| old.field("lastTransitionTime").str().to_owned());
    let observed_generation = object.generation();
    object.retain(&CONDITIONS, |condition| condition.str_at("type") != AGREED);
    let condition = Condition {
        kind: AGREED,
        status,
        observed_generation,
        last_transition_time: &since,
        reason,
        message,
    };
    object.push(&CONDITIONS, condition);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registration(encoding: &str) -> Registration {
        Registration {
            resource: GroupResource::new("", "pods"),
            encoding: encoding.to_owned(),
            decodable: vec!["v1".to_owned(), "v2".to_owned()],
            served: vec!["v1".to_owned()],
            covers: Vec::new(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn summary(object: &Object) -> (Option<&str>, String, String) {
        let condition = object.at(&CONDITIONS).items().next().unwrap();
        let [status, since] = ["status", "lastTransitionTime"].map(|f| condition.field(f).str().to_owned());
        (object.at(&COMMON).opt_str(), status, since)
    }

    #[test]
    fn the_condition_reports_agreement_and_the_time_of_its_last_change() {
        let empty = Object::from_json(b"{}").unwrap();
        let one = updated(&empty, "a", &registration("v1"), at(0));
        assert_eq!(summary(&one), (Some("v1"), "True".into(), "1970-01-01T00:00:00Z".into()));
        let same = updated(&one, "a", &registration("v1"), at(9));
        assert_eq!(same, one);
        let two = updated(&one, "b", &registration("v2"), at(10));
        assert_eq!(two.at(&SERVERS).len(), 2);
        assert_eq!(summary(&two), (None, "False".into(), "1970-01-01T00:00:10Z".into()));
        let both = updated(&two, "a", &registration("v2"), at(20));
        assert_eq!(summary(&both), (Some("v2"), "True".into(), "1970-01-01T00:00:20Z".into()));
    }

    #[test]
    fn a_new_common_version_updates_the_transition_time() {
        let empty = Object::from_json(b"{}").unwrap();
        let one = updated(&empty, "a", &registration("v1"), at(0));
        let moved = updated(&one, "a", &registration("v2"), at(5));
        assert_eq!(summary(&moved), (Some("v2"), "True".into(), "1970-01-01T00:00:05Z".into()));
    }

    #[test]
    fn names_consist_of_group_and_resource() {
        assert_eq!(registration("v1").name(), "core.pods");
        let apps = Registration { resource: GroupResource::new("apps", "deployments"), ..registration("v1") };
        assert_eq!(apps.name(), "apps.deployments");
    }
}
