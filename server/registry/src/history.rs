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
use portico_schema::managed::{Managed, Manager};
use portico_store::{Key, ListAt, PastQuery, PastState, PastStates, Record, Scope, ask_once};
use serde::Deserialize;

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::create::Origin;
use crate::failure;
use crate::long_work::MAX_INLINE_BYTES;
use crate::managed_fields::Tracked;
use crate::options::UpdateOptions;
use crate::registry::Registry;
use crate::replace::{Attempt, Terms, UidRule};
use crate::served::ServedResource;
use crate::typed::{Context, Part, Place, Written};

/// Maximum number of states that are searched for the last one before a deletion began.
const MAX_LOOKED_AT: usize = 1_000;
/// Number of states that the search reads at a time.
const LOOKED_AT_ONCE: usize = 50;

/// Metadata fields of a past state that the system sets.
const OF_THE_SYSTEM: [&str; 7] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
];

/// State of an object in the version of the request.
pub struct Past {
    /// State as stored.
    pub state: PastState,
    /// Decoded object, or the reason why it cannot be shown.
    pub object: Result<Object, String>,
}

/// States of an object.
pub struct PastObject {
    /// States, newest first.
    pub states: Vec<Past>,
    /// True if older states exist.
    pub more: bool,
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
pub struct Restoration {
    /// Revision of the state; `None` selects the last state of a deleted object.
    pub revision: Option<i64>,
    /// Lowest revision that may be restored; 0 allows all stored states.
    pub since: i64,
    /// True if the object exists according to the authorization of the caller (update instead of create).
    pub is_there: bool,
    /// Runs all steps except the write.
    pub dry_run: bool,
}

/// Result of a restoration.
pub struct Restored {
    /// Result of the write.
    pub written: Written,
    /// Revision of the restored state.
    pub revision: i64,
}

/// Owner reference in metadata.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner {
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
    pub async fn past<T: Send + 'static>(
        &self,
        served: &Arc<ServedResource>,
        place: (&str, &str),
        range: PastRange,
        read: impl FnOnce(PastObject) -> T + Send + 'static,
    ) -> Result<T> {
        let found = self.find_past(served, place, range).await?;
        let is_large = is_large(&found.states);
        let (registry, served) = (self.clone(), Arc::clone(served));
        let work = async move { read(registry.decode_past(&served, found, range.since).await) };
        self.objects().compute(is_large, spans::current().around(ask_once(work))).await
    }

    /// Decodes the past states of an object on this thread.
    async fn past_here(
        &self,
        served: &ServedResource,
        place: (&str, &str),
        range: PastRange,
    ) -> Result<PastObject> {
        let found = self.find_past(served, place, range).await?;
        Ok(self.decode_past(served, found, range.since).await)
    }

    /// Reads the past states of an object from the store.
    async fn find_past(
        &self,
        served: &ServedResource,
        (namespace, name): (&str, &str),
        range: PastRange,
    ) -> Result<PastStates> {
        let PastRange { since, before, limit } = range;
        let query = PastQuery { key: Key::new(&served.storage, namespace, name), before, limit };
        let mut found = self.store().past(query).await.map_err(|error| failure::of_read(error, 0))?;
        if let Some(end) = found.states.iter().position(|state| state.revision() < since) {
            found.states.truncate(end);
            found.more = false;
        }
        Ok(found)
    }

    async fn decode_past(&self, served: &ServedResource, found: PastStates, since: i64) -> PastObject {
        let records = found.states.iter().filter_map(|state| state.state.as_ref().ok().cloned());
        let mut shown = self.past_objects(served, records.collect()).await.into_iter();
        let states = found.states.into_iter().map(|state| {
            let object = match &state.state {
                Ok(_) => shown.next().unwrap_or_else(|| Err("the state was not converted".to_owned())),
                Err(object) => Err(object.reason().to_owned()),
            };
            Past { state, object }
        });
        PastObject {
            states: states.collect(),
            more: found.more,
            complete_from: found.complete_from.max(since),
        }
    }

    /// Converts past states to the version of the request by one review. If it fails, sends one review
    /// for each state, concurrently.
    async fn past_objects(
        &self,
        served: &ServedResource,
        records: Vec<Arc<Record>>,
    ) -> Vec<Result<Object, String>> {
        if let Ok(all) = self.objects().incoming_all(served, records.clone()).await {
            return all.iter().map(|record| Ok(shown(served, record))).collect();
        }
        let each = records.into_iter().map(|record| async {
            let record = self.objects().incoming(served, record).await;
            record.map(|record| shown(served, &record)).map_err(|status| status.message.clone())
        });
        join_all(each).await
    }

    /// Lists the objects at a revision after a key, up to a limit; with a name only that object.
    ///
    /// # Errors
    /// Status 410 if the revision is compacted, 504 if it has not been reached.
    pub async fn list_past(
        &self,
        served: &ServedResource,
        (namespace, name): (&str, &str),
        revision: i64,
        (after, limit): (Option<String>, usize),
    ) -> Result<PastList> {
        let only = (!name.is_empty()).then(|| Key::new(&served.storage, namespace, name));
        let after = after.or_else(|| only.as_ref().and_then(|key| path_before(key.path())));
        let scope = match namespace {
            "" => Scope::all(&served.storage),
            namespace => Scope::namespace(&served.storage, namespace),
        };
        let query = ListAt { scope, revision, after, limit: Some(limit), counted: false };
        let page = self.store().list_past(query).await;
        let mut page = page.map_err(|error| failure::of_read(error, revision))?;
        let mut next = page.records.last().map(|record| record.key.path().to_owned());
        if let Some(only) = &only {
            page.records.retain(|record| record.key == *only);
            page.unreadable.retain(|object| object.has_key() && object.key() == only);
            next = next.filter(|last| **last < *only.path());
        }
        let mut objects = Vec::with_capacity(page.records.len());
        for record in self.objects().incoming_all(served, page.records).await? {
            objects.push(shown(served, &record));
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
        served: &Arc<ServedResource>,
        (namespace, name): (&str, &str),
        wanted: &Restoration,
    ) -> Result<Restored> {
        let (registry, context, served) = (self.clone(), context.clone(), Arc::clone(served));
        let (namespace, name, wanted) = (namespace.to_owned(), name.to_owned(), wanted.clone());
        let work = async move {
            let place = Place { part: Part::Main, namespace: &namespace, name: &name };
            registry.restore_here(&context, &served, place, &wanted).await
        };
        self.objects().compute(true, spans::current().around(ask_once(work))).await?
    }

    /// Restores a state on this thread.
    async fn restore_here(
        &self,
        context: &Context,
        served: &ServedResource,
        place: Place<'_>,
        wanted: &Restoration,
    ) -> Result<Restored> {
        let current = self.store().revision();
        if let Some(future) = wanted.revision.filter(|revision| *revision > current) {
            return Err(Box::new(failure::too_large_version(future, current)));
        }
        let (revision, mut object) = self.state_to_restore(served, place, wanted).await?;
        for field in OF_THE_SYSTEM {
            object.remove(&["metadata", field]);
        }
        let current = self.objects().read(served, place.namespace, place.name).await?;
        let options = UpdateOptions { dry_run: wanted.dry_run, ..UpdateOptions::default() };
        let written = match (current, wanted.is_there) {
            (Some(current), true) => {
                self.restore_over(context, served, place, (object, current), &options).await?
            }
            (None, false) => self.bring_back(context, served, place, object, &options).await?,
            _ => return Err(Box::new(Status::conflict(&served.resource, place.name, failure::MODIFIED))),
        };
        Ok(Restored { written, revision })
    }

    /// Finds the state of the requested revision, or for a deleted object the last state before its deletion began.
    async fn state_to_restore(
        &self,
        served: &ServedResource,
        place: Place<'_>,
        wanted: &Restoration,
    ) -> Result<(i64, Object)> {
        let nothing = |what: &str| {
            let mut status = Status::not_found(&served.resource, place.name);
            status.message = format!("no state of {} {:?} {what} is kept", served.resource, place.name);
            Box::new(status)
        };
        let mut before = wanted.revision.map(|revision| revision.saturating_add(1));
        let mut looked_at = 0;
        while looked_at < MAX_LOOKED_AT {
            let range = PastRange { since: wanted.since, before, limit: LOOKED_AT_ONCE };
            let past = self.past_here(served, (place.namespace, place.name), range).await?;
            looked_at += past.states.len();
            before = past.states.last().map(|past| past.state.revision());
            for past in past.states {
                let revision = past.state.revision();
                match past.object {
                    Ok(object) if object.deletion_timestamp().is_none() => return Ok((revision, object)),
                    Ok(_) => {}
                    Err(why) => {
                        return Err(Box::new(Status::internal(format!("revision {revision}: {why}"))));
                    }
                }
            }
            if !past.more {
                break;
            }
        }
        Err(match wanted.revision {
            Some(revision) => nothing(&format!("of revision {revision}")),
            None => nothing("from before its deletion"),
        })
    }

    /// Updates an existing object to a past state; its identity, finalizers and owners stay.
    async fn restore_over(
        &self,
        context: &Context,
        served: &ServedResource,
        place: Place<'_>,
        (mut object, current): (Object, Arc<Record>),
        options: &UpdateOptions,
    ) -> Result<Written> {
        let current = self.objects().recent.stored(current);
        for field in ["uid", "resourceVersion", "finalizers", "ownerReferences"] {
            object.copy_from(current.object(), &["metadata", field]);
        }
        served.complete(&mut object, self.objects().moment());
        give_back_fields(&mut object, current.object());
        let terms = Terms {
            attributes: Attributes::new(context, served, place, Options::Update(options)),
            admitted: false,
            insists: true,
            uid: UidRule::Precondition,
            tracked: Tracked::Already,
            others: &[],
        };
        match self.verbs().replace(served, place, &current, object, terms).await? {
            Attempt::Done(written) => Ok(*written),
            Attempt::Again(_) => {
                Err(Box::new(Status::conflict(&served.resource, place.name, failure::MODIFIED)))
            }
        }
    }

    /// Creates a deleted object again.
    async fn bring_back(
        &self,
        context: &Context,
        served: &ServedResource,
        place: Place<'_>,
        mut object: Object,
        options: &UpdateOptions,
    ) -> Result<Written> {
        served.require("create")?;
        let warnings = self.drop_gone_owners(&mut object, place.namespace).await?;
        give_back_fields(&mut object, &Object::default());
        let origin = Origin { part: Part::Main, name: place.name, tracked: Tracked::Already };
        let verbs = self.verbs();
        let written = verbs.create_tracked(context, served, place.namespace, object, options, origin).await?;
        Ok(written.with_first(warnings))
    }

    /// Removes owners that no longer exist: with only such owners, the garbage collector would delete the object immediately.
    async fn drop_gone_owners(&self, object: &mut Object, namespace: &str) -> Result<Vec<String>> {
        const OWNERS: [&str; 2] = ["metadata", "ownerReferences"];
        let owners: Vec<Owner> = object.decode(&OWNERS).unwrap_or_default();
        let (mut gone, mut warnings) = (Vec::new(), Vec::new());
        for (at, owner) in owners.iter().enumerate() {
            if self.is_gone(owner, namespace).await? {
                gone.push(at);
                warnings.push(format!(
                    "the owner {} {} does not exist, owner reference removed",
                    owner.kind, owner.name
                ));
            }
        }
        let mut at = 0;
        let mut left = Vec::new();
        object.edit_each(&OWNERS, |owner| {
            if !gone.contains(&at) {
                left.push(owner.to_node());
            }
            at += 1;
        });
        match left.is_empty() {
            true => drop(object.remove(&OWNERS)),
            false => object.set(&OWNERS, left),
        }
        Ok(warnings)
    }

    /// True if an owner is known not to exist. Owners of kinds that this server does not store may exist.
    async fn is_gone(&self, owner: &Owner, namespace: &str) -> Result<bool> {
        let Ok(version) = owner.api_version.parse::<portico_machinery::GroupVersion>() else {
            return Ok(true);
        };
        let kind: GroupVersionKind = version.kind(&owner.kind);
        let Some(served) = self.objects().by_kind(&kind) else { return Ok(false) };
        let namespace = if served.info.namespaced { namespace } else { "" };
        let found = self.objects().read(&served, namespace, &owner.name).await?;
        Ok(found.is_none_or(|record| record.value.uid() != owner.uid))
    }
}

