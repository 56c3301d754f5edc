//! Past states of objects, within the retention of the history, and restoration of such a state.
//!
//! A restoration uses the same pipeline as other writes: admission and validation see an update, or a create if the object was
//! deleted. An existing object keeps its identity, finalizers and owners; a deleted one gets the owners that still exist. The
//! managers of fields are restored.

mod namespace;

use std::sync::Arc;

use futures::future::join_all;
use portico_kit::spans;
use portico_machinery::{GroupVersionKind, Object, Status, time};
use portico_schema::managed::{ManagedFields, Manager};
use portico_store::{
    Key, ListAt, PastQuery, PastState, PastStates, Record, Scope, with_single_revision_check,
};
use serde::Deserialize;

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::create::Origin;
use crate::failure;
use crate::long_work::MAX_INLINE_BYTES;
use crate::managed_fields::FieldTracking;
use crate::options::UpdateOptions;
use crate::registry::Registry;
use crate::replace::{AttemptOutcome, ReplaceOptions, UidRule};
use crate::served_resource::ServedResource;
use crate::verb_types::{Context, ObjectPart, ObjectPath, WriteResult};

/// Maximum number of states that are searched for the last one before a deletion began.
const MAX_SEARCHED_STATES: usize = 1_000;
/// Number of states that the search reads at a time.
const SEARCH_PAGE: usize = 50;

/// Metadata fields of a past state that the system sets.
const SYSTEM_FIELDS: [&str; 7] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
];

/// State of an object in the version of the request.
pub struct DecodedPastState {
    /// State as stored.
    pub state: PastState,
    /// Decoded object, or the reason why it cannot be shown.
    pub object: Result<Object, String>,
}

/// States of an object.
pub struct ObjectHistory {
    /// States, newest first.
    pub states: Vec<DecodedPastState>,
    /// True if older states exist.
    pub has_more: bool,
    /// Revision from which on no state is missing.
    pub complete_from: i64,
}

/// Page of the objects at a past revision.
pub struct PastList {
    /// Objects in key order.
    pub objects: Vec<Object>,
    /// Keys of unreadable objects, with reasons.
    pub unreadable: Vec<String>,
    /// Key after which the next page starts; `None` on the last page.
    pub next: Option<String>,
}

/// Range of the states of an object.
#[derive(Clone, Copy, Debug)]
pub struct PastRange {
    /// Lowest revision; 0 selects all stored states.
    pub since: i64,
    /// Revision that all states precede, if set.
    pub before: Option<i64>,
    /// Maximum number of states.
    pub limit: usize,
}

/// Parameters of a restoration.
#[derive(Clone, Debug)]
pub struct RestoreRequest {
    /// Revision of the state; `None` selects the last state of a deleted object.
    pub revision: Option<i64>,
    /// Lowest revision that may be restored; 0 allows all stored states.
    pub since: i64,
    /// True if the object exists according to the authorization of the caller (update instead of create).
    pub exists: bool,
    /// Runs all steps except the write.
    pub dry_run: bool,
}

/// Result of a restoration.
pub struct RestoreResult {
    /// Result of the write.
    pub result: WriteResult,
    /// Revision of the restored state.
    pub revision: i64,
}

/// Owner reference in metadata.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnerReference {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
}

