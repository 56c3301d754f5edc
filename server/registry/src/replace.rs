//! One attempt to replace the current state of an object, shared by update, patch, apply and views (upstream's
//! `rest.BeforeUpdate` and the inner part of `Store.Update`).

use portico_machinery::gvk::GroupKind;
use portico_machinery::{Object, Status, field};
use portico_schema::same_content;
use portico_schema::structural::rules::Findings;
use portico_store::{Key, Operation, Record, Txn, TxnError};
use portico_validation::{self as validation, MetaRules};

use crate::Result;
use crate::admission::Attributes;
use crate::attempts::Newer;
use crate::custom::Validation;
use crate::failure::{self, MODIFIED};
use crate::hooks::{Beginning, lost_another};
use crate::managed_fields::{self, Tracked};
use crate::preconditions::is_about;
use crate::served::ServedResource;
use crate::stored::Stored;
use crate::strategy::Moment;
use crate::typed::{Part, Place, Written};
use crate::verbs::Verbs;
use crate::{off_fields, system};

const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

/// Error for a UID that differs from the stored one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UidRule {
    /// Failed precondition, status 409 (PUT).
    Precondition,
    /// Change of an immutable field, status 422 (PATCH).
    Immutable,
}

/// Options of a replacement: attributes, validation rules and transaction.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    /// Description of the write for admission and quotas.
    pub(crate) attributes: Attributes<'a>,
    /// True if admission has already run, as for views.
    pub(crate) admitted: bool,
    /// True if the caller named a resource version: a concurrent write is then a conflict and not retried.
    pub(crate) insists: bool,
    /// Error for a different UID.
    pub(crate) uid: UidRule,
    /// Tracking of field ownership.
    pub(crate) tracked: Tracked<'a>,
    /// Operations on other objects in the same transaction. If one of them fails, the write fails with a conflict.
    pub(crate) others: &'a [Operation],
}

/// Outcome of one attempt.
pub(crate) enum Attempt {
    /// The write is complete.
    Done(Box<Written>),
    /// A concurrent writer changed the object, and the caller named no resource version: retry with the newer state.
    Again(Newer),
}

/// Inputs of one attempt.
struct Replacement<'a> {
    verbs: &'a Verbs,
    served: &'a ServedResource,
    place: Place<'a>,
    before: &'a Stored,
    terms: Terms<'a>,
    moment: Moment,
}

impl Verbs {
    /// Makes one attempt to replace the current state by a new one (storage version, with defaults).
    pub(crate) async fn replace(
        &self,
        served: &ServedResource,
        place: Place<'_>,
        before: &Stored,
        mut new: Object,
        terms: Terms<'_>,
    ) -> Result<Attempt> {
        let moment = self.objects.moment();
        let replacement = Replacement { verbs: self, served, place, before, terms, moment };
        let mut warnings = replacement.admit(&mut new).await?;
        let further = replacement.prepare(&mut new).await?;
        match replacement.validate(&mut new, &mut warnings).await {
            Ok(()) => {}
            Err(status) => return Err(status.with_warnings(warnings)),
        }
        replacement.store(new, further, warnings).await
    }
}

