//! Layout of objects in etcd, compatible with kube-apiserver: built-in kinds as protobuf in their storage version, definitions,
//! APIServices and custom resources as JSON.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use portico_kinds::{Kinds, LoadError};
use portico_machinery::protobuf::{PREFIX, decode_envelope};
use portico_machinery::{GroupResource, GroupVersion, GroupVersionKind, Object};
use portico_schema::{Format, definition_from_v1beta1, definition_to_v1beta1};
use portico_store::{Layout, Resource};

use crate::builtin::{ResourceIndex, StrategyTable};
use crate::served_resource::ServedResource;
use crate::strategy::RequestTime;

/// Path prefixes that differ from the name of the resource (upstream's `SpecialDefaultResourcePrefixes`, and the two servers that
/// store resources under their group).
const PATHS: [(&str, &str, &str); 7] = [
    ("", "replicationcontrollers", "controllers"),
    ("", "endpoints", "services/endpoints"),
    ("", "nodes", "minions"),
    ("", "services", "services/specs"),
    ("networking.k8s.io", "ingresses", "ingress"),
    (DEFINITIONS.0, DEFINITIONS.1, "apiextensions.k8s.io/customresourcedefinitions"),
    (API_SERVICES.0, API_SERVICES.1, "apiregistration.k8s.io/apiservices"),
];
const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");
const API_SERVICES: (&str, &str) = ("apiregistration.k8s.io", "apiservices");

/// Converts between stored JSON and the keys and values that kube-apiserver uses in etcd.
pub struct EtcdLayout {
    kinds: ResourceIndex,
    builtin: HashMap<GroupResource, BuiltinLayout>,
    /// Resources of built-in kinds by their paths.
    by_path: HashMap<String, Resource>,
    event_ttl: Duration,
}

/// Layout of a built-in resource.
struct BuiltinLayout {
    path: String,
    /// Kind in its storage version.
    kind: GroupVersionKind,
    /// True if the objects expire.
    expires: bool,
}

impl EtcdLayout {
    /// Layout of all built-in kinds, including those that are not served. `event_ttl` is the lifetime of events.
    pub(crate) fn new(strategies: &StrategyTable, event_ttl: Duration) -> Result<Self, LoadError> {
        let all_kinds = Kinds::all()?;
        let kinds = ResourceIndex::new(&all_kinds, strategies);
        let stored = all_kinds.stored().filter(|info| info.stored);
        let builtin: HashMap<_, _> = stored
            .map(|info| {
                let storage = info.storage.clone();
                let builtin = BuiltinLayout {
                    path: builtin_path(&storage),
                    kind: info.gvk.clone(),
                    expires: info.expires,
                };
                (storage, builtin)
            })
            .collect();
        let by_path =
            builtin.iter().map(|(storage, builtin)| (builtin.path.clone(), Resource::from(storage.clone())));
        Ok(Self { by_path: by_path.collect(), kinds, builtin, event_ttl })
    }

    /// Served resource that decodes a stored kind, in the version in which it is stored.
    fn decoding_resource(&self, kind: &GroupVersionKind) -> Result<&ServedResource, String> {
        let served_resource = self.kinds.by_kind(kind).map(|served_resource| &**served_resource);
        served_resource
            .ok_or_else(|| format!("unknown kind {:?} in version {}", kind.kind, kind.group_version()))
    }

    /// Decodes an object of a built-in kind and converts it to its storage version.
    fn decode_builtin(&self, expected: &GroupVersionKind, stored: &[u8]) -> Result<Object, String> {
        let (format, api_version, name) = match stored.starts_with(&PREFIX) {
            true => {
                let envelope = decode_envelope(stored).map_err(|error| error.to_string())?;
                (Format::Protobuf, envelope.api_version.into_owned(), envelope.kind.into_owned())
            }
            false => {
                let object = Object::from_json(stored).map_err(|error| error.to_string())?;
                let (api_version, name) = (object.api_version().to_owned(), object.kind().to_owned());
                if let Some(body) = definition_from_v1beta1(object) {
                    return self.decode((expected, expected), &body.to_json(), Format::Json);
                }
                (Format::Json, api_version, name)
            }
        };
        let version: GroupVersion =
            api_version.parse().map_err(|_| format!("invalid version {api_version:?}"))?;
        let found = version.kind(&name);
        let object = self.decode((&found, expected), stored, format)?;
        match object.kind() == expected.kind {
            true => Ok(object),
            false => Err(format!("unexpected kind {:?}", object.kind())),
        }
    }