impl Registry {
    /// Decodes the past states of an object and applies `read` to them. Both run on the threads for long work if
    /// the states are large.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read.
    pub async fn past_states<T: Send + 'static>(
        &self,
        served_resource: &Arc<ServedResource>,
        namespaced_name: (&str, &str),
        range: PastRange,
        read: impl FnOnce(ObjectHistory) -> T + Send + 'static,
    ) -> Result<T> {
        let found = self.find_past_states(served_resource, namespaced_name, range).await?;
        let is_large = is_large(&found.states);
        let (registry, served) = (self.clone(), Arc::clone(served_resource));
        let work = async move { read(registry.decode_past_states(&served, found, range.since).await) };
        self.objects()
            .compute(is_large, spans::current().instrument_part(with_single_revision_check(work)))
            .await
    }

    /// Decodes the past states of an object on this thread.
    async fn past_states_inline(
        &self,
        served_resource: &ServedResource,
        namespaced_name: (&str, &str),
        range: PastRange,
    ) -> Result<ObjectHistory> {
        let found = self.find_past_states(served_resource, namespaced_name, range).await?;
        Ok(self.decode_past_states(served_resource, found, range.since).await)
    }

    /// Reads the past states of an object from the store.
    async fn find_past_states(
        &self,
        served_resource: &ServedResource,
        (namespace, name): (&str, &str),
        range: PastRange,
    ) -> Result<PastStates> {
        let PastRange { since, before, limit } = range;
        let query = PastQuery { key: Key::new(&served_resource.storage, namespace, name), before, limit };
        let mut found =
            self.store().past_states(query).await.map_err(|error| failure::from_store_error(error, 0))?;
        if let Some(end) = found.states.iter().position(|state| state.revision() < since) {
            found.states.truncate(end);
            found.has_more = false;
        }
        Ok(found)
    }

    async fn decode_past_states(
        &self,
        served_resource: &ServedResource,
        found: PastStates,
        since: i64,
    ) -> ObjectHistory {
        let records = found.states.iter().filter_map(|state| state.state.as_ref().ok().cloned());
        let mut objects = self.convert_past_states(served_resource, records.collect()).await.into_iter();
        let states = found.states.into_iter().map(|state| {
            let object = match &state.state {
                Ok(_) => objects.next().unwrap_or_else(|| Err("the state was not converted".to_owned())),
                Err(object) => Err(object.reason().to_owned()),
            };
            DecodedPastState { state, object }
        });
        ObjectHistory {
            states: states.collect(),
            has_more: found.has_more,
            complete_from: found.complete_from.max(since),
        }
    }

    /// Converts past states to the version of the request by one review. If it fails, sends one review
    /// for each state, concurrently.
    async fn convert_past_states(
        &self,
        served_resource: &ServedResource,
        records: Vec<Arc<Record>>,
    ) -> Vec<Result<Object, String>> {
        if let Ok(all) = self.objects().convert_all_for_request(served_resource, records.clone()).await {
            return all.iter().map(|record| Ok(decode_in_version(served_resource, record))).collect();
        }
        let conversions = records.into_iter().map(|record| async {
            let record = self.objects().convert_for_request(served_resource, record).await;
            record
                .map(|record| decode_in_version(served_resource, &record))
                .map_err(|status| status.message.clone())
        });
        join_all(conversions).await
    }

    /// Lists the objects at a revision after a key, up to a limit; with a name only that object.
    ///
    /// # Errors
    /// Status 410 if the revision is compacted, 504 if it has not been reached.
    pub async fn list_past(
        &self,
        served_resource: &ServedResource,
        (namespace, name): (&str, &str),
        revision: i64,
        (after, limit): (Option<String>, usize),
    ) -> Result<PastList> {
        let only_key = (!name.is_empty()).then(|| Key::new(&served_resource.storage, namespace, name));
        let after = after.or_else(|| only_key.as_ref().and_then(|key| path_before(key.path())));
        let scope = match namespace {
            "" => Scope::all(&served_resource.storage),
            namespace => Scope::namespace(&served_resource.storage, namespace),
        };
        let query = ListAt { scope, revision, after, limit: Some(limit), exact_count: false };
        let page = self.store().list_past(query).await;
        let mut page = page.map_err(|error| failure::from_store_error(error, revision))?;
        let mut next = page.records.last().map(|record| record.key.path().to_owned());
        if let Some(only_key) = &only_key {
            page.records.retain(|record| record.key == *only_key);
            page.unreadable.retain(|object| object.has_key() && object.key() == only_key);
            next = next.filter(|last| **last < *only_key.path());
        }
        let mut objects = Vec::with_capacity(page.records.len());
        for record in self.objects().convert_all_for_request(served_resource, page.records).await? {
            objects.push(decode_in_version(served_resource, &record));
        }
        let unreadable =
            page.unreadable.iter().map(|object| format!("{}: {}", object.key(), object.reason()));
        Ok(PastList { objects, unreadable: unreadable.collect(), next: next.filter(|_| page.remaining > 0) })
    }

    /// Restores the content of a past state, on the threads for long work, because states may be large and validation rules of
    /// custom resources may be slow.
    ///
    /// # Errors
    /// Status 404 if there is no such state, 504 if its revision has not been reached, 409 if the object was created, deleted or
    /// changed concurrently, and the errors of an update or create.
    pub async fn restore(
        &self,
        context: &Context,
        served_resource: &Arc<ServedResource>,
        (namespace, name): (&str, &str),
        request: &RestoreRequest,
    ) -> Result<RestoreResult> {
        let (registry, context, served) = (self.clone(), context.clone(), Arc::clone(served_resource));
        let (namespace, name, request) = (namespace.to_owned(), name.to_owned(), request.clone());
        let work = async move {
            let path = ObjectPath { part: ObjectPart::Main, namespace: &namespace, name: &name };
            registry.restore_inline(&context, &served, path, &request).await
        };
        self.objects()
            .compute(true, spans::current().instrument_part(with_single_revision_check(work)))
            .await?
    }

    /// Restores a state on this thread.
    async fn restore_inline(
        &self,
        context: &Context,
        served_resource: &ServedResource,
        path: ObjectPath<'_>,
        request: &RestoreRequest,
    ) -> Result<RestoreResult> {
        let current = self.store().revision();
        if let Some(future) = request.revision.filter(|revision| *revision > current) {
            return Err(Box::new(failure::too_large_version(future, current)));
        }
        let (revision, mut object) = self.state_to_restore(served_resource, path, request).await?;
        for field in SYSTEM_FIELDS {
            object.remove(&["metadata", field]);
        }
        let current = self.objects().read(served_resource, path.namespace, path.name).await?;
        let options = UpdateOptions { dry_run: request.dry_run, ..UpdateOptions::default() };
        let result = match (current, request.exists) {
            (Some(current), true) => {
                self.restore_existing(context, served_resource, path, (object, current), &options).await?
            }
            (None, false) => self.recreate(context, served_resource, path, object, &options).await?,
            _ => {
                return Err(Box::new(Status::conflict(
                    &served_resource.resource,
                    path.name,
                    failure::MODIFIED,
                )));
            }
        };
        Ok(RestoreResult { result, revision })
    }

    /// Finds the state of the requested revision, or for a deleted object the last state before its deletion began.
    async fn state_to_restore(
        &self,
        served_resource: &ServedResource,
        path: ObjectPath<'_>,
        request: &RestoreRequest,
    ) -> Result<(i64, Object)> {
        let not_found = |qualifier: &str| {
            let mut status = Status::not_found(&served_resource.resource, path.name);
            status.message =
                format!("{} {:?} has no stored state {qualifier}", served_resource.resource, path.name);
            Box::new(status)
        };
        let mut before = request.revision.map(|revision| revision.saturating_add(1));
        let mut searched = 0;
        while searched < MAX_SEARCHED_STATES {
            let range = PastRange { since: request.since, before, limit: SEARCH_PAGE };
            let past = self.past_states_inline(served_resource, (path.namespace, path.name), range).await?;
            searched += past.states.len();
            before = past.states.last().map(|past| past.state.revision());
            for past in past.states {
                let revision = past.state.revision();
                match past.object {
                    Ok(object) if object.deletion_timestamp().is_none() => return Ok((revision, object)),
                    Ok(_) => {}
                    Err(reason) => {
                        return Err(Box::new(Status::internal(format!("revision {revision}: {reason}"))));
                    }
                }
            }
            if !past.has_more {
                break;
            }
        }
        Err(match request.revision {
            Some(revision) => not_found(&format!("at revision {revision}")),
            None => not_found("before its deletion"),
        })
    }

    /// Updates an existing object to a past state; its identity, finalizers and owners stay.
    async fn restore_existing(
        &self,
        context: &Context,
        served_resource: &ServedResource,
        path: ObjectPath<'_>,
        (mut object, current): (Object, Arc<Record>),
        options: &UpdateOptions,
    ) -> Result<WriteResult> {
        let current = self.objects().recent.get_or_insert(current);
        for field in ["uid", "resourceVersion", "finalizers", "ownerReferences"] {
            object.copy_from(current.object(), &["metadata", field]);
        }
        served_resource.apply_defaults(&mut object, self.objects().request_time());
        restore_managers(&mut object, current.object());
        let replace_options = ReplaceOptions {
            attributes: Attributes::new(context, served_resource, path, Options::Update(options)),
            already_admitted: false,
            has_resource_version: true,
            uid_rule: UidRule::Precondition,
            tracking: FieldTracking::Done,
            extra_ops: &[],
        };
        match self.verbs().replace(served_resource, path, &current, object, replace_options).await? {
            AttemptOutcome::Done(written) => Ok(*written),
            AttemptOutcome::Retry(_) => {
                Err(Box::new(Status::conflict(&served_resource.resource, path.name, failure::MODIFIED)))
            }
        }
    }

    /// Creates a deleted object again.
    async fn recreate(
        &self,
        context: &Context,
        served_resource: &ServedResource,
        path: ObjectPath<'_>,
        mut object: Object,
        options: &UpdateOptions,
    ) -> Result<WriteResult> {
        served_resource.require_verb("create")?;
        let warnings = self.remove_missing_owners(&mut object, path.namespace).await?;
        restore_managers(&mut object, &Object::default());
        let origin = Origin { part: ObjectPart::Main, name: path.name, tracking: FieldTracking::Done };
        let verbs = self.verbs();
        let written =
            verbs.create_tracked(context, served_resource, path.namespace, object, options, origin).await?;
        Ok(written.prepend_warnings(warnings))
    }

    /// Removes owners that no longer exist: with only such owners, the garbage collector would delete the object immediately.
    async fn remove_missing_owners(&self, object: &mut Object, namespace: &str) -> Result<Vec<String>> {
        const OWNERS: [&str; 2] = ["metadata", "ownerReferences"];
        let owners: Vec<OwnerReference> = object.decode(&OWNERS).unwrap_or_default();
        let (mut missing, mut warnings) = (Vec::new(), Vec::new());
        for (index, owner) in owners.iter().enumerate() {
            if self.is_owner_missing(owner, namespace).await? {
                missing.push(index);
                warnings.push(format!(
                    "the owner {} {} does not exist, owner reference removed",
                    owner.kind, owner.name
                ));
            }
        }
        let mut index = 0;
        let mut remaining = Vec::new();
        object.edit_each(&OWNERS, |owner| {
            if !missing.contains(&index) {
                remaining.push(owner.to_node());
            }
            index += 1;
        });
        match remaining.is_empty() {
            true => drop(object.remove(&OWNERS)),
            false => object.set(&OWNERS, remaining),
        }
        Ok(warnings)
    }

    /// True if an owner is known not to exist. Owners of kinds that this server does not store may exist.
    async fn is_owner_missing(&self, owner: &OwnerReference, namespace: &str) -> Result<bool> {
        let Ok(version) = owner.api_version.parse::<portico_machinery::GroupVersion>() else {
            return Ok(true);
        };
        let kind: GroupVersionKind = version.kind(&owner.kind);
        let Some(served_resource) = self.objects().by_kind(&kind) else { return Ok(false) };
        let namespace = if served_resource.info.namespaced { namespace } else { "" };
        let found = self.objects().read(&served_resource, namespace, &owner.name).await?;
        Ok(found.is_none_or(|record| record.value.uid() != owner.uid))
    }
}

