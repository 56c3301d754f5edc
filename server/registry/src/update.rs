//! Update of an object or a subresource (upstream's `Store.Update` and `rest.BeforeUpdate`), for PUT and PATCH.

use std::sync::Arc;

use portico_machinery::{Object, Status};
use portico_store::{Operation, Record};

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::attempts::{MAX_WRITE_ATTEMPTS, Newer, too_many_changes};
use crate::create::Origin;
use crate::managed_fields::{Tracked, manager_name};
use crate::options::UpdateOptions;
use crate::replace::{Attempt, Terms, UidRule};
use crate::served::ServedResource;
use crate::system;
use crate::typed::{Context, Part, Place, Written};
use crate::verbs::Verbs;

impl Verbs {
    pub(crate) async fn update(
        &self,
        context: &Context,
        served: &ServedResource,
        place: Place<'_>,
        object: Object,
        options: &UpdateOptions,
    ) -> Result<Written> {
        self.update_with(context, served, place, (object, &[]), options).await
    }

    /// Updates an object in one transaction with operations on other objects.
    pub(crate) async fn update_with(
        &self,
        context: &Context,
        served: &ServedResource,
        place: Place<'_>,
        (object, others): (Object, &[Operation]),
        options: &UpdateOptions,
    ) -> Result<Written> {
        let mut new = object;
        let manager = manager_name(&options.field_manager, &context.user_agent);
        system::settle_namespace(&mut new, served.info.namespaced, place.namespace)?;
        served.check_readable(&new)?;
        served.complete(&mut new, self.objects.moment());
        forget_zero_version(&mut new);
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let Some(current) = self.current(served, place, newer).await? else {
                return self.create_on_update(context, served, place, new, options).await;
            };
            // A write with a resource version gets one attempt; other writes may be retried with the same object.
            let insists = !new.resource_version().is_empty();
            let once = insists && self.hooks.transaction(served).is_none();
            let attempt = if once { std::mem::take(&mut new) } else { new.clone() };
            let terms = Terms {
                attributes: Attributes::new(context, served, place, Options::Update(options)),
                admitted: false,
                insists,
                uid: UidRule::Precondition,
                tracked: Tracked::By(&manager),
                others,
            };
            let current = self.objects.recent.stored(current);
            newer = match self.replace(served, place, &current, attempt, terms).await? {
                Attempt::Done(written) => return Ok(*written),
                Attempt::Again(newer) => newer,
            };
        }
        Err(too_many_changes(&served.resource, place.name))
    }

    /// Current state for an attempt: the record stored by a concurrent writer, or the record in the store.
    pub(crate) async fn current(
        &self,
        served: &ServedResource,
        place: Place<'_>,
        newer: Newer,
    ) -> Result<Option<Arc<Record>>> {
        match newer {
            Some(record) => self.objects.incoming(served, record).await.map(Some),
            None => self.objects.read(served, place.namespace, place.name).await,
        }
    }

    async fn create_on_update(
        &self,
        context: &Context,
        served: &ServedResource,
        place: Place<'_>,
        mut object: Object,
        options: &UpdateOptions,
    ) -> Result<Written> {
        let part = place.part;
        // A write of the status creates a missing object if the kind allows it, as in upstream.
        let creates = matches!(part, Part::Main | Part::Subresource("status"));
        if !served.info.allow_create_on_update || !creates {
            return Err(Box::new(Status::not_found(&served.resource, place.name)));
        }
        if !object.uid().is_empty() {
            let uid = object.uid();
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: ");
            return Err(Box::new(Status::conflict(&served.resource, place.name, &why)));
        }
        let mut question = portico_machinery::Attributes::resource(
            context.user.clone(),
            "create",
            &served.resource,
            place.namespace,
            place.name,
        );
        if let Part::Subresource(name) = part {
            question = question.with_subresource(name);
        }
        self.objects.authorizer.decide(&question).await.permit(&question)?;
        object.remove(&["metadata", "resourceVersion"]);
        // Defaults and conversion to the storage version are applied again, which changes nothing.
        served.to_version(&mut object);
        let manager = manager_name(&options.field_manager, &context.user_agent);
        let origin = Origin { part, name: place.name, tracked: Tracked::By(&manager) };
        self.create_tracked(context, served, place.namespace, object, options, origin).await
    }
}

/// Clears the resource version 0, which upstream treats as absent.
pub(crate) fn forget_zero_version(object: &mut Object) {
    if object.resource_version() == "0" {
        object.remove(&["metadata", "resourceVersion"]);
    }
}
