//! Record of the resources with objects from the folder, stored in ConfigMaps, so that a restart need not search all resources.

use std::collections::{BTreeMap, BTreeSet};

use portico_machinery::{GroupResource, GroupVersion, Object, Reason, Status};
use portico_registry::{CreateOptions, ObjectPart, ObjectPath, Patch, PatchOptions, Registry};

use crate::identity;

const NAMESPACE: &str = "kube-system";
/// ConfigMap for resources of this server.
const OWN_CONFIG_MAP: &str = "portico-manifests";
/// ConfigMap for resources of other servers, with the version for requests.
const AGGREGATED_CONFIG_MAP: &str = "portico-manifests-aggregated";

/// Resources, with the version for requests to other servers.
#[derive(Debug)]
pub(crate) struct ResourceRecord {
    name: &'static str,
    resources: BTreeMap<GroupResource, String>,
}

impl ResourceRecord {
    /// Loads the record of this server's resources.
    ///
    /// # Errors
    /// Returns an error if it cannot be read.
    pub(crate) async fn load(registry: &Registry) -> Result<Self, Box<Status>> {
        Self::load_from(registry, OWN_CONFIG_MAP).await
    }

    /// Loads the record of other servers' resources.
    ///
    /// # Errors
    /// Returns an error if it cannot be read.
    pub(crate) async fn load_aggregated(registry: &Registry) -> Result<Self, Box<Status>> {
        Self::load_from(registry, AGGREGATED_CONFIG_MAP).await
    }

    async fn load_from(registry: &Registry, name: &'static str) -> Result<Self, Box<Status>> {
        let resources = match registry.get(&config_maps(), NAMESPACE, name).await {
            Ok(stored) => {
                let data = stored.object().at(&["data"]);
                data.entries().map(|(name, version)| (parse(name), version.str().to_owned())).collect()
            }
            Err(status) if status.reason() == Reason::NotFound => BTreeMap::new(),
            Err(status) => return Err(status),
        };
        Ok(Self { name, resources })
    }

    pub(crate) fn resources(&self) -> impl Iterator<Item = &GroupResource> {
        self.resources.keys()
    }

    /// Returns the resources of a group, with their versions.
    pub(crate) fn resources_of_group(&self, group: &str) -> Vec<(GroupResource, String)> {
        let in_group = self.resources.iter().filter(|(resource, _)| resource.group == group);
        in_group.map(|(resource, version)| (resource.clone(), version.clone())).collect()
    }

    /// Returns the group versions for requests to a group.
    pub(crate) fn versions_of_group(&self, group: &str) -> BTreeSet<GroupVersion> {
        let in_group = self.resources.iter().filter(|(resource, _)| resource.group == group);
        in_group.map(|(_, version)| GroupVersion::new(group, version)).collect()
    }

    /// Adds resources, before any of their objects are created.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub(crate) async fn add(
        &mut self,
        registry: &Registry,
        resources: impl IntoIterator<Item = GroupResource>,
    ) -> Result<(), Box<Status>> {
        let new: BTreeSet<GroupResource> =
            resources.into_iter().filter(|resource| !self.resources.contains_key(resource)).collect();
        if new.is_empty() {
            return Ok(());
        }
        write(registry, self.name, &new, "").await?;
        self.resources.extend(new.into_iter().map(|resource| (resource, String::new())));
        Ok(())
    }

    /// Adds a resource with the version for requests, before any of its objects are created.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub(crate) async fn add_with_version(
        &mut self,
        registry: &Registry,
        resource: &GroupResource,
        version: &str,
    ) -> Result<(), Box<Status>> {
        if self.resources.get(resource).is_some_and(|known| known == version) {
            return Ok(());
        }
        write(registry, self.name, &BTreeSet::from([resource.clone()]), version).await?;
        self.resources.insert(resource.clone(), version.to_owned());
        Ok(())
    }

    /// Removes resources of which no objects remain.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub(crate) async fn remove(
        &mut self,
        registry: &Registry,
        empty_resources: BTreeSet<GroupResource>,
    ) -> Result<(), Box<Status>> {
        if empty_resources.is_empty() {
            return Ok(());
        }
        write(registry, self.name, &empty_resources, None::<&str>).await?;
        self.resources.retain(|resource, _| !empty_resources.contains(resource));
        Ok(())
    }
}

fn config_maps() -> GroupResource {
    GroupResource::new("", "configmaps")
}

fn parse(name: &str) -> GroupResource {
    let (resource, group) = name.split_once('.').unwrap_or((name, ""));
    GroupResource::new(group, resource)
}

/// Sets or removes keys. Other writers may change other keys at the same time.
async fn write(
    registry: &Registry,
    name: &str,
    resources: &BTreeSet<GroupResource>,
    value: impl Into<Option<&str>>,
) -> Result<(), Box<Status>> {
    let (context, value) = (identity::context(), value.into());
    let mut object = Object::default();
    for resource in resources {
        object.set(&["data", &resource.to_string()], value);
    }
    let path = ObjectPath { part: ObjectPart::Main, namespace: NAMESPACE, name };
    let (patch, options) = (Patch::Merge(object.to_json().into()), PatchOptions::default());
    let written = registry.patch(&context, &config_maps(), path, &patch, &options).await.map(drop);
    let Err(status) = written else { return Ok(()) };
    if status.reason() != Reason::NotFound || value.is_none() {
        return Err(status);
    }
    let mut config_map = Object::new(&GroupVersion::new("", "v1").kind("ConfigMap"));
    config_map.set(&["metadata", "name"], name);
    config_map.set(&["metadata", "namespace"], NAMESPACE);
    config_map.copy_from(&object, &["data"]);
    match registry.create(&context, &config_maps(), config_map, &CreateOptions::default()).await {
        // Another control service has created the ConfigMap.
        Err(status) if status.reason() == Reason::AlreadyExists => {
            registry.patch(&context, &config_maps(), path, &patch, &options).await.map(drop)
        }
        written => written.map(drop),
    }
}