/// True if decoding these states takes longer than a serving thread may be blocked.
fn is_large(states: &[PastState]) -> bool {
    let records = states.iter().filter_map(|state| state.state.as_ref().ok());
    records.map(|record| record.value.json().len()).sum::<usize>() > MAX_INLINE_BYTES
}

/// Decodes a stored object in the version of the request.
fn decode_in_version(served_resource: &ServedResource, record: &Record) -> Object {
    let mut object = crate::stored_object::decode(record);
    served_resource.to_version(&mut object);
    object
}

/// Path shortly before another one, so that few others lie in between; `None` if no path precedes it.
fn path_before(path: &str) -> Option<String> {
    let last = path.chars().next_back()?;
    let before = char::from_u32(u32::from(last).checked_sub(1)?)?;
    Some(format!("{}{before}{}", path.strip_suffix(last)?, char::MAX))
}

/// Restores the managers of the object's fields. Subresources keep their current content, hence also their current managers.
fn restore_managers(object: &mut Object, current: &Object) {
    let mut managed = ManagedFields::read(object).unwrap_or_default();
    let current_fields = ManagedFields::read(current).unwrap_or_default();
    managed.owners.retain(|manager, _| manager.subresource.is_empty());
    managed.times.retain(|manager, _| manager.subresource.is_empty());
    managed.extra_entries.clear();
    let of_subresources = |(manager, _): &(_, _)| is_of_subresource(manager);
    managed.owners.extend(current_fields.owners.into_iter().filter(of_subresources));
    managed.times.extend(current_fields.times.into_iter().filter(|(manager, _)| is_of_subresource(manager)));
    managed.write(object);
}