/// True if decoding these states takes longer than a serving thread may be blocked.
fn is_large(states: &[PastState]) -> bool {
    let records = states.iter().filter_map(|state| state.state.as_ref().ok());
    records.map(|record| record.value.json().len()).sum::<usize>() > MAX_INLINE_BYTES
}

/// Decodes a stored object in the version of the request.
fn shown(served: &ServedResource, record: &Record) -> Object {
    let mut object = crate::stored::decode(record);
    served.to_version(&mut object);
    object
}

/// Path shortly before another one, so that few others lie in between; `None` if no path precedes it.
fn path_before(path: &str) -> Option<String> {
    let last = path.chars().next_back()?;
    let before = char::from_u32(u32::from(last).checked_sub(1)?)?;
    Some(format!("{}{before}{}", path.strip_suffix(last)?, char::MAX))
}

/// Restores the managers of the object's fields. Subresources keep their current content, hence also their current managers.
fn give_back_fields(object: &mut Object, current: &Object) {
    let mut managed = Managed::read(object).unwrap_or_default();
    let now = Managed::read(current).unwrap_or_default();
    managed.owners.retain(|manager, _| manager.subresource.is_empty());
    managed.times.retain(|manager, _| manager.subresource.is_empty());
    managed.further.clear();
    let of_subresources = |(manager, _): &(_, _)| is_of_subresource(manager);
    managed.owners.extend(now.owners.into_iter().filter(of_subresources));
    managed.times.extend(now.times.into_iter().filter(|(manager, _)| is_of_subresource(manager)));
    managed.write(object);
}

