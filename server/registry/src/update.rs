//! Update of an object or a subresource (upstream's `Store.Update` and `rest.BeforeUpdate`), for PUT and PATCH.

use std::sync::Arc;

use portico_machinery::{Object, Status};
use portico_store::{Operation, Record};

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::attempts::{MAX_WRITE_ATTEMPTS, NewerRecord, too_many_changes};
use crate::create::Origin;
use crate::managed_fields::{FieldTracking, manager_name};
use crate::options::UpdateOptions;
use crate::replace::{AttemptOutcome, ReplaceOptions, UidRule};
use crate::served_resource::ServedResource;
use crate::system;
use crate::verb_types::{Context, ObjectPart, ObjectPath, WriteResult};
use crate::verbs::Verbs;

impl Verbs {
    pub(crate) async fn update(
        &self,
        context: &Context,
        served_resource: &ServedResource,
        path: ObjectPath<'_>,
        object: Object,
        options: &UpdateOptions,
    ) -> Result<WriteResult> {
        self.update_with(context, served_resource, path, (object, &[]), options).await
    }

    /// Updates an object in one transaction with operations on other objects.
    pub(crate) async fn update_with(
        &self,
        context: &Context,
        served_resource: &ServedResource,
        path: ObjectPath<'_>,
        (object, extra_ops): (Object, &[Operation]),
        options: &UpdateOptions,
    ) -> Result<WriteResult> {
        let mut new = object;
        let manager = manager_name(&options.field_manager, &context.user_agent);
        system::default_namespace(&mut new, served_resource.info.namespaced, path.namespace)?;
        served_resource.check_readable(&new)?;
        served_resource.apply_defaults(&mut new, self.objects.request_time());
        clear_zero_version(&mut new);
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let Some(current) = self.current(served_resource, path, newer).await? else {
                return self.create_on_update(context, served_resource, path, new, options).await;
            };
            // A write with a resource version gets one attempt; other writes may be retried with the same object.
            let has_resource_version = !new.resource_version().is_empty();
            let is_single_attempt = has_resource_version && self.hooks.transaction(served_resource).is_none();
            let attempt = if is_single_attempt { std::mem::take(&mut new) } else { new.clone() };
            let replace_options = ReplaceOptions {
                attributes: Attributes::new(context, served_resource, path, Options::Update(options)),
                already_admitted: false,
                has_resource_version,
                uid_rule: UidRule::Precondition,
                tracking: FieldTracking::Manager(&manager),
                extra_ops,
            };
            let current = self.objects.recent.get_or_insert(current);
            newer = match self.replace(served_resource, path, &current, attempt, replace_options).await? {
                AttemptOutcome::Done(written) => return Ok(*written),
                AttemptOutcome::Retry(newer) => newer,
            };
        }
        Err(too_many_changes(&served_resource.resource, path.name))
    }

    /// Current state for an attempt: the record stored by a concurrent writer, or the record in the store.
    pub(crate) async fn current(
        &self,
        served_resource: &ServedResource,
        path: ObjectPath<'_>,
        newer: NewerRecord,
    ) -> Result<Option<Arc<Record>>> {
        match newer {
            Some(record) => self.objects.convert_for_request(served_resource, record).await.map(Some),
            None => self.objects.read(served_resource, path.namespace, path.name).await,
        }
    }

    async fn create_on_update(
        &self,
        context: &Context,
        served_resource: &ServedResource,
        path: ObjectPath<'_>,
        mut object: Object,
        options: &UpdateOptions,
    ) -> Result<WriteResult> {
        let part = path.part;
        // A write of the status creates a missing object if the kind allows it, as in upstream.
        let creates = matches!(part, ObjectPart::Main | ObjectPart::Subresource("status"));
        if !served_resource.info.allow_create_on_update || !creates {
            return Err(Box::new(Status::not_found(&served_resource.resource, path.name)));
        }
        if !object.uid().is_empty() {
            let uid = object.uid();
            let message = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: ");
            return Err(Box::new(Status::conflict(&served_resource.resource, path.name, &message)));
        }
        let mut attributes = portico_machinery::Attributes::resource(
            context.user.clone(),
            "create",
            &served_resource.resource,
            path.namespace,
            path.name,
        );
        if let ObjectPart::Subresource(name) = part {
            attributes = attributes.with_subresource(name);
        }
        self.objects.authorizer.decide(&attributes).await.to_result(&attributes)?;
        object.remove(&["metadata", "resourceVersion"]);
        // Defaults and conversion to the storage version are applied again, which changes nothing.
        served_resource.to_version(&mut object);
        let manager = manager_name(&options.field_manager, &context.user_agent);
        let origin = Origin { part, name: path.name, tracking: FieldTracking::Manager(&manager) };
        self.create_tracked(context, served_resource, path.namespace, object, options, origin).await
    }
}

/// Clears the resource version 0, which upstream treats as absent.
pub(crate) fn clear_zero_version(object: &mut Object) {
    if object.resource_version() == "0" {
        object.remove(&["metadata", "resourceVersion"]);
    }
}