fn is_of_subresource(manager: &Manager) -> bool {
    !manager.subresource.is_empty()
}

/// Time at which a state was written, in Unix seconds: the latest time in its managedFields.
#[must_use]
pub fn last_change(object: &Object) -> Option<i64> {
    let managed = ManagedFields::read(object).ok()?;
    time::parse(managed.times.values().max()?).map(|at| at.as_second())
}

/// Manager that wrote a state, according to its managedFields and those of the state before: of the managers whose fields or
/// time changed, the one with the latest time. An apply that changes only ownership has no time (`managedFieldsUpdater.Apply`).
/// If nothing differs (several writes in one second), the manager with the latest time overall.
#[must_use]
pub fn last_manager(object: &Object, before: Option<&Object>) -> Option<String> {
    let managed = ManagedFields::read(object).ok()?;
    let before = before.and_then(|before| ManagedFields::read(before).ok()).unwrap_or_default();
    let has_changed = |manager: &Manager| {
        let Some(owned) = managed.owners.get(manager) else { return false };
        let mut gained_fields = owned.set.clone();
        if let Some(before) = before.owners.get(manager) {
            gained_fields.subtract(&before.set);
        }
        !gained_fields.is_empty()
    };
    let order = |manager: &&Manager| (managed.times.get(*manager), has_changed(manager));
    let differs = |manager: &&Manager| {
        has_changed(manager) || managed.times.get(*manager) != before.times.get(*manager)
    };
    let changed = managed.owners.keys().filter(differs).max_by_key(order);
    let last = changed.or_else(|| managed.owners.keys().max_by_key(order));
    last.map(|manager| manager.name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, time: &str, field: &str) -> String {
        let time =
            if time.is_empty() { String::new() } else { format!(r#""time":"2026-01-01T00:00:{time}Z","#) };
        format!(
            r#"{{"manager":"{manager}","operation":"{operation}","apiVersion":"v1",{time}"fieldsType":"FieldsV1","fieldsV1":{{"f:data":{{"f:{field}":{{}}}}}}}}"#
        )
    }

    fn managed(entries: &[String]) -> Object {
        let json = format!(r#"{{"metadata":{{"managedFields":[{}]}}}}"#, entries.join(","));
        Object::from_json(json.as_bytes()).unwrap()
    }

    #[test]
    fn the_manager_of_a_state_is_the_one_whose_fields_or_time_changed() {
        let created = entry("creator", "Update", "01", "a");
        let before = managed(std::slice::from_ref(&created));
        for (after, manager) in [
            (entry("applier", "Apply", "", "a"), "applier"),
            (entry("applier", "Apply", "01", "b"), "applier"),
            (entry("another", "Update", "02", "b"), "another"),
        ] {
            assert_eq!(
                last_manager(&managed(&[after, created.clone()]), Some(&before)).as_deref(),
                Some(manager)
            );
        }
        let again = managed(&[entry("creator", "Update", "03", "a"), entry("applier", "Apply", "", "a")]);
        let applied = managed(&[created.clone(), entry("applier", "Apply", "", "a")]);
        assert_eq!(last_manager(&again, Some(&applied)).as_deref(), Some("creator"));
        assert_eq!(last_manager(&before, None).as_deref(), Some("creator"));
        assert_eq!(last_manager(&applied, Some(&applied)).as_deref(), Some("creator"), "within one second");
        assert_eq!(last_manager(&managed(&[]), None), None);
    }
}
