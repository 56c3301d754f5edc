//! One attempt to replace the current state of an object, shared by update, patch, apply and views (upstream's
//! `rest.BeforeUpdate` and the inner part of `Store.Update`).

use portico_machinery::gvk::GroupKind;
use portico_machinery::{Object, Status, field};
use portico_schema::same_content;
use portico_schema::structural::rules::RuleFindings;
use portico_store::{Key, Operation, Record, Txn, TxnError};
use portico_validation::{self as validation, MetaRules};

use crate::Result;
use crate::admission::Attributes;
use crate::attempts::NewerRecord;
use crate::custom::CustomValidation;
use crate::failure::{self, MODIFIED};
use crate::hooks::{TxnContext, is_about_other_object};
use crate::managed_fields::{self, FieldTracking};
use crate::preconditions::is_about_any;
use crate::served_resource::ServedResource;
use crate::stored_object::StoredObject;
use crate::strategy::RequestTime;
use crate::verb_types::{ObjectPart, ObjectPath, WriteResult};
use crate::verbs::Verbs;
use crate::{disabled_fields, system};

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
pub(crate) struct ReplaceOptions<'a> {
    /// Description of the write for admission and quotas.
    pub(crate) attributes: Attributes<'a>,
    /// True if admission has already run, as for views.
    pub(crate) already_admitted: bool,
    /// True if the caller named a resource version: a concurrent write is then a conflict and not retried.
    pub(crate) has_resource_version: bool,
    /// Error for a different UID.
    pub(crate) uid_rule: UidRule,
    /// Tracking of field ownership.
    pub(crate) tracking: FieldTracking<'a>,
    /// Operations on other objects in the same transaction. If one of them fails, the write fails with a conflict.
    pub(crate) extra_ops: &'a [Operation],
}

/// Outcome of one attempt.
pub(crate) enum AttemptOutcome {
    /// The write is complete.
    Done(Box<WriteResult>),
    /// A concurrent writer changed the object, and the caller named no resource version: retry with the newer state.
    Retry(NewerRecord),
}

/// Inputs of one attempt.
struct ReplaceAttempt<'a> {
    verbs: &'a Verbs,
    served_resource: &'a ServedResource,
    path: ObjectPath<'a>,
    current: &'a StoredObject,
    options: ReplaceOptions<'a>,
    request_time: RequestTime,
}

impl Verbs {
    /// Makes one attempt to replace the current state by a new one (storage version, with defaults).
    pub(crate) async fn replace(
        &self,
        served_resource: &ServedResource,
        path: ObjectPath<'_>,
        current: &StoredObject,
        mut new: Object,
        options: ReplaceOptions<'_>,
    ) -> Result<AttemptOutcome> {
        let request_time = self.objects.request_time();
        let replacement =
            ReplaceAttempt { verbs: self, served_resource, path, current, options, request_time };
        let mut warnings = replacement.admit(&mut new).await?;
        let extra_ops = replacement.prepare(&mut new).await?;
        match replacement.validate(&mut new, &mut warnings).await {
            Ok(()) => {}
            Err(status) => return Err(status.with_warnings(warnings)),
        }
        replacement.store(new, extra_ops, warnings).await
    }
}