impl Replacement<'_> {
    /// Checks schema and UID, tracks field ownership, and runs mutating admission. Returns warnings for the caller.
    async fn admit(&self, new: &mut Object) -> Result<Vec<String>> {
        let (verbs, served, part) = (self.verbs, self.served, self.place.part);
        let (old, attributes) = (self.before.object(), self.terms.attributes);
        verbs.objects.admit_of_schema(served)?;
        check_uid(served, new, old, self.terms.uid)?;
        let mut warnings = Vec::from_iter(system::dedup_owners(new, attributes.verb()));
        if let Tracked::By(manager) = self.terms.tracked {
            let now = self.moment.now;
            let track = |versions: &managed_fields::KindVersions<'_>| {
                managed_fields::track(versions, old, new, manager, now);
            };
            verbs.objects.across_versions(served, part, track).await;
        }
        if !self.terms.admitted {
            match verbs.admit_mutate(attributes, Some(new), Some(old)).await {
                Ok(reported) => warnings.extend(reported),
                Err(status) => return Err(status.with_warnings(warnings)),
            }
        }
        match self.check(new).await {
            Ok(()) => Ok(warnings),
            Err(status) => Err(status.with_warnings(warnings)),
        }
    }

    /// Runs the checks that follow mutating admission in upstream: the caller's permissions and the resource version.
    async fn check(&self, new: &Object) -> Result<()> {
        let (verbs, served, old) = (self.verbs, self.served, self.before.object());
        if self.place.part == Part::Main {
            let context = self.terms.attributes.context;
            verbs.hooks.guard(&verbs.objects, context, served, self.place.name, new, Some(old)).await?;
        }
        check_version(served, new, old)
    }

    /// Prepares the new state and normalizes it. Returns the further operations of the transaction.
    async fn prepare(&self, new: &mut Object) -> Result<Vec<Operation>> {
        let (served, part, old) = (self.served, self.place.part, self.before.object());
        let entries = new.remove(&MANAGED_FIELDS);
        let objects = &self.verbs.objects;
        let dry_run = self.terms.attributes.is_dry_run();
        let beginning = Beginning { objects, served, part, old: Some(old), dry_run };
        let further = self.verbs.hooks.begin(beginning, new).await?;
        system::prepare_update(new, old);
        prepare(served, part, new, old, self.moment);
        // Preparation must not change the managed fields, which were set before.
        match entries {
            Some(entries) => new.put(&MANAGED_FIELDS, entries),
            None => drop(new.remove(&MANAGED_FIELDS)),
        }
        // Validate in canonical form, as the old state has it, in which empty and absent fields are equal.
        let generation = &served.stored_info().generation;
        let before = generation.before(new).filter(|_| part != Part::Subresource("status"));
        served.stored_info().schema.normalise(new);
        if before.is_some_and(|before| generation.lost_empty(&before, new)) {
            new.set(&["metadata", "generation"], old.generation() + 1);
        }
        if part == Part::Main {
            served.strategies.main.count_changes(new, old);
        }
        Ok(further)
    }

    /// Validates the normalized object, then runs validating admission. A refusal also returns the warnings.
    async fn validate(&self, new: &mut Object, warnings: &mut Vec<String>) -> Result<()> {
        let (served, part, old) = (self.served, self.place.part, self.before.object());
        let findings = findings(served, part, new, old);
        warnings.extend(findings.warnings);
        self.verbs.accept(served, new, findings.errors)?;
        warnings.extend(served.warnings(part, new, Some(old)));
        finish(served, part, new, old);
        let attributes = self.terms.attributes;
        let write = self.verbs.write(attributes, new, Some(old));
        warnings.extend(self.verbs.admit(attributes, write, self.terms.admitted).await?);
        Ok(())
    }

    /// Stores the new state if it differs. Removes the object if the write removes its last finalizer.
    async fn store(
        &self,
        mut new: Object,
        further: Vec<Operation>,
        warnings: Vec<String>,
    ) -> Result<Attempt> {
        let (objects, served, attributes) = (&self.verbs.objects, self.served, self.terms.attributes);
        let (old, current) = (self.before.object(), self.before.record());
        let done = |stored| Attempt::Done(Box::new(Written { stored, created: false, warnings }));
        if same_content(&new, old) && !objects.is_stored_otherwise(served, current, &new).await? {
            return Ok(done(self.before.clone()));
        }
        let remove = is_finished(served, &new, old);
        let value = objects.outgoing(served, &mut new).await?;
        let submitted = |value| {
            objects.submitted(served, Record { key: current.key.clone(), revision: current.revision, value })
        };
        let write = self.verbs.write(attributes, &new, Some(old));
        if attributes.is_dry_run() {
            self.verbs.check_quota(attributes, write).await?;
            return Ok(done(submitted(value).await?));
        }
        let (committed, removed) = if remove {
            // Watchers receive the last stored state, the caller the submitted one.
            let txn = self.verbs.removal(served, current, current.value.clone()).await?;
            (self.verbs.commit(txn).await, Some(value))
        } else {
            let mut txn = Txn::update(current.key.clone(), current.revision, value);
            txn.operations.extend(further);
            txn.operations.extend_from_slice(self.terms.others);
            (self.verbs.commit_write(attributes, write, txn).await?, None)
        };
        match committed {
            Ok(record) => Ok(done(match removed {
                Some(value) => submitted(value).await?,
                None => objects.committed(served, record, new).await?,
            })),
            Err(error) => self.lost(error),
        }
    }

    /// Outcome of a failed transaction: a retry, unless the caller named a resource version.
    fn lost(&self, error: TxnError) -> Result<Attempt> {
        let insists = self.terms.insists;
        let others: Vec<Key> = self.terms.others.iter().map(|other| other.key.clone()).collect();
        match error {
            error if is_about(&error, &others) => {
                Err(Box::new(Status::conflict(&self.served.resource, self.place.name, MODIFIED)))
            }
            error if lost_another(&error, &self.before.record().key) => Ok(Attempt::Again(None)),
            TxnError::Conflict { current, .. } if !insists => Ok(Attempt::Again(Some(current))),
            TxnError::NotFound { .. } if !insists => Ok(Attempt::Again(None)),
            error => Err(failure::of_txn(error, &self.served.resource, self.place.name)),
        }
    }
}

