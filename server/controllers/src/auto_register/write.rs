//! Applies decisions through the registry. A conflict with a faster writer is not an error: its event enqueues the name again.

use portico_machinery::resolve::AUTOMANAGED_LABEL;
use portico_machinery::{GroupResource, GroupVersionKind, Object, Reason, Status};
use portico_registry::{Context, CreateOptions, DeleteOptions, ObjectPart, Preconditions, Registry};

use super::decision::{DesiredApiService, SyncAction};
use crate::write_result::ignore_reasons;

const GROUP: &str = "apiregistration.k8s.io";

pub(super) struct ApiServiceWriter {
    registry: Registry,
    context: Context,
    resource: GroupResource,
}

impl ApiServiceWriter {
    pub(super) fn new(registry: Registry) -> Self {
        Self {
            registry,
            context: Context::system("system:apiserver"),
            resource: GroupResource::new(GROUP, "apiservices"),
        }
    }

    /// Applies an action. `uid` is the UID of the object that the decision was based on.
    pub(super) async fn apply(
        &self,
        action: SyncAction,
        name: &str,
        desired: Option<&DesiredApiService>,
        uid: &str,
    ) -> Result<(), Box<Status>> {
        match (action, desired) {
            (SyncAction::Create, Some(desired)) => {
                let (object, options) = (object(name, desired), CreateOptions::default());
                let created = self.registry.create(&self.context, &self.resource, object, &options).await;
                ignore_reasons(created, &[Reason::AlreadyExists])
            }
            (SyncAction::Update, Some(desired)) => {
                ignore_reasons(self.update(name, desired, uid).await, &[Reason::NotFound, Reason::Conflict])
            }
            (SyncAction::Delete, _) => {
                let preconditions = Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() };
                let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
                let deleted = self.registry.delete(&self.context, &self.resource, "", name, &options).await;
                ignore_reasons(deleted.map(drop), &[Reason::NotFound, Reason::Conflict])
            }
            _ => Ok(()),
        }
    }

    /// Replaces only the spec: labels, annotations and status do not change.
    async fn update(&self, name: &str, desired: &DesiredApiService, uid: &str) -> Result<(), Box<Status>> {
        let stored = self.registry.get(&self.resource, "", name).await?;
        if stored.uid() != uid {
            return Ok(());
        }
        let mut object = stored.object().clone();
        object.copy_from(&self::object(name, desired), &["spec"]);
        let options = CreateOptions::default();
        self.registry
            .update(&self.context, &self.resource, ObjectPart::Main, object, &options)
            .await
            .map(drop)
    }
}

/// Returns the desired object, with the label of its management mode.
pub(super) fn object(name: &str, desired: &DesiredApiService) -> Object {
    let kind =
        GroupVersionKind { group: GROUP.to_owned(), version: "v1".to_owned(), kind: "APIService".to_owned() };
    let mut object = Object::new(&kind);
    object.set(&["metadata", "name"], name);
    object.set(&["metadata", "labels", AUTOMANAGED_LABEL], desired.mode.label());
    if !desired.group_version.group.is_empty() {
        object.set(&["spec", "group"], &desired.group_version.group);
    }
    object.set(&["spec", "version"], &desired.group_version.version);
    object.set(&["spec", "groupPriorityMinimum"], desired.group_priority_minimum);
    object.set(&["spec", "versionPriority"], desired.version_priority);
    object
}