impl ReplaceAttempt<'_> {
    /// Checks schema and UID, tracks field ownership, and runs mutating admission. Returns warnings for the caller.
    async fn admit(&self, new: &mut Object) -> Result<Vec<String>> {
        let (verbs, served, part) = (self.verbs, self.served_resource, self.path.part);
        let (old, attributes) = (self.current.object(), self.options.attributes);
        verbs.objects.check_schema(served)?;
        check_uid(served, new, old, self.options.uid_rule)?;
        let mut warnings = Vec::from_iter(system::dedup_owners(new, attributes.verb()));
        if let FieldTracking::Manager(manager) = self.options.tracking {
            let now = self.request_time.now;
            let track = |versions: &managed_fields::KindVersions<'_>| {
                managed_fields::track(versions, old, new, manager, now);
            };
            verbs.objects.with_versions(served, part, track).await;
        }
        if !self.options.already_admitted {
            match verbs.admit_mutate(attributes, Some(new), Some(old)).await {
                Ok(reported) => warnings.extend(reported),
                Err(status) => return Err(status.with_warnings(warnings)),
            }
        }
        match self.check_after_mutation(new).await {
            Ok(()) => Ok(warnings),
            Err(status) => Err(status.with_warnings(warnings)),
        }
    }

    /// Runs the checks that follow mutating admission in upstream: the caller's permissions and the resource version.
    async fn check_after_mutation(&self, new: &Object) -> Result<()> {
        let (verbs, served, old) = (self.verbs, self.served_resource, self.current.object());
        if self.path.part == ObjectPart::Main {
            let context = self.options.attributes.context;
            verbs.hooks.check_guard(&verbs.objects, context, served, self.path.name, new, Some(old)).await?;
        }
        check_version(served, new, old)
    }

    /// Prepares the new state and normalizes it. Returns the further operations of the transaction.
    async fn prepare(&self, new: &mut Object) -> Result<Vec<Operation>> {
        let (served_resource, part, old) = (self.served_resource, self.path.part, self.current.object());
        let entries = new.remove(&MANAGED_FIELDS);
        let objects = &self.verbs.objects;
        let dry_run = self.options.attributes.is_dry_run();
        let context = TxnContext { objects, served_resource, part, old: Some(old), dry_run };
        let extra_ops = self.verbs.hooks.before_write(context, new).await?;
        system::prepare_update(new, old);
        prepare(served_resource, part, new, old, self.request_time);
        // Preparation must not change the managed fields, which were set before.
        match entries {
            Some(entries) => new.put(&MANAGED_FIELDS, entries),
            None => drop(new.remove(&MANAGED_FIELDS)),
        }
        // Validate in canonical form, as the old state has it, in which empty and absent fields are equal.
        let generation = &served_resource.stored_info().generation;
        let before =
            generation.before_normalization(new).filter(|_| part != ObjectPart::Subresource("status"));
        served_resource.stored_info().schema.normalize(new);
        if before.is_some_and(|before| generation.lost_empty(&before, new)) {
            new.set(&["metadata", "generation"], old.generation() + 1);
        }
        if part == ObjectPart::Main {
            served_resource.strategies.main.count_changes(new, old);
        }
        Ok(extra_ops)
    }

    /// Validates the normalized object, then runs validating admission. A refusal also returns the warnings.
    async fn validate(&self, new: &mut Object, warnings: &mut Vec<String>) -> Result<()> {
        let (served, part, old) = (self.served_resource, self.path.part, self.current.object());
        let findings = validate_new_state(served, part, new, old);
        warnings.extend(findings.warnings);
        self.verbs.check_valid(served, new, findings.errors)?;
        warnings.extend(served.warnings(part, new, Some(old)));
        finish(served, part, new, old);
        let attributes = self.options.attributes;
        let write = self.verbs.write(attributes, new, Some(old));
        warnings.extend(self.verbs.admit(attributes, write, self.options.already_admitted).await?);
        Ok(())
    }

    /// Stores the new state if it differs. Removes the object if the write removes its last finalizer.
    async fn store(
        &self,
        mut new: Object,
        further: Vec<Operation>,
        warnings: Vec<String>,
    ) -> Result<AttemptOutcome> {
        let (objects, served, attributes) =
            (&self.verbs.objects, self.served_resource, self.options.attributes);
        let (old, current) = (self.current.object(), self.current.record());
        let outcome =
            |stored| AttemptOutcome::Done(Box::new(WriteResult { stored, created: false, warnings }));
        if same_content(&new, old) && !objects.needs_rewrite(served, current, &new).await? {
            return Ok(outcome(self.current.clone()));
        }
        let remove = is_removable(served, &new, old);
        let value = objects.encode_for_storage(served, &mut new).await?;
        let submitted = |value| {
            objects.uncommitted_object(
                served,
                Record { key: current.key.clone(), revision: current.revision, value },
            )
        };
        let write = self.verbs.write(attributes, &new, Some(old));
        if attributes.is_dry_run() {
            self.verbs.check_quota(attributes, write).await?;
            return Ok(outcome(submitted(value).await?));
        }
        let (committed, removed) = if remove {
            // Watchers receive the last stored state, the caller the submitted one.
            let txn = self.verbs.removal(served, current, current.value.clone()).await?;
            (self.verbs.commit(txn).await, Some(value))
        } else {
            let mut txn = Txn::update(current.key.clone(), current.revision, value);
            txn.operations.extend(further);
            txn.operations.extend_from_slice(self.options.extra_ops);
            (self.verbs.commit_write(attributes, write, txn).await?, None)
        };
        match committed {
            Ok(record) => Ok(outcome(match removed {
                Some(value) => submitted(value).await?,
                None => objects.committed_object(served, record, new).await?,
            })),
            Err(error) => self.outcome_of_failure(error),
        }
    }

    /// Outcome of a failed transaction: a retry, unless the caller named a resource version.
    fn outcome_of_failure(&self, error: TxnError) -> Result<AttemptOutcome> {
        let has_resource_version = self.options.has_resource_version;
        let others: Vec<Key> = self.options.extra_ops.iter().map(|other| other.key.clone()).collect();
        match error {
            error if is_about_any(&error, &others) => {
                Err(Box::new(Status::conflict(&self.served_resource.resource, self.path.name, MODIFIED)))
            }
            error if is_about_other_object(&error, &self.current.record().key) => {
                Ok(AttemptOutcome::Retry(None))
            }
            TxnError::Conflict { current, .. } if !has_resource_version => {
                Ok(AttemptOutcome::Retry(Some(current)))
            }
            TxnError::NotFound { .. } if !has_resource_version => Ok(AttemptOutcome::Retry(None)),
            error => Err(failure::from_txn_error(error, &self.served_resource.resource, self.path.name)),
        }
    }
}

