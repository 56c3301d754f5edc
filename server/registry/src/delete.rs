//! Delete (upstream's `rest.BeforeDelete` and `Store.Delete`): preconditions, finalizers, propagation and grace period;
//! removes the object or sets its deletion timestamp.

mod grace;

use std::sync::Arc;

use portico_kinds::DefaultPropagation;
use portico_machinery::{GroupResource, Object, Status, time};
use portico_store::{Record, Txn, TxnError};

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::attempts::{MAX_WRITE_ATTEMPTS, NewerRecord, too_many_changes};
use crate::hooks::is_about_other_object;
use crate::options::{DeleteOptions, Preconditions, Propagation};
use crate::served_resource::ServedResource;
use crate::stored_object::{self, StoredObject};
use crate::strategy::{DeleteOverride, RequestTime};
use crate::verb_types::{Context, DeleteResult, ObjectPart, ObjectPath};
use crate::verbs::Verbs;
use crate::{failure, system};
use grace::Grace;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Planned change of a delete.
enum DeletePlan {
    /// Removes the object; for graceful kinds with the given last state.
    Remove(Option<Object>),
    MarkDeleting(Object),
    Keep,
}

/// Result of one attempt to execute the plan.
enum DeleteAttempt {
    /// The delete is complete.
    Done(DeleteResult),
    /// A concurrent writer changed the object: check the preconditions again on the newer state.
    Retry(NewerRecord),
}

