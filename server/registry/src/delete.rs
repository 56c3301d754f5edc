//! Delete (upstream's `rest.BeforeDelete` and `Store.Delete`): preconditions, finalizers, propagation and grace period;
//! removes the object or sets its deletion timestamp.

mod grace;

use std::sync::Arc;

use portico_kinds::Orphaning;
use portico_machinery::{GroupResource, Object, Status, time};
use portico_store::{Record, Txn, TxnError};

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::attempts::{MAX_WRITE_ATTEMPTS, Newer, too_many_changes};
use crate::hooks::lost_another;
use crate::options::{DeleteOptions, Preconditions, Propagation};
use crate::served::ServedResource;
use crate::stored::{self, Stored};
use crate::strategy::{Moment, OwnDelete};
use crate::typed::{Context, Deleted, Part, Place};
use crate::verbs::Verbs;
use crate::{failure, system};
use grace::Grace;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Planned change of a delete.
enum Outcome {
    /// Removes the object; for graceful kinds with the given last state.
    Remove(Option<Object>),
    Mark(Object),
    Keep,
}

/// Result of one attempt to execute the plan.
enum Carried {
    /// The delete is complete.
    Out(Deleted),
    /// A concurrent writer changed the object: check the preconditions again on the newer state.
    Lost(Newer),
}

impl Verbs {
    /// Deletes an object, or sets its deletion timestamp if finalizers or a grace period keep it.
    ///
    /// # Errors
    /// Status 404, 409 or 422.
    pub(crate) async fn delete(
        &self,
        context: &Context,
        served: &ServedResource,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted> {
        let place = Place { part: Part::Main, namespace, name };
        let attributes = Attributes::new(context, served, place, Options::Delete(options));
        self.delete_asking(served, namespace, name, options, Some(attributes)).await
    }

    /// Deletes an object without admission, which already ran for the request itself, such as an eviction.
    ///
    /// # Errors
    /// Status 404, 409 or 422.
    pub async fn delete_admitted(
        &self,
        served: &ServedResource,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted> {
        self.delete_asking(served, namespace, name, options, None).await
    }

    /// Deletes an object. With attributes, mutating and validating admission run on the current object.
    pub(crate) async fn delete_asking(
        &self,
        served: &ServedResource,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
        attributes: Option<Attributes<'_>>,
    ) -> Result<Deleted> {
        served.require("delete")?;
        if let Some(status) = served.strategies.delete.check_delete(&served.resource, name) {
            return Err(Box::new(status));
        }
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let current = match newer {
                Some(record) => self.objects.incoming(served, record).await?,
                None => self.objects.get(served, namespace, name).await?,
            };
            let found = (current.value.uid(), &*current.revision.to_string());
            check_preconditions(served, name, found, &options.preconditions)?;
            let old = stored::decode(&current);
            let warnings = match attributes {
                Some(attributes) => self.admit_delete(attributes, &old).await?,
                None => Vec::new(),
            };
            let outcome = decide(served, old, options, self.objects.moment());
            newer = match self.carry_out(served, &current, outcome, options.dry_run).await? {
                Carried::Out(deleted) => return Ok(Deleted { warnings, ..deleted }),
                Carried::Lost(newer) => newer,
            };
        }
        Err(too_many_changes(&served.resource, name))
    }

    async fn carry_out(
        &self,
        served: &ServedResource,
        current: &Arc<Record>,
        outcome: Outcome,
        dry_run: bool,
    ) -> Result<Carried> {
        let key = current.key.clone();
        let (txn, removed, pretended) = match outcome {
            Outcome::Keep => {
                return Ok(Carried::Out(Deleted::new(Stored::new(current.clone()), false)));
            }
            Outcome::Remove(None) => {
                (self.removal(served, current, current.value.clone()).await?, true, current.clone())
            }
            Outcome::Remove(Some(mut object)) => {
                served.stored_info().schema.normalise(&mut object);
                let value = self.objects.outgoing(served, &mut object).await?;
                let last = Record { key, revision: current.revision, value: value.clone() };
                (self.removal(served, current, value).await?, true, Arc::new(last))
            }
            Outcome::Mark(mut object) => {
                served.stored_info().schema.normalise(&mut object);
                let value = self.objects.outgoing(served, &mut object).await?;
                let marked = Record { key: key.clone(), revision: current.revision, value: value.clone() };
                (Txn::update(key, current.revision, value), false, Arc::new(marked))
            }
        };
        if dry_run {
            let stored = Stored::new(self.objects.incoming(served, pretended).await?);
            return Ok(Carried::Out(Deleted::new(stored, removed)));
        }
        // A removal does not depend on the schema of the definition.
        let committed =
            if removed { self.commit(txn).await } else { self.commit_checked(served, txn).await? };
        match committed {
            Ok(record) => {
                let stored = Stored::new(self.objects.incoming(served, record).await?);
                Ok(Carried::Out(Deleted::new(stored, removed)))
            }
            Err(error) if lost_another(&error, &current.key) => Ok(Carried::Lost(None)),
            Err(TxnError::Conflict { current, .. }) => Ok(Carried::Lost(Some(current))),
            Err(TxnError::NotFound { .. }) => Ok(Carried::Lost(None)),
            Err(error) => Err(failure::of_txn(error, &served.resource, current.key.name())),
        }
    }
}

/// Checks that the object still has the UID and revision in the caller's preconditions.
pub fn check_preconditions(
    served: &ServedResource,
    name: &str,
    (uid, revision): (&str, &str),
    wanted: &Preconditions,
) -> Result<()> {
    let conflict = |what: &str, wanted: &str, found: &str, happened: &str| {
        if served.strategies.delete.deletes_by_itself() {
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
            );
            return Err(Box::new(Status::conflict(&served.resource, name, &why)));
        }
        // Kind of the stored object: an Event of `events.k8s.io` is stored in the core group.
        let kind = &served.stored_info().gvk;
        let kind = GroupResource::new(&kind.group, &kind.kind);
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). The object might have been {happened}"
        );
        Err(Box::new(Status::conflict(&kind, name, &why)))
    };
    if let Some(wanted) = wanted.uid.as_deref().filter(|wanted| *wanted != uid) {
        return conflict("UID", wanted, uid, "deleted and then recreated");
    }
    if let Some(wanted) = wanted.resource_version.as_deref().filter(|wanted| *wanted != revision) {
        return conflict("ResourceVersion", wanted, revision, "modified");
    }
    Ok(())
}

