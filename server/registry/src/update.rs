//! Update of an object or a subresource (upstream's `Store.Update` and `rest.BeforeUpdate`), for PUT and PATCH.

use std::sync::Arc;

use portico_machinery::gvk::GroupKind;
use portico_machinery::{Object, Status, field};
use portico_schema::same_content;
use portico_schema::structural::rules::Findings;
use portico_store::{Record, Txn, TxnError};

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::attempts::{MAX_WRITE_ATTEMPTS, Newer, too_many_changes};
use crate::custom::Validation;
use crate::failure::{self, MODIFIED};
use crate::hooks::{Beginning, lost_another};
use crate::managed_fields::{self, Tracked, manager_name};
use crate::options::UpdateOptions;
use crate::served::ServedResource;
use crate::stored::Stored;
use crate::strategy::Moment;
use crate::system;
use crate::typed::{Context, Part, Place, Written};
use crate::verbs::Verbs;
use portico_validation::{self as validation, MetaRules};

const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

/// How a uid that is not the stored one is refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UidRule {
    /// As a failed precondition, 409 (PUT).
    Precondition,
    /// As an immutable field, 422 (PATCH).
    Immutable,
}

/// How an attempt is findings.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    /// What the write is, for whoever is asked about it.
    pub(crate) attributes: Attributes<'a>,
    /// Whether admission has been asked about it already, as about a view.
    pub(crate) admitted: bool,
    /// Whether a lost race is the caller's conflict, as the caller named a revision.
    pub(crate) insists: bool,
    /// How another uid is refused.
    pub(crate) uid: UidRule,
    /// Who comes to own what changes.
    pub(crate) tracked: Tracked<'a>,
}

/// What to do after one attempt.
pub(crate) enum Attempt {
    /// It is done.
    Done(Box<Written>),
    /// Somebody else was faster and the caller did not insist on a revision: the next attempt goes on from that state.
    Again(Newer),
}