impl Verbs {
    /// Deletes an object, or sets its deletion timestamp if finalizers or a grace period keep it.
    ///
    /// # Errors
    /// Status 404, 409 or 422.
    pub(crate) async fn delete(
        &self,
        context: &Context,
        served_resource: &ServedResource,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<DeleteResult> {
        let path = ObjectPath { part: ObjectPart::Main, namespace, name };
        let attributes = Attributes::new(context, served_resource, path, Options::Delete(options));
        self.delete_with_attributes(served_resource, namespace, name, options, Some(attributes)).await
    }

    /// Deletes an object without admission, which already ran for the request itself, such as an eviction.
    ///
    /// # Errors
    /// Status 404, 409 or 422.
    pub async fn delete_admitted(
        &self,
        served_resource: &ServedResource,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<DeleteResult> {
        self.delete_with_attributes(served_resource, namespace, name, options, None).await
    }

    /// Deletes an object. With attributes, mutating and validating admission run on the current object.
    pub(crate) async fn delete_with_attributes(
        &self,
        served_resource: &ServedResource,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
        attributes: Option<Attributes<'_>>,
    ) -> Result<DeleteResult> {
        served_resource.require_verb("delete")?;
        if let Some(status) = served_resource.strategies.delete.check_delete(&served_resource.resource, name)
        {
            return Err(Box::new(status));
        }
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let current = match newer {
                Some(record) => self.objects.convert_for_request(served_resource, record).await?,
                None => self.objects.get(served_resource, namespace, name).await?,
            };
            let found = (current.value.uid(), &*current.revision.to_string());
            check_preconditions(served_resource, name, found, &options.preconditions)?;
            let old = stored_object::decode(&current);
            let warnings = match attributes {
                Some(attributes) => self.admit_delete(attributes, &old).await?,
                None => Vec::new(),
            };
            let plan = plan_delete(served_resource, old, options, self.objects.request_time());
            newer = match self.apply_plan(served_resource, &current, plan, options.dry_run).await? {
                DeleteAttempt::Done(deleted) => return Ok(DeleteResult { warnings, ..deleted }),
                DeleteAttempt::Retry(newer) => newer,
            };
        }
        Err(too_many_changes(&served_resource.resource, name))
    }

    async fn apply_plan(
        &self,
        served_resource: &ServedResource,
        current: &Arc<Record>,
        plan: DeletePlan,
        dry_run: bool,
    ) -> Result<DeleteAttempt> {
        let key = current.key.clone();
        let (txn, removed, dry_run_result) = match plan {
            DeletePlan::Keep => {
                return Ok(DeleteAttempt::Done(DeleteResult::new(StoredObject::new(current.clone()), false)));
            }
            DeletePlan::Remove(None) => {
                (self.removal(served_resource, current, current.value.clone()).await?, true, current.clone())
            }
            DeletePlan::Remove(Some(mut object)) => {
                served_resource.stored_info().schema.normalize(&mut object);
                let value = self.objects.encode_for_storage(served_resource, &mut object).await?;
                let last_record = Record { key, revision: current.revision, value: value.clone() };
                (self.removal(served_resource, current, value).await?, true, Arc::new(last_record))
            }
            DeletePlan::MarkDeleting(mut object) => {
                served_resource.stored_info().schema.normalize(&mut object);
                let value = self.objects.encode_for_storage(served_resource, &mut object).await?;
                let marked_record =
                    Record { key: key.clone(), revision: current.revision, value: value.clone() };
                (Txn::update(key, current.revision, value), false, Arc::new(marked_record))
            }
        };
        if dry_run {
            let stored =
                StoredObject::new(self.objects.convert_for_request(served_resource, dry_run_result).await?);
            return Ok(DeleteAttempt::Done(DeleteResult::new(stored, removed)));
        }
        // A removal does not depend on the schema of the definition.
        let committed =
            if removed { self.commit(txn).await } else { self.commit_checked(served_resource, txn).await? };
        match committed {
            Ok(record) => {
                let stored =
                    StoredObject::new(self.objects.convert_for_request(served_resource, record).await?);
                Ok(DeleteAttempt::Done(DeleteResult::new(stored, removed)))
            }
            Err(error) if is_about_other_object(&error, &current.key) => Ok(DeleteAttempt::Retry(None)),
            Err(TxnError::Conflict { current, .. }) => Ok(DeleteAttempt::Retry(Some(current))),
            Err(TxnError::NotFound { .. }) => Ok(DeleteAttempt::Retry(None)),
            Err(error) => Err(failure::from_txn_error(error, &served_resource.resource, current.key.name())),
        }
    }
}

/// Checks that the object still has the UID and revision in the caller's preconditions.
pub fn check_preconditions(
    served_resource: &ServedResource,
    name: &str,
    (uid, revision): (&str, &str),
    preconditions: &Preconditions,
) -> Result<()> {
    let conflict = |field: &str, expected: &str, found: &str, change: &str| {
        if served_resource.strategies.delete.has_separate_delete() {
            let message = format!(
                "Precondition failed: {field} in precondition: {expected}, {field} in object meta: {found}"
            );
            return Err(Box::new(Status::conflict(&served_resource.resource, name, &message)));
        }
        // Kind of the stored object: an Event of `events.k8s.io` is stored in the core group.
        let kind = &served_resource.stored_info().gvk;
        let kind = GroupResource::new(&kind.group, &kind.kind);
        let message = format!(
            "the {field} in the precondition ({expected}) does not match the {field} in record ({found}). The object might have been {change}"
        );
        Err(Box::new(Status::conflict(&kind, name, &message)))
    };
    if let Some(expected) = preconditions.uid.as_deref().filter(|expected| *expected != uid) {
        return conflict("UID", expected, uid, "deleted and then recreated");
    }
    if let Some(expected) = preconditions.resource_version.as_deref().filter(|expected| *expected != revision)
    {
        return conflict("ResourceVersion", expected, revision, "modified");
    }
    Ok(())
}

fn plan_delete(
    served_resource: &ServedResource,
    old: Object,
    options: &DeleteOptions,
    request_time: RequestTime,
) -> DeletePlan {
    let mut new = old.clone();
    let finalizers = finalizers_after_delete(served_resource, &old, options);
    if finalizers != old.finalizers() {
        new.set(&["metadata", "finalizers"], &finalizers);
        if finalizers.is_empty() {
            new.remove(&["metadata", "finalizers"]);
        }
    }
    match served_resource.strategies.delete.override_delete(&new, &old, request_time) {
        DeleteOverride::Update(object) => return DeletePlan::MarkDeleting(object),
        DeleteOverride::Keep => return DeletePlan::Keep,
        DeleteOverride::Generic => {}
    }
    if served_resource.info.deletion.has_grace_period {
        return plan_graceful_delete(served_resource, new, &old, options, request_time);
    }
    if finalizers.is_empty() {
        return DeletePlan::Remove(None);
    }
    if old.deletion_timestamp().is_none() {
        new.set(&["metadata", "deletionTimestamp"], time::rfc3339(request_time.now));
        new.set(&["metadata", "deletionGracePeriodSeconds"], 0);
        system::bump_generation(&mut new);
    }
    mark_if_changed(new, &old)
}

// No-op updates are not stored, so that watchers receive no event.
fn mark_if_changed(new: Object, old: &Object) -> DeletePlan {
    if new == *old { DeletePlan::Keep } else { DeletePlan::MarkDeleting(new) }
}

/// Plans the delete of a graceful kind; `new` has the final finalizers.
fn plan_graceful_delete(
    served_resource: &ServedResource,
    mut new: Object,
    old: &Object,
    options: &DeleteOptions,
    request_time: RequestTime,
) -> DeletePlan {
    let has_finalizers = !new.finalizers().is_empty();
    match grace::decide(old, options.grace_period_seconds, request_time.now, |requested| {
        served_resource.strategies.delete.grace_period(old, requested)
    }) {
        Grace::Expired if has_finalizers => mark_if_changed(new, old),
        Grace::Expired => DeletePlan::Remove(None),
        Grace::Pending => DeletePlan::Keep,
        Grace::Period { seconds, until, first } => {
            new.set(&["metadata", "deletionTimestamp"], time::rfc3339(until));
            new.set(&["metadata", "deletionGracePeriodSeconds"], seconds);
            if first {
                system::bump_generation(&mut new);
            }
            if seconds > 0 || has_finalizers {
                DeletePlan::MarkDeleting(new)
            } else {
                DeletePlan::Remove(Some(new))
            }
        }
    }
}

/// Finalizers of an object after this delete.
fn finalizers_after_delete(
    served_resource: &ServedResource,
    object: &Object,
    options: &DeleteOptions,
) -> Vec<String> {
    let current = object.finalizers();
    let default = served_resource.info.deletion.default_propagation;
    let finalizer = match options.requested_propagation() {
        _ if default == DefaultPropagation::None => None,
        Some(Propagation::Background) => None,
        Some(Propagation::Orphan) => Some(ORPHAN),
        Some(Propagation::Foreground) => Some(FOREGROUND),
        None if current.contains(&ORPHAN) => Some(ORPHAN),
        None if current.contains(&FOREGROUND) => Some(FOREGROUND),
        None if default == DefaultPropagation::Orphan => Some(ORPHAN),
        None => None,
    };
    let other_finalizers = current.iter().filter(|f| !matches!(**f, ORPHAN | FOREGROUND));
    let mut finalizers: Vec<String> = other_finalizers.map(|f| (*f).to_owned()).collect();
    // Other finalizers keep their position.
    match finalizer {
        Some(finalizer) if current == [finalizer] => vec![finalizer.to_owned()],
        Some(finalizer) => {
            finalizers.push(finalizer.to_owned());
            finalizers
        }
        None => finalizers,
    }
}
