//! Create (upstream's `Store.Create` and `rest.BeforeCreate`).

use portico_machinery::status::Reason;
use portico_machinery::{GroupVersion, Object, Status};
use portico_store::{Key, Operation, Record, Txn, TxnError, Value};

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::attempts::{MAX_WRITE_ATTEMPTS, too_busy};
use crate::custom::CustomValidation;
use crate::hooks::{TxnContext, is_about_other_object};
use crate::managed_fields::{self, FieldTracking, manager_name};
use crate::options::CreateOptions;
use crate::served_resource::ServedResource;
use crate::stored_object::{self, StoredObject};
use crate::strategy::RequestTime;
use crate::verb_types::{Context, ObjectPart, ObjectPath, WriteResult};
use crate::verbs::Verbs;
use crate::{disabled_fields, encoding, failure, system};
use portico_validation::pod_spec::allow_privileges;
use portico_validation::{self as validation, Errors, MetaRules};

/// Origin of an object to create.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// Part that the request writes: for some kinds a write of the status creates a missing object.
    pub(crate) part: ObjectPart<'a>,
    /// Name in the path of the request; empty for a POST.
    pub(crate) name: &'a str,
    /// Field manager that becomes the owner of the fields.
    pub(crate) tracking: FieldTracking<'a>,
}

/// Attempts to find a free generated name.
///
/// Limit (Requests): 409.
const NAME_ATTEMPTS: usize = 8;

impl Verbs {
    pub(crate) async fn create(
        &self,
        context: &Context,
        served_resource: &ServedResource,
        namespace: &str,
        object: Object,
        options: &CreateOptions,
    ) -> Result<WriteResult> {
        served_resource.require_verb("create")?;
        let manager = manager_name(&options.field_manager, &context.user_agent);
        let origin = Origin { part: ObjectPart::Main, name: "", tracking: FieldTracking::Manager(&manager) };
        self.create_tracked(context, served_resource, namespace, object, options, origin).await
    }

    pub(crate) async fn create_tracked(
        &self,
        context: &Context,
        served_resource: &ServedResource,
        namespace: &str,
        mut object: Object,
        options: &CreateOptions,
        origin: Origin<'_>,
    ) -> Result<WriteResult> {
        let request_time = self.objects.request_time();
        system::default_namespace(&mut object, served_resource.info.namespaced, namespace)?;
        self.objects.check_definition(served_resource, &object)?;
        self.objects.check_schema(served_resource)?;
        self.admit_into_namespace(served_resource, &object, options.dry_run).await?;
        served_resource.check_readable(&object)?;
        served_resource.apply_defaults(&mut object, request_time);
        let duplicate_owners = system::dedup_owners(&mut object, "create");
        system::clear_create(&mut object);
        if let FieldTracking::Manager(manager) = origin.tracking {
            self.objects
                .with_versions(served_resource, origin.part, |versions| {
                    managed_fields::track(
                        versions,
                        &Object::default(),
                        &mut object,
                        manager,
                        request_time.now,
                    );
                })
                .await;
        }
        let name = object.name().to_owned();
        let path = ObjectPath { part: origin.part, namespace, name: &name };
        let attributes = Attributes::new(context, served_resource, path, Options::Create(options));
        let mut first = Vec::from_iter(duplicate_owners);
        match self.admit_mutate(attributes, Some(&mut object), None).await {
            Ok(warnings) => first.extend(warnings),
            Err(status) => return Err(status.with_warnings(first)),
        }
        system::default_namespace(&mut object, served_resource.info.namespaced, namespace)?;
        let guarded =
            self.hooks.check_guard(&self.objects, context, served_resource, origin.name, &object, None);
        if let Err(status) = guarded.await {
            return Err(status.with_warnings(first));
        }
        served_resource.strategies.main.set_requester(&mut object, &context.user);
        system::fill_create(&mut object, request_time.now);
        let prefixed = !object.generate_name().is_empty();
        let created = if prefixed && object.name().is_empty() {
            self.create_generated(attributes, object, options, request_time).await
        } else {
            self.create_named(attributes, object, options, request_time).await
        };
        match created {
            Ok(written) => Ok(written.prepend_warnings(first)),
            Err(status) if prefixed => Err(with_prefix_hint(status).with_warnings(first)),
            Err(status) => Err(status.with_warnings(first)),
        }
    }