    /// Decodes an object found in one version, converts it to the expected storage version, and sets the defaults that upstream
    /// sets at each decoding.
    fn decode(
        &self,
        (found, expected): (&GroupVersionKind, &GroupVersionKind),
        body: &[u8],
        format: Format,
    ) -> Result<Object, String> {
        let kind = self.decoding_resource(found)?;
        let decoded = kind.info.schema.decode(body, format, found).map_err(|error| error.to_string())?;
        let mut object = decoded.object;
        kind.apply_defaults(&mut object, RequestTime { now: Timestamp::now() });
        kind.strategies.main.canonicalize(&mut object);
        self.decoding_resource(expected)?.info.schema.normalize(&mut object);
        Ok(object)
    }
}

fn builtin_path(storage: &GroupResource) -> String {
    let exception =
        PATHS.iter().find(|(group, resource, _)| (storage.group == *group) && storage.resource == *resource);
    exception.map_or_else(|| storage.resource.clone(), |(.., path)| (*path).to_owned())
}

fn is_resource(resource: &GroupResource, (group, name): (&str, &str)) -> bool {
    resource.group == group && resource.resource == name
}

impl Layout for EtcdLayout {
    fn path(&self, resource: &GroupResource) -> String {
        match self.builtin.get(resource) {
            Some(builtin) => builtin.path.clone(),
            None => format!("{}/{}", resource.group, resource.resource),
        }
    }

    fn locate<'p>(&self, path: &'p str) -> Option<(Resource, &'p str)> {
        let (first, rest) = path.split_once('/')?;
        if let Some(resource) = self.by_path.get(first) {
            return Some((resource.clone(), rest));
        }
        let (second, rest) = rest.split_once('/')?;
        if let Some(resource) = self.by_path.get(&path[..first.len() + 1 + second.len()]) {
            return Some((resource.clone(), rest));
        }
        // The group of a definition contains a dot; no other prefix of kube-apiserver does.
        first.contains('.').then(|| (Resource::new(first, second), rest))
    }

    fn to_stored(&self, resource: &GroupResource, json: &[u8]) -> Result<Vec<u8>, String> {
        let Some(builtin) = self.builtin.get(resource) else { return Ok(with_newline(json.to_vec())) };
        let object = || Object::from_json(json).map_err(|error| error.to_string());
        if is_resource(resource, DEFINITIONS) {
            return Ok(with_newline(definition_to_v1beta1(object()?).to_json()));
        }
        if is_resource(resource, API_SERVICES) {
            return Ok(with_newline(json.to_vec()));
        }
        Ok(self.decoding_resource(&builtin.kind)?.info.schema.to_enveloped_protobuf(&object()?))
    }

    fn to_json(&self, resource: &GroupResource, stored: &[u8]) -> Result<Vec<u8>, String> {
        let Some(builtin) = self.builtin.get(resource) else {
            return without_revision(stored.trim_ascii_end());
        };
        let mut object = self.decode_builtin(&builtin.kind, stored)?;
        object.remove(&["metadata", "resourceVersion"]);
        Ok(object.to_json())
    }

    fn time_to_live(&self, resource: &GroupResource) -> Option<Duration> {
        let expires = self.builtin.get(resource).is_some_and(|builtin| builtin.expires);
        (expires && !self.event_ttl.is_zero()).then_some(self.event_ttl)
    }
}

/// Appends the newline that upstream's encoder writes.
fn with_newline(mut json: Vec<u8>) -> Vec<u8> {
    json.push(b'\n');
    json
}

/// JSON of a custom resource without a resourceVersion, which only manual edits of etcd can leave there.
fn without_revision(json: &[u8]) -> Result<Vec<u8>, String> {
    if memchr::memmem::find(json, b"\"resourceVersion\"").is_none() {
        return Ok(json.to_vec());
    }
    let mut object = Object::from_json(json).map_err(|error| error.to_string())?;
    object.remove(&["metadata", "resourceVersion"]);
    Ok(object.to_json())
}

#[cfg(test)]
mod tests;