fn check_version(served: &ServedResource, new: &Object, old: &Object) -> Result<()> {
    let version = new.resource_version();
    if version.is_empty() {
        if served.info.allow_unconditional_update {
            return Ok(());
        }
        let error =
            field::Error::invalid(&"metadata.resourceVersion".into(), 0, "must be specified for an update");
        let kind = GroupKind { group: served.resource.group.clone(), kind: served.resource.resource.clone() };
        return Err(Box::new(Status::invalid(&kind, new.name(), &[error])));
    }
    if version == old.resource_version() {
        return Ok(());
    }
    if version.parse::<u64>().is_err() {
        return Err(Box::new(Status::bad_request(format!(
            "invalid resource version {version:?}: must be a whole number"
        ))));
    }
    Err(Box::new(Status::conflict(&served.resource, new.name(), MODIFIED)))
}

fn check_uid(served: &ServedResource, new: &Object, old: &Object, rule: UidRule) -> Result<()> {
    if rule == UidRule::Immutable || new.uid().is_empty() || new.uid() == old.uid() {
        return Ok(());
    }
    let why =
        format!("Precondition failed: UID in precondition: {}, UID in object meta: {}", new.uid(), old.uid());
    Err(Box::new(Status::conflict(&served.resource, new.name(), &why)))
}

/// Restores the fields that this part of the object does not own, then prepares the new state by the kind's strategy.
fn prepare(served: &ServedResource, part: Part<'_>, new: &mut Object, old: &Object, moment: Moment) {
    match part {
        Part::Main => {
            for field in served.info.status.iter().flat_map(|s| &s.owns) {
                new.copy_from(old, &[field]);
            }
            off_fields::drop(&served.off, new, Some(old));
            served.strategies.main.prepare_update(new, old, moment);
        }
        Part::Subresource("status") => {
            keep_all_but_status(served, new, old);
            off_fields::drop(&served.off, new, Some(old));
            served.strategies.subresources.prepare_status(new, old);
        }
        Part::Subresource(other) => served.strategies.subresources.prepare_subresource(other, new, old),
    }
    served.strategies.main.stamp(part, new, old, moment);
}

fn keep_all_but_status(served: &ServedResource, new: &mut Object, old: &Object) {
    let Some(rule) = &served.info.status else { return };
    let mut kept = old.clone();
    for field in &rule.owns {
        kept.copy_from(new, &[field]);
    }
    kept.copy_from(new, &["metadata"]);
    if served.custom.is_some() && new.api_version().is_empty() {
        // Validation reports the missing version.
        kept.remove(&["apiVersion"]);
    }
    for field in &rule.keeps_metadata {
        kept.copy_from(old, &["metadata", field]);
    }
    *new = kept;
}

fn findings(served: &ServedResource, part: Part<'_>, new: &Object, old: &Object) -> Findings {
    if served.custom.is_some() {
        return Validation { served, part, old: Some(old) }.validate(new);
    }
    let mut errors = Vec::new();
    validation::validate_any_update(new, old, served.info.namespaced, &mut errors);
    let rules = MetaRules::of(&served.info);
    if served.strategies.main.compares_metadata_again(part == Part::Subresource("status")) {
        validation::validate_update(new, old, rules, &mut errors);
    }
    if part == Part::Main && served.strategies.main.validates_metadata_again() {
        validation::validate_create(new, rules, &mut errors);
    }
    match part {
        Part::Main => {
            let schema = &served.stored_info().schema;
            errors.extend(schema.validate(new));
            errors.extend(schema.validate_update(new, old));
            served.strategies.main.validate_with_kind(served.stored_info(), new, Some(old), &mut errors);
        }
        Part::Subresource("status") => served.strategies.subresources.validate_status(new, old, &mut errors),
        Part::Subresource(other) => {
            served.strategies.subresources.validate_subresource(other, new, old, &mut errors)
        }
    }
    Findings { errors, warnings: Vec::new() }
}

/// Canonicalizes the object by its kind and updates the generation, which compares normalized states.
fn finish(served: &ServedResource, part: Part<'_>, new: &mut Object, old: &Object) {
    if served.strategies.main.canonicalize(new) {
        served.stored_info().schema.normalise(new);
    }
    let schema = &served.stored_info().schema;
    if part != Part::Subresource("status") && served.info.generation.changes(schema, new, old) {
        new.set(&["metadata", "generation"], old.generation() + 1);
        schema.normalise(new);
    }
}

/// True if this update removes the last reason to keep an object that is being deleted.
fn is_finished(served: &ServedResource, new: &Object, old: &Object) -> bool {
    old.deletion_timestamp().is_some()
        && new.finalizers().is_empty()
        && old.at(&["metadata", "deletionGracePeriodSeconds"]).i64().unwrap_or(0) == 0
        && served.strategies.delete.may_be_removed(new)
}