    async fn create_generated(
        &self,
        attributes: Attributes<'_>,
        object: Object,
        options: &CreateOptions,
        request_time: RequestTime,
    ) -> Result<WriteResult> {
        let served_resource = attributes.served_resource;
        let mut last = None;
        for _ in 0..NAME_ATTEMPTS {
            let mut candidate = object.clone();
            system::generate_name(&mut candidate);
            match self.create_named(attributes, candidate, options, request_time).await {
                Err(status) if status.reason() == Reason::AlreadyExists => last = Some(status),
                other => return other,
            }
        }
        Err(last.unwrap_or_else(|| Box::new(Status::already_exists(&served_resource.resource, ""))))
    }

    async fn create_named(
        &self,
        attributes: Attributes<'_>,
        mut object: Object,
        options: &CreateOptions,
        request_time: RequestTime,
    ) -> Result<WriteResult> {
        let served_resource = attributes.served_resource;
        let name = object.name().to_owned();
        for _ in 0..MAX_WRITE_ATTEMPTS {
            // Retry: an object written in the same transaction may be changed first by a concurrent writer.
            let is_single_attempt = self.hooks.transaction(served_resource).is_none();
            let attempt = if is_single_attempt { std::mem::take(&mut object) } else { object.clone() };
            if let Some(written) = self.try_create(attributes, attempt, options, request_time).await? {
                return Ok(written);
            }
        }
        Err(too_busy(&served_resource.resource, &name))
    }

    /// Makes one attempt. Returns `None` if another object of the transaction was changed by a concurrent writer.
    async fn try_create(
        &self,
        attributes: Attributes<'_>,
        mut object: Object,
        options: &CreateOptions,
        request_time: RequestTime,
    ) -> Result<Option<WriteResult>> {
        let served_resource = attributes.served_resource;
        let context = TxnContext {
            objects: &self.objects,
            served_resource,
            part: attributes.part,
            old: None,
            dry_run: options.dry_run,
        };
        let extra_ops = self.hooks.before_write(context, &mut object).await?;
        let status_dropped = prepare(served_resource, &mut object, request_time);
        // Validate in canonical form, in which empty and absent fields are equal.
        served_resource.stored_info().schema.normalize(&mut object);
        self.check_valid(served_resource, &object, validate_new(served_resource, &object))?;
        let mut warnings = served_resource.warnings(ObjectPart::Main, &object, None);
        let new = ValidObject { object, extra_ops, status_dropped };
        match self.admit_and_commit(attributes, new, options, &mut warnings).await {
            Ok(stored) => Ok(stored.map(|stored| WriteResult { stored, created: true, warnings })),
            Err(status) => Err(status.with_warnings(warnings)),
        }
    }

