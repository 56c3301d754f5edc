//! Create (upstream's `Store.Create` and `rest.BeforeCreate`).

use portico_machinery::status::Reason;
use portico_machinery::{GroupVersion, Object, Status};
use portico_store::{Key, Operation, Record, Txn, TxnError, Value};

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::attempts::{MAX_WRITE_ATTEMPTS, too_busy};
use crate::custom::Validation;
use crate::hooks::{Beginning, lost_another};
use crate::managed_fields::{self, Tracked, manager_name};
use crate::options::CreateOptions;
use crate::served::ServedResource;
use crate::stored::{self, Stored};
use crate::strategy::Moment;
use crate::typed::{Context, Part, Place, Written};
use crate::verbs::Verbs;
use crate::{encoding, failure, off_fields, system};
use portico_validation::pod_spec::allow_privileges;
use portico_validation::{self as validation, Errors, MetaRules};

/// Origin of an object to create.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// Part that the request writes: for some kinds a write of the status creates a missing object.
    pub(crate) part: Part<'a>,
    /// Name in the path of the request; empty for a POST.
    pub(crate) name: &'a str,
    /// Field manager that becomes the owner of the fields.
    pub(crate) tracked: Tracked<'a>,
}

/// Attempts to find a free generated name.
///
/// Limit (Requests): 409.
const NAME_ATTEMPTS: usize = 8;

impl Verbs {
    pub(crate) async fn create(
        &self,
        context: &Context,
        served: &ServedResource,
        namespace: &str,
        object: Object,
        options: &CreateOptions,
    ) -> Result<Written> {
        served.require("create")?;
        let manager = manager_name(&options.field_manager, &context.user_agent);
        let origin = Origin { part: Part::Main, name: "", tracked: Tracked::By(&manager) };
        self.create_tracked(context, served, namespace, object, options, origin).await
    }

    pub(crate) async fn create_tracked(
        &self,
        context: &Context,
        served: &ServedResource,
        namespace: &str,
        mut object: Object,
        options: &CreateOptions,
        origin: Origin<'_>,
    ) -> Result<Written> {
        let moment = self.objects.moment();
        system::settle_namespace(&mut object, served.info.namespaced, namespace)?;
        self.objects.admit_of_definition(served, &object)?;
        self.objects.admit_of_schema(served)?;
        self.admit_into_namespace(served, &object, options.dry_run).await?;
        served.check_readable(&object)?;
        served.complete(&mut object, moment);
        let duplicate_owners = system::dedup_owners(&mut object, "create");
        system::clear_create(&mut object);
        if let Tracked::By(manager) = origin.tracked {
            self.objects
                .across_versions(served, origin.part, |versions| {
                    managed_fields::track(versions, &Object::default(), &mut object, manager, moment.now);
                })
                .await;
        }
        let name = object.name().to_owned();
        let place = Place { part: origin.part, namespace, name: &name };
        let attributes = Attributes::new(context, served, place, Options::Create(options));
        let mut first = Vec::from_iter(duplicate_owners);
        match self.admit_mutate(attributes, Some(&mut object), None).await {
            Ok(warnings) => first.extend(warnings),
            Err(status) => return Err(status.with_warnings(first)),
        }
        system::settle_namespace(&mut object, served.info.namespaced, namespace)?;
        let guarded = self.hooks.guard(&self.objects, context, served, origin.name, &object, None);
        if let Err(status) = guarded.await {
            return Err(status.with_warnings(first));
        }
        served.strategies.main.claim(&mut object, &context.user);
        system::fill_create(&mut object, moment.now);
        let prefixed = !object.generate_name().is_empty();
        let created = if prefixed && object.name().is_empty() {
            self.create_generated(attributes, object, options, moment).await
        } else {
            self.create_named(attributes, object, options, moment).await
        };
        match created {
            Ok(written) => Ok(written.with_first(first)),
            Err(status) if prefixed => Err(with_prefix_hint(status).with_warnings(first)),
            Err(status) => Err(status.with_warnings(first)),
        }
    }

    async fn create_generated(
        &self,
        attributes: Attributes<'_>,
        object: Object,
        options: &CreateOptions,
        moment: Moment,
    ) -> Result<Written> {
        let served = attributes.served;
        let mut last = None;
        for _ in 0..NAME_ATTEMPTS {
            let mut candidate = object.clone();
            system::generate_name(&mut candidate);
            match self.create_named(attributes, candidate, options, moment).await {
                Err(status) if status.reason() == Reason::AlreadyExists => last = Some(status),
                other => return other,
            }
        }
        Err(last.unwrap_or_else(|| Box::new(Status::already_exists(&served.resource, ""))))
    }

    async fn create_named(
        &self,
        attributes: Attributes<'_>,
        mut object: Object,
        options: &CreateOptions,
        moment: Moment,
    ) -> Result<Written> {
        let served = attributes.served;
        let name = object.name().to_owned();
        for _ in 0..MAX_WRITE_ATTEMPTS {
            // Retry: an object written in the same transaction may be changed first by a concurrent writer.
            let once = self.hooks.transaction(served).is_none();
            let attempt = if once { std::mem::take(&mut object) } else { object.clone() };
            if let Some(written) = self.try_create(attributes, attempt, options, moment).await? {
                return Ok(written);
            }
        }
        Err(too_busy(&served.resource, &name))
    }

