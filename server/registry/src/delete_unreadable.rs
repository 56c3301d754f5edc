//! Deletion of unreadable objects, which needs a separate permission (docs/internals/adr/0011).

use portico_machinery::{Attributes, Object, RequestInfo, Status, field};
use portico_store::Txn;

use crate::Result;
use crate::encoding;
use crate::failure;
use crate::objects::Objects;
use crate::options::{DeleteOptions, IGNORE_READ_ERROR};
use crate::served_resource::ServedResource;
use crate::stored_object::StoredObject;
use crate::verb_types::{Context, DeleteResult};
use crate::verbs::Verbs;

/// Verb that is required in addition to `delete` to delete an unreadable object.
const VERB: &str = "unsafe-delete-ignore-read-errors";

impl Objects {
    /// Validates the options. Drops the option to delete unreadable objects unless the feature gate is on, as upstream does.
    pub(crate) fn check_delete_options(
        &self,
        mut options: DeleteOptions,
        collection: bool,
    ) -> Result<DeleteOptions> {
        options.ignore_read_error &= self.settings.unsafe_deletion;
        if !options.ignore_read_error {
            return Ok(options);
        }
        options.check_unsafe(collection)?;
        Ok(options)
    }
}

impl Verbs {
    /// Deletes an unreadable object. Preconditions, finalizers and admission do not apply, because the content is unknown.
    /// Watchers receive a last state that contains only the name and the UID.
    ///
    /// # Errors
    /// Status 403; 422 if the object is readable or absent.
    pub(crate) async fn delete_unreadable(
        &self,
        context: &Context,
        served_resource: &ServedResource,
        namespace: &str,
        name: &str,
    ) -> Result<DeleteResult> {
        served_resource.require_verb("delete")?;
        self.authorize_unsafe(context, served_resource, namespace, name).await?;
        let found = self.objects.find(served_resource, namespace, name).await?;
        let namespace = if served_resource.info.namespaced { namespace } else { "" };
        let key = portico_store::Key::new(&served_resource.storage, namespace, name);
        let Some(Err(unreadable)) = found.object else {
            let message =
                "is exclusively used to delete corrupt object(s), try again by removing this option";
            let error = field::Error::invalid(&field::Path::from(IGNORE_READ_ERROR), true, message);
            let kind = portico_machinery::gvk::GroupKind {
                group: served_resource.resource.group.clone(),
                kind: served_resource.resource.resource.clone(),
            };
            return Err(Box::new(Status::invalid(&kind, name, &[error])));
        };
        let mut last = Object::new(&served_resource.stored_info().gvk);
        if let Some(custom) = &served_resource.custom {
            last.set(&["apiVersion"], &custom.stored_as);
        }
        last.set(&["metadata", "name"], name);
        if !namespace.is_empty() {
            last.set(&["metadata", "namespace"], namespace);
        }
        last.set(&["metadata", "uid"], unreadable.uid());
        served_resource.stored_info().schema.normalize(&mut last);
        let last = encoding::encode(served_resource, &mut last)?;
        tracing::warn!(object = %key, user = context.user.name, "deleting an unreadable object");
        match self.commit(Txn::delete(key, unreadable.revision(), last)).await {
            Ok(record) => Ok(DeleteResult::new(StoredObject::new(record), true)),
            Err(error) => Err(failure::from_txn_error(error, &served_resource.resource, name)),
        }
    }

    async fn authorize_unsafe(
        &self,
        context: &Context,
        served_resource: &ServedResource,
        namespace: &str,
        name: &str,
    ) -> Result<()> {
        let request = RequestInfo {
            is_resource_request: true,
            verb: VERB.to_owned(),
            api_group: served_resource.resource.group.clone(),
            api_version: served_resource.info.gvk.version.clone(),
            namespace: namespace.to_owned(),
            resource: served_resource.resource.resource.clone(),
            name: name.to_owned(),
            ..RequestInfo::default()
        };
        let attributes = Attributes::new(context.user.clone(), request);
        let decision = self.objects.authorizer.decide(&attributes).await;
        if decision.is_allowed() {
            return Ok(());
        }
        let message = format!("not permitted to do {VERB:?}, reason: {}", decision.reason);
        Err(Box::new(Status::forbidden(&served_resource.resource, name, &message)))
    }
}