    /// Runs validating admission and stores the object. Returns `None` if another object of the transaction was changed by a
    /// concurrent writer.
    async fn admit_and_commit(
        &self,
        attributes: Attributes<'_>,
        new: ValidObject,
        options: &CreateOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Option<StoredObject>> {
        let served_resource = attributes.served_resource;
        let ValidObject { mut object, extra_ops, status_dropped } = new;
        if served_resource.strategies.main.canonicalize(&mut object) {
            served_resource.stored_info().schema.normalize(&mut object);
        }
        warnings.extend(self.admit(attributes, self.write(attributes, &object, None), false).await?);
        if status_dropped {
            served_resource.default_missing_parts(&mut object);
        }
        let key = encoding::key(served_resource, &object);
        let revision = system::take_revision(&mut object);
        let value = self.objects.encode_for_storage(served_resource, &mut object).await?;
        if options.dry_run {
            self.check_quota(attributes, self.write(attributes, &object, None)).await?;
            return self.dry_run_create(served_resource, key, value, revision).await.map(Some);
        }
        system::refuse_revision(revision)?;
        let mut txn = Txn::create(key.clone(), value);
        txn.operations.extend(extra_ops);
        self.commit_create(attributes, &key, txn, object).await
    }

    async fn commit_create(
        &self,
        attributes: Attributes<'_>,
        key: &Key,
        txn: Txn,
        object: Object,
    ) -> Result<Option<StoredObject>> {
        let served_resource = attributes.served_resource;
        match self.commit_write(attributes, self.write(attributes, &object, None), txn).await? {
            Ok(record) => self.objects.committed_object(served_resource, record, object).await.map(Some),
            Err(error) if is_about_other_object(&error, key) => Ok(None),
            Err(TxnError::Exists { current, .. }) => {
                Err(already_exists(served_resource, key.name(), &current))
            }
            Err(error) => Err(failure::from_txn_error(error, &served_resource.resource, key.name())),
        }
    }

    /// Returns status 422 if there are errors other than those that `--allow-privileged` permits.
    pub(crate) fn check_valid(
        &self,
        served_resource: &ServedResource,
        object: &Object,
        mut errors: Errors,
    ) -> Result<()> {
        if self.objects.settings.allow_privileged {
            allow_privileges(&mut errors);
        }
        if errors.is_empty() {
            return Ok(());
        }
        let kind = match (&served_resource.custom, object.api_version().parse::<GroupVersion>()) {
            // The kind in the body may be the invalid part.
            (Some(_), Ok(version)) => version.kind(object.kind()).group_kind(),
            _ => served_resource.stored_info().group_kind(),
        };
        Err(Box::new(Status::invalid(&kind, object.name(), &errors)))
    }

    /// Result of a dry run: the object at the revision in the request, as upstream returns it.
    async fn dry_run_create(
        &self,
        served_resource: &ServedResource,
        key: Key,
        value: Value,
        revision: i64,
    ) -> Result<StoredObject> {
        if let Some(current) = self.objects.read(served_resource, key.namespace(), key.name()).await? {
            return Err(already_exists(served_resource, key.name(), &current));
        }
        self.objects.uncommitted_object(served_resource, Record { key, revision, value }).await
    }
}

/// New object that passed validation.
struct ValidObject {
    object: Object,
    /// Operations on other objects in the same transaction.
    extra_ops: Vec<Operation>,
    /// True if a status in the request was dropped.
    status_dropped: bool,
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
fn prepare(served_resource: &ServedResource, object: &mut Object, request_time: RequestTime) -> bool {
    let mut dropped = false;
    if let Some(status) = served_resource.info.status.as_ref().filter(|s| !s.kept_on_create) {
        for field in &status.owned_fields {
            dropped |= object.remove(&[field]).is_some();
        }
    }
    disabled_fields::drop_disabled(&served_resource.disabled, object, None);
    served_resource.strategies.main.prepare_create(object, request_time);
    if served_resource.info.generation.is_managed() {
        object.set(&["metadata", "generation"], 1);
    }
    dropped
}

fn validate_new(served_resource: &ServedResource, object: &Object) -> Errors {
    if served_resource.custom.is_some() {
        return CustomValidation { served_resource, part: ObjectPart::Main, old: None }
            .validate(object)
            .errors;
    }
    let mut errors = Vec::new();
    validation::validate_create(object, MetaRules::from_kind(&served_resource.info), &mut errors);
    errors.extend(served_resource.stored_info().schema.validate(object));
    served_resource.strategies.main.validate_with_kind(
        served_resource.stored_info(),
        object,
        None,
        &mut errors,
    );
    errors
}

/// Status 409; the message mentions a deletion in progress of the existing object.
fn already_exists(served_resource: &ServedResource, name: &str, current: &Record) -> Box<Status> {
    let mut status = Status::already_exists(&served_resource.resource, name);
    if stored_object::decode(current).deletion_timestamp().is_some() {
        status.message.insert_str(0, "object is being deleted: ");
    }
    Box::new(status)
}