    /// Makes one attempt. Returns `None` if another object of the transaction was changed by a concurrent writer.
    async fn try_create(
        &self,
        attributes: Attributes<'_>,
        mut object: Object,
        options: &CreateOptions,
        moment: Moment,
    ) -> Result<Option<Written>> {
        let served = attributes.served;
        let beginning = Beginning {
            objects: &self.objects,
            served,
            part: attributes.part,
            old: None,
            dry_run: options.dry_run,
        };
        let further = self.hooks.begin(beginning, &mut object).await?;
        let dropped = prepare(served, &mut object, moment);
        // Validate in canonical form, in which empty and absent fields are equal.
        served.stored_info().schema.normalise(&mut object);
        self.accept(served, &object, errors_of(served, &object))?;
        let mut warnings = served.warnings(Part::Main, &object, None);
        let new = ValidObject { object, further, dropped };
        match self.keep_new(attributes, new, options, &mut warnings).await {
            Ok(stored) => Ok(stored.map(|stored| Written { stored, created: true, warnings })),
            Err(status) => Err(status.with_warnings(warnings)),
        }
    }

    /// Runs validating admission and stores the object. Returns `None` if another object of the transaction was changed by a
    /// concurrent writer.
    async fn keep_new(
        &self,
        attributes: Attributes<'_>,
        new: ValidObject,
        options: &CreateOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Stored>> {
        let served = attributes.served;
        let ValidObject { mut object, further, dropped } = new;
        if served.strategies.main.canonicalize(&mut object) {
            served.stored_info().schema.normalise(&mut object);
        }
        warnings.extend(self.admit(attributes, self.write(attributes, &object, None), false).await?);
        if dropped {
            served.default_dropped(&mut object);
        }
        let key = encoding::key(served, &object);
        let revision = system::take_revision(&mut object);
        let value = self.objects.outgoing(served, &mut object).await?;
        if options.dry_run {
            self.check_quota(attributes, self.write(attributes, &object, None)).await?;
            return self.pretend_create(served, key, value, revision).await.map(Some);
        }
        system::refuse_revision(revision)?;
        let mut txn = Txn::create(key.clone(), value);
        txn.operations.extend(further);
        self.commit_create(attributes, &key, txn, object).await
    }

    async fn commit_create(
        &self,
        attributes: Attributes<'_>,
        key: &Key,
        txn: Txn,
        object: Object,
    ) -> Result<Option<Stored>> {
        let served = attributes.served;
        match self.commit_write(attributes, self.write(attributes, &object, None), txn).await? {
            Ok(record) => self.objects.committed(served, record, object).await.map(Some),
            Err(error) if lost_another(&error, key) => Ok(None),
            Err(TxnError::Exists { current, .. }) => Err(exists(served, key.name(), &current)),
            Err(error) => Err(failure::of_txn(error, &served.resource, key.name())),
        }
    }

    /// Returns status 422 if there are errors other than those that `--allow-privileged` permits.
    pub(crate) fn accept(&self, served: &ServedResource, object: &Object, mut errors: Errors) -> Result<()> {
        if self.objects.settings.allow_privileged {
            allow_privileges(&mut errors);
        }
        if errors.is_empty() {
            return Ok(());
        }
        let kind = match (&served.custom, object.api_version().parse::<GroupVersion>()) {
            // The kind in the body may be the invalid part.
            (Some(_), Ok(version)) => version.kind(object.kind()).group_kind(),
            _ => served.stored_info().group_kind(),
        };
        Err(Box::new(Status::invalid(&kind, object.name(), &errors)))
    }

    /// Result of a dry run: the object at the revision in the request, as upstream returns it.
    async fn pretend_create(
        &self,
        served: &ServedResource,
        key: Key,
        value: Value,
        revision: i64,
    ) -> Result<Stored> {
        if let Some(current) = self.objects.read(served, key.namespace(), key.name()).await? {
            return Err(exists(served, key.name(), &current));
        }
        self.objects.submitted(served, Record { key, revision, value }).await
    }
}

/// New object that passed validation.
struct ValidObject {
    object: Object,
    /// Operations on other objects in the same transaction.
    further: Vec<Operation>,
    /// True if a status in the request was dropped.
    dropped: bool,
}

/// Adds upstream's hint for objects with `generateName`, even if the client also set the name.
fn with_prefix_hint(mut status: Box<Status>) -> Box<Status> {
    if status.reason() != Reason::AlreadyExists {
        return status;
    }
    status.message.push_str(", the server was not able to generate a unique name for the object");
    Box::new(status.with_retry_after(1))
}

/// Prepares a new object for validation. Returns true if this dropped a field that only a write of the status may set.
fn prepare(served: &ServedResource, object: &mut Object, moment: Moment) -> bool {
    let mut dropped = false;
    if let Some(status) = served.info.status.as_ref().filter(|s| !s.kept_on_create) {
        for field in &status.owns {
            dropped |= object.remove(&[field]).is_some();
        }
    }
    off_fields::drop(&served.off, object, None);
    served.strategies.main.prepare_create(object, moment);
    if served.info.generation.counts() {
        object.set(&["metadata", "generation"], 1);
    }
    dropped
}

fn errors_of(served: &ServedResource, object: &Object) -> Errors {
    if served.custom.is_some() {
        return Validation { served, part: Part::Main, old: None }.validate(object).errors;
    }
    let mut errors = Vec::new();
    validation::validate_create(object, MetaRules::of(&served.info), &mut errors);
    errors.extend(served.stored_info().schema.validate(object));
    served.strategies.main.validate_with_kind(served.stored_info(), object, None, &mut errors);
    errors
}

/// Status 409; the message mentions a deletion in progress of the existing object.
fn exists(served: &ServedResource, name: &str, current: &Record) -> Box<Status> {
    let mut status = Status::already_exists(&served.resource, name);
    if stored::decode(current).deletion_timestamp().is_some() {
        status.message.insert_str(0, "object is being deleted: ");
    }
    Box::new(status)
}
