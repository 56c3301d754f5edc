//! Of which resources objects were made, kept in a ConfigMap: a restart finds them without looking through everything.

use std::collections::BTreeSet;

use portico_machinery::{GroupResource, GroupVersion, Object, Reason, Status};
use portico_registry::{CreateOptions, Part, Patch, PatchOptions, Place, Registry};

use crate::identity;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "portico-manifests";

/// The resources.
#[derive(Debug, Default)]
pub(crate) struct Record {
    known: BTreeSet<GroupResource>,
}

impl Record {
    /// What was kept.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) async fn load(registry: &Registry) -> Result<Self, Box<Status>> {
        match registry.get(&config_maps(), NAMESPACE, NAME).await {
            Ok(stored) => {
                let data = stored.object().at(&["data"]);
                Ok(Self { known: data.entries().map(|(name, _)| parse(name)).collect() })
            }
            Err(status) if status.reason() == Reason::NotFound => Ok(Self::default()),
            Err(status) => Err(status),
        }
    }

    /// The resources.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &GroupResource> {
        self.known.iter()
    }

    /// Keeps these, too, before anything of them is made.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) async fn add(
        &mut self,
        registry: &Registry,
        resources: impl IntoIterator<Item = GroupResource>,
    ) -> Result<(), Box<Status>> {
        let new: BTreeSet<GroupResource> =
            resources.into_iter().filter(|resource| !self.known.contains(resource)).collect();
        if new.is_empty() {
            return Ok(());
        }
        write(registry, &new, "").await?;
        self.known.extend(new);
        Ok(())
    }

    /// Forgets resources of which nothing is left.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) async fn forget(
        &mut self,
        registry: &Registry,
        gone: BTreeSet<GroupResource>,
    ) -> Result<(), Box<Status>> {
        if gone.is_empty() {
            return Ok(());
        }
        write(registry, &gone, None::<&str>).await?;
        self.known.retain(|resource| !gone.contains(resource));
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

/// Sets or removes keys; others may write theirs at the same time.
async fn write(
    registry: &Registry,
    resources: &BTreeSet<GroupResource>,
    value: impl Into<Option<&str>>,
) -> Result<(), Box<Status>> {
    let (context, value) = (identity::context(), value.into());
    let mut object = Object::default();
    for resource in resources {
        object.set(&["data", &resource.to_string()], value);
    }
    let place = Place { part: Part::Main, namespace: NAMESPACE, name: NAME };
    let (patch, options) = (Patch::Merge(object.to_json().into()), PatchOptions::default());
    let written = registry.patch(&context, &config_maps(), place, &patch, &options).await.map(drop);
    let Err(status) = written else { return Ok(()) };
    if status.reason() != Reason::NotFound || value.is_none() {
        return Err(status);
    }
    let mut made = Object::new(&GroupVersion::new("", "v1").kind("ConfigMap"));
    made.set(&["metadata", "name"], NAME);
    made.set(&["metadata", "namespace"], NAMESPACE);
    made.copy_from(&object, &["data"]);
    match registry.create(&context, &config_maps(), made, &CreateOptions::default()).await {
        // Another control service was faster.
        Err(status) if status.reason() == Reason::AlreadyExists => {
            registry.patch(&context, &config_maps(), place, &patch, &options).await.map(drop)
        }
        written => written.map(drop),
    }
}