fn check_version(served_resource: &ServedResource, new: &Object, old: &Object) -> Result<()> {
    let version = new.resource_version();
    if version.is_empty() {
        if served_resource.info.allow_unconditional_update {
            return Ok(());
        }
        let error =
            field::Error::invalid(&"metadata.resourceVersion".into(), 0, "must be specified for an update");
        let kind = GroupKind {
            group: served_resource.resource.group.clone(),
            kind: served_resource.resource.resource.clone(),
        };
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
    Err(Box::new(Status::conflict(&served_resource.resource, new.name(), MODIFIED)))
}

fn check_uid(served_resource: &ServedResource, new: &Object, old: &Object, rule: UidRule) -> Result<()> {
    if rule == UidRule::Immutable || new.uid().is_empty() || new.uid() == old.uid() {
        return Ok(());
    }
    let message =
        format!("Precondition failed: UID in precondition: {}, UID in object meta: {}", new.uid(), old.uid());
    Err(Box::new(Status::conflict(&served_resource.resource, new.name(), &message)))
}

/// Restores the fields that this part of the object does not own, then prepares the new state by the kind's strategy.
fn prepare(
    served_resource: &ServedResource,
    part: ObjectPart<'_>,
    new: &mut Object,
    old: &Object,
    request_time: RequestTime,
) {
    match part {
        ObjectPart::Main => {
            for field in served_resource.info.status.iter().flat_map(|s| &s.owned_fields) {
                new.copy_from(old, &[field]);
            }
            disabled_fields::drop_disabled(&served_resource.disabled, new, Some(old));
            served_resource.strategies.main.prepare_update(new, old, request_time);
        }
        ObjectPart::Subresource("status") => {
            keep_all_but_status(served_resource, new, old);
            disabled_fields::drop_disabled(&served_resource.disabled, new, Some(old));
            served_resource.strategies.subresources.prepare_status(new, old);
        }
        ObjectPart::Subresource(other) => {
            served_resource.strategies.subresources.prepare_subresource(other, new, old)
        }
    }
    served_resource.strategies.main.set_change_time(part, new, old, request_time);
}

fn keep_all_but_status(served_resource: &ServedResource, new: &mut Object, old: &Object) {
    let Some(rule) = &served_resource.info.status else { return };
    let mut merged = old.clone();
    for field in &rule.owned_fields {
        merged.copy_from(new, &[field]);
    }
    merged.copy_from(new, &["metadata"]);
    if served_resource.custom.is_some() && new.api_version().is_empty() {
        // Validation reports the missing version.
        merged.remove(&["apiVersion"]);
    }
    for field in &rule.kept_metadata {
        merged.copy_from(old, &["metadata", field]);
    }
    *new = merged;
}

fn validate_new_state(
    served_resource: &ServedResource,
    part: ObjectPart<'_>,
    new: &Object,
    old: &Object,
) -> RuleFindings {
    if served_resource.custom.is_some() {
        return CustomValidation { served_resource, part, old: Some(old) }.validate(new);
    }
    let mut errors = Vec::new();
    validation::validate_common_update(new, old, served_resource.info.namespaced, &mut errors);
    let rules = MetaRules::from_kind(&served_resource.info);
    if served_resource.strategies.main.compares_metadata_again(part == ObjectPart::Subresource("status")) {
        validation::validate_update(new, old, rules, &mut errors);
    }
    if part == ObjectPart::Main && served_resource.strategies.main.validates_metadata_again() {
        validation::validate_create(new, rules, &mut errors);
    }
    match part {
        ObjectPart::Main => {
            let schema = &served_resource.stored_info().schema;
            errors.extend(schema.validate(new));
            errors.extend(schema.validate_update(new, old));
            served_resource.strategies.main.validate_with_kind(
                served_resource.stored_info(),
                new,
                Some(old),
                &mut errors,
            );
        }
        ObjectPart::Subresource("status") => {
            served_resource.strategies.subresources.validate_status(new, old, &mut errors)
        }
        ObjectPart::Subresource(other) => {
            served_resource.strategies.subresources.validate_subresource(other, new, old, &mut errors)
        }
    }
    RuleFindings { errors, warnings: Vec::new() }
}

/// Canonicalizes the object by its kind and updates the generation, which compares normalized states.
fn finish(served_resource: &ServedResource, part: ObjectPart<'_>, new: &mut Object, old: &Object) {
    if served_resource.strategies.main.canonicalize(new) {
        served_resource.stored_info().schema.normalize(new);
    }
    let schema = &served_resource.stored_info().schema;
    if part != ObjectPart::Subresource("status")
        && served_resource.info.generation.is_generation_change(schema, new, old)
    {
        new.set(&["metadata", "generation"], old.generation() + 1);
        schema.normalize(new);
    }
}

/// True if this update removes the last reason to keep an object that is being deleted.
fn is_removable(served_resource: &ServedResource, new: &Object, old: &Object) -> bool {
    old.deletion_timestamp().is_some()
        && new.finalizers().is_empty()
        && old.at(&["metadata", "deletionGracePeriodSeconds"]).i64().unwrap_or(0) == 0
        && served_resource.strategies.delete.may_be_removed(new)
}