fn decide(served: &ServedResource, old: Object, options: &DeleteOptions, moment: Moment) -> Outcome {
    let mut new = old.clone();
    let finalizers = wanted_finalizers(served, &old, options);
    if finalizers != old.finalizers() {
        new.set(&["metadata", "finalizers"], &finalizers);
        if finalizers.is_empty() {
            new.remove(&["metadata", "finalizers"]);
        }
    }
    match served.strategies.delete.own_delete(&new, &old, moment) {
        OwnDelete::Mark(object) => return Outcome::Mark(object),
        OwnDelete::Keep => return Outcome::Keep,
        OwnDelete::Generic => {}
    }
    if served.info.deletion.graceful {
        return gracefully(served, new, &old, options, moment);
    }
    if finalizers.is_empty() {
        return Outcome::Remove(None);
    }
    if old.deletion_timestamp().is_none() {
        new.set(&["metadata", "deletionTimestamp"], time::rfc3339(moment.now));
        new.set(&["metadata", "deletionGracePeriodSeconds"], 0);
        system::bump_generation(&mut new);
    }
    marked(new, &old)
}

// No-op updates are not stored, so that watchers receive no event.
fn marked(new: Object, old: &Object) -> Outcome {
    if new == *old { Outcome::Keep } else { Outcome::Mark(new) }
}

/// Plans the delete of a graceful kind; `new` has the final finalizers.
fn gracefully(
    served: &ServedResource,
    mut new: Object,
    old: &Object,
    options: &DeleteOptions,
    moment: Moment,
) -> Outcome {
    let held = !new.finalizers().is_empty();
    match grace::decide(old, options.grace_period_seconds, moment.now, |wanted| {
        served.strategies.delete.grace_period(old, wanted)
    }) {
        Grace::Over if held => marked(new, old),
        Grace::Over => Outcome::Remove(None),
        Grace::Pending => Outcome::Keep,
        Grace::Period { seconds, until, first } => {
            new.set(&["metadata", "deletionTimestamp"], time::rfc3339(until));
            new.set(&["metadata", "deletionGracePeriodSeconds"], seconds);
            if first {
                system::bump_generation(&mut new);
            }
            if seconds > 0 || held { Outcome::Mark(new) } else { Outcome::Remove(Some(new)) }
        }
    }
}

/// Finalizers of an object after this delete.
fn wanted_finalizers(served: &ServedResource, object: &Object, options: &DeleteOptions) -> Vec<String> {
    let has = object.finalizers();
    let default = served.info.deletion.dependents;
    let wanted = match options.wanted_propagation() {
        _ if default == Orphaning::None => None,
        Some(Propagation::Background) => None,
        Some(Propagation::Orphan) => Some(ORPHAN),
        Some(Propagation::Foreground) => Some(FOREGROUND),
        None if has.contains(&ORPHAN) => Some(ORPHAN),
        None if has.contains(&FOREGROUND) => Some(FOREGROUND),
        None if default == Orphaning::Orphan => Some(ORPHAN),
        None => None,
    };
    let others = has.iter().filter(|f| !matches!(**f, ORPHAN | FOREGROUND));
    let mut finalizers: Vec<String> = others.map(|f| (*f).to_owned()).collect();
    // Other finalizers keep their position.
    match wanted {
        Some(wanted) if has == [wanted] => vec![wanted.to_owned()],
        Some(wanted) => {
            finalizers.push(wanted.to_owned());
            finalizers
        }
        None => finalizers,
    }
}