fn is_of_subresource(manager: &Manager) -> bool {
    !manager.subresource.is_empty()
}

/// Time at which a state was written, in Unix seconds: the latest time in its managedFields.
#[must_use]
pub fn last_change(object: &Object) -> Option<i64> {
    let managed = Managed::read(object).ok()?;
    time::parse(managed.times.values().max()?).map(|at| at.as_second())
}

/// Manager that wrote a state, according to its managedFields and those of the state before: of the managers whose fields or
/// time changed, the one with the latest time. An apply that changes only ownership has no time (`managedFieldsUpdater.Apply`).
/// If nothing differs (several writes in one second), the manager with the latest time overall.
#[must_use]
pub fn last_manager(object: &Object, before: Option<&Object>) -> Option<String> {
    let managed = Managed::read(object).ok()?;
    let before = before.and_then(|before| Managed::read(before).ok()).unwrap_or_default();
    let has_gained = |manager: &Manager| {
        let Some(owned) = managed.owners.get(manager) else { return false };
        let mut gained = owned.set.clone();
        if let Some(before) = before.owners.get(manager) {
            gained.subtract(&before.set);
        }
        !gained.is_empty()
    };
    let order = |manager: &&Manager| (managed.times.get(*manager), has_gained(manager));
    let differs =
        |manager: &&Manager| has_gained(manager) || managed.times.get(*manager) != before.times.get(*manager);
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
    fn the_manager_of_a_state_is_the_one_whose_fields_or_time_are_new() {
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