impl Verbs {
    pub(crate) async fn update(
        &self,
        context: &Context,
        served: &ServedResource,
        place: Place<'_>,
        object: Object,
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
            // Who names a revision gets one attempt; who does not may have to try again with the same object.
            let insists = !new.resource_version().is_empty();
            let once = insists && self.hooks.transaction(served).is_none();
            let attempt = if once { std::mem::take(&mut new) } else { new.clone() };
            let terms = Terms {
                attributes: Attributes::new(context, served, place, Options::Update(options)),
                admitted: false,
                insists,
                uid: UidRule::Precondition,
                tracked: Tracked::By(&manager),
            };
            let current = self.objects.recent.stored(current);
            newer = match self.replace(context, served, place, &current, attempt, terms).await? {
                Attempt::Done(written) => return Ok(*written),
                Attempt::Again(newer) => newer,
            };
        }
        Err(too_many_changes(&served.resource, place.name))
    }

    /// The state that an attempt begins with: what the last one lost against, or what is there.
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
        if !served.info.allow_create_on_update || place.part != Part::Main {
            return Err(Box::new(Status::not_found(&served.resource, place.name)));
        }
        if !object.uid().is_empty() {
            let uid = object.uid();
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: ");
            return Err(Box::new(Status::conflict(&served.resource, place.name, &why)));
        }
        let question = portico_machinery::Attributes::resource(
            context.user.clone(),
            "create",
            &served.resource,
            place.namespace,
            place.name,
        );
        self.objects.authorizer.check(&question)?;
        object.remove(&["metadata", "resourceVersion"]);
        // Already defaulted and in the storage version: both are idempotent.
        served.to_version(&mut object);
        self.create(context, served, place.namespace, object, options).await
    }

    /// One attempt to put a new state (storage version, defaulted) in the place of the current one.
    pub(crate) async fn replace(
        &self,
        context: &Context,
        served: &ServedResource,
        place: Place<'_>,
        before: &Stored,
        mut new: Object,
        terms: Terms<'_>,
    ) -> Result<Attempt> {
        let (old, current) = (before.object(), before.record());
        self.objects.admit_of_schema(served)?;
        if place.part == Part::Main {
            self.hooks.guard(&self.objects, context, served, &new, Some(old)).await?;
        }
        check_version(served, &new, old)?;
        check_uid(served, &new, old, terms.uid)?;
        let duplicate_owners = system::dedup_owners(&mut new, terms.attributes.verb());
        let moment = self.objects.moment();
        if let Tracked::By(manager) = terms.tracked {
            self.objects
                .across_versions(served, place.part, |versions| {
                    managed_fields::track(versions, old, &mut new, manager, moment.now);
                })
                .await;
        }
        if !terms.admitted {
            self.admit_mutate(terms.attributes, Some(&mut new), Some(old)).await?;
        }
        let entries = new.remove(&MANAGED_FIELDS);
        let beginning = Beginning {
            objects: &self.objects,
            served,
            part: place.part,
            old: Some(old),
            dry_run: terms.attributes.is_dry_run(),
        };
        let further = self.hooks.begin(beginning, &mut new).await?;
        system::prepare_update(&mut new, old);
        prepare(served, place.part, &mut new, old, moment);
        // Whatever was prepared from the old state: who owns what was settled before.
        match entries {
            Some(entries) => new.put(&MANAGED_FIELDS, entries),
            None => drop(new.remove(&MANAGED_FIELDS)),
        }
        // Findings in canonical form, in which empty and absent are one, and which the old state has.
        served.stored_info().schema.normalise(&mut new);
        if place.part == Part::Main {
            served.strategies.main.count_changes(&mut new, old);
        }
        let findings = findings(served, place.part, &new, old);
        let mut warnings = Vec::from_iter(duplicate_owners);
        warnings.extend(findings.warnings);
        if let Err(status) = self.accept(served, &new, findings.errors) {
            return Err(status.with_warnings(warnings));
        }
        warnings.extend(served.warnings(place.part, &new, Some(old)));
        let write = self.write(terms.attributes, &new, Some(old));
        match self.admit(terms.attributes, write, terms.admitted).await {
            Ok(advice) => warnings.extend(advice),
            Err(status) => return Err(status.with_warnings(warnings)),
        }
        finish(served, place.part, &mut new, old);
        let done = |stored| Attempt::Done(Box::new(Written { stored, created: false, warnings }));
        if same_content(&new, old) && !self.objects.is_stored_otherwise(served, &current.key, &new).await? {
            return Ok(done(before.clone()));
        }
        let remove = is_finished(served, &new, old);
        let value = self.objects.outgoing(served, &mut new).await?;
        let submitted = |value| {
            self.objects
                .submitted(served, Record { key: current.key.clone(), revision: current.revision, value })
        };
        let write = self.write(terms.attributes, &new, Some(old));
        if terms.attributes.is_dry_run() {
            self.check_quota(terms.attributes, write).await?;
            return Ok(done(submitted(value).await?));
        }
        let (committed, removed) = if remove {
            // Watchers see the last state that was stored, the caller the one that it made of it.
            (self.commit(self.removal(served, current, current.value.clone()).await?).await, Some(value))
        } else {
            let mut txn = Txn::update(current.key.clone(), current.revision, value);
            txn.operations.extend(further);
            (self.commit_write(terms.attributes, write, txn).await?, None)
        };
        match committed {
            Ok(record) => Ok(done(match removed {
                Some(value) => submitted(value).await?,
                None => self.objects.committed(served, record, new).await?,
            })),
            Err(error) if lost_another(&error, &current.key) => Ok(Attempt::Again(None)),
            Err(TxnError::Conflict { current, .. }) if !terms.insists => Ok(Attempt::Again(Some(current))),
            Err(TxnError::NotFound { .. }) if !terms.insists => Ok(Attempt::Again(None)),
            Err(error) => Err(failure::of_txn(error, &served.resource, place.name)),
        }
    }
}

/// Upstream reads revision 0 as none.
pub(crate) fn forget_zero_version(object: &mut Object) {
    if object.resource_version() == "0" {
        object.remove(&["metadata", "resourceVersion"]);
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

/// Keeps what this part of the object does not own, then lets the kind prepare.
fn prepare(served: &ServedResource, part: Part<'_>, new: &mut Object, old: &Object, moment: Moment) {
    match part {
        Part::Main => {
            for field in served.info.status.iter().flat_map(|s| &s.owns) {
                new.copy_from(old, &[field]);
            }
            served.strategies.main.prepare_update(new, old, moment);
        }
        Part::Subresource("status") => {
            keep_all_but_status(served, new, old);
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
    validation::validate_update(new, old, rules, &mut errors);
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

/// The kind's last touches and the generation, which compares canonical forms: what is touched takes that form again.
fn finish(served: &ServedResource, part: Part<'_>, new: &mut Object, old: &Object) {
    if served.strategies.main.canonicalize(new) {
        served.stored_info().schema.normalise(new);
    }
    if part != Part::Subresource("status") && served.info.generation.changes(new, old) {
        new.set(&["metadata", "generation"], old.generation() + 1);
        served.stored_info().schema.normalise(new);
    }
}

/// Whether this update takes away the last thing that kept a deleting object.
fn is_finished(served: &ServedResource, new: &Object, old: &Object) -> bool {
    old.deletion_timestamp().is_some()
        && new.finalizers().is_empty()
        && old.at(&["metadata", "deletionGracePeriodSeconds"]).i64().unwrap_or(0) == 0
        && served.strategies.delete.may_be_removed(new)
}
