//! Server-side apply (upstream's `applyPatcher` and `managedfields.FieldManager`): merges a configuration into an object, or
//! creates the object.

use std::borrow::Cow;

use portico_machinery::status::Reason;
use portico_machinery::{Object, Status};
use portico_schema::decode::{DecodeError, warnings};

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::attempts::{MAX_WRITE_ATTEMPTS, too_many_changes};
use crate::create::Origin;
use crate::managed_fields::{self, ApplyRequest, FieldTracking};
use crate::options::{FieldValidation, PatchOptions};
use crate::patch::check_identity;
use crate::replace::{AttemptOutcome, ReplaceOptions, UidRule};
use crate::served_resource::ServedResource;
use crate::update::clear_zero_version;
use crate::verb_types::{Context, ObjectPart, ObjectPath, WriteResult};
use crate::verbs::Verbs;

/// Applied configuration and the duplicate keys found in it.
pub(crate) struct Configuration {
    object: Object,
    duplicates: Vec<String>,
}

impl Verbs {
    pub(crate) async fn apply(
        &self,
        context: &Context,
        served_resource: &ServedResource,
        path: ObjectPath<'_>,
        body: &[u8],
        options: &PatchOptions,
    ) -> Result<WriteResult> {
        let config = read_config(served_resource, body)?;
        let manager = managed_fields::manager_name(&options.write.field_manager, &context.user_agent);
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let current = self.current(served_resource, path, newer).await?;
            let current = current.map(|record| self.objects.recent.get_or_insert(record));
            let live = match &current {
                Some(current) => Cow::Borrowed(current.object()),
                None if path.part == ObjectPart::Main => Cow::Owned(empty_object(served_resource)),
                None => return Err(Box::new(Status::not_found(&served_resource.resource, path.name))),
            };
            let (new, warnings) =
                self.merge_applied(served_resource, path.part, &live, &config, &manager, options).await?;
            if current.is_none() && !new.uid().is_empty() {
                let message = format!(
                    "uid mismatch: the provided object specified uid {}, and no existing object was found",
                    new.uid()
                );
                return Err(Box::new(Status::conflict(&served_resource.resource, path.name, &message)));
            }
            let new = self.prepare_applied(served_resource, new, path)?;
            let attempt = match current {
                Some(current) => {
                    let replace_options = ReplaceOptions {
                        attributes: Attributes::new(context, served_resource, path, Options::Patch(options)),
                        already_admitted: false,
                        has_resource_version: false,
                        uid_rule: UidRule::Immutable,
                        tracking: FieldTracking::Done,
                        extra_ops: &[],
                    };
                    self.replace(served_resource, path, &current, new, replace_options).await
                }
                None => self.create_applied(context, served_resource, path, new, options).await,
            };
            let attempt = match attempt {
                Ok(attempt) => attempt,
                Err(status) => return Err(status.with_warnings(warnings)),
            };
            newer = match attempt {
                AttemptOutcome::Done(written) => return Ok(written.prepend_warnings(warnings)),
                AttemptOutcome::Retry(newer) => newer,
            };
        }
        Err(too_many_changes(&served_resource.resource, path.name))
    }

    /// Returns the typed state after the apply, and warnings about the configuration.
    pub(crate) async fn merge_applied(
        &self,
        served_resource: &ServedResource,
        part: ObjectPart<'_>,
        live: &Object,
        config: &Configuration,
        manager: &str,
        options: &PatchOptions,
    ) -> Result<(Object, Vec<String>)> {
        let apply_request = ApplyRequest {
            config: &config.object,
            manager,
            force: options.force.unwrap_or(false),
            now: self.objects.request_time().now,
        };
        let new = self
            .objects
            .with_versions(served_resource, part, |versions| {
                managed_fields::apply(versions, live, apply_request)
            })
            .await?;
        let warnings = config.duplicate_key_warnings(options.write.field_validation)?;
        Ok((convert_merged(served_resource, new, &config.object)?, warnings))
    }

    /// Sets name and namespace from the path, applies defaults, and converts to the storage version.
    fn prepare_applied(
        &self,
        served_resource: &ServedResource,
        mut new: Object,
        path: ObjectPath<'_>,
    ) -> Result<Object> {
        crate::system::default_namespace(&mut new, served_resource.info.namespaced, path.namespace)?;
        check_identity(served_resource, &new, path)?;
        served_resource.check_readable(&new)?;
        served_resource.apply_defaults(&mut new, self.objects.request_time());
        clear_zero_version(&mut new);
        Ok(new)
    }

    /// Creates the object of an apply after authorizing the verb `create`. If a concurrent request creates the object first,
    /// applies to that object.
    async fn create_applied(
        &self,
        context: &Context,
        served_resource: &ServedResource,
        path: ObjectPath<'_>,
        mut new: Object,
        options: &PatchOptions,
    ) -> Result<AttemptOutcome> {
        let user = context.user.clone();
        let attributes = portico_machinery::Attributes::resource(
            user,
            "create",
            &served_resource.resource,
            path.namespace,
            path.name,
        );
        self.objects.authorizer.decide(&attributes).await.to_result(&attributes)?;
        new.remove(&["metadata", "resourceVersion"]);
        served_resource.to_version(&mut new);
        let origin = Origin { part: ObjectPart::Main, name: path.name, tracking: FieldTracking::Done };
        let created =
            self.create_tracked(context, served_resource, path.namespace, new, &options.write, origin).await;
        match created {
            Ok(written) => Ok(AttemptOutcome::Done(Box::new(written))),
            Err(status) if status.reason() == Reason::AlreadyExists => Ok(AttemptOutcome::Retry(None)),
            Err(status) => Err(status),
        }
    }
}

/// Object of the kind without content.
fn empty_object(served_resource: &ServedResource) -> Object {
    let mut object = Object::new(&served_resource.info.gvk);
    served_resource.info.schema.normalize(&mut object);
    served_resource.to_storage(&mut object);
    object
}

/// Decodes and checks the body, before any lookup.
pub(crate) fn read_config(served_resource: &ServedResource, body: &[u8]) -> Result<Configuration> {
    let info = &served_resource.info;
    let (object, typed) = info.schema.read_applied(body).map_err(|e| e.status())?;
    let refuse = |text: String| Err(Box::new(Status::bad_request(text)));
    if object.api_version() != served_resource.api_version || object.kind() != info.gvk.kind {
        return refuse(format!("invalid object type: {}", managed_fields::type_of(&object)));
    }
    if object.at(&["metadata", "managedFields"]).is_present() {
        return refuse("metadata.managedFields must be nil".to_owned());
    }
    info.schema.check_applied(&object).map_err(|misfits| {
        managed_fields::mismatch_status("failed to create typed patch object", &object, &misfits)
    })?;
    let duplicates = typed.strict.into_iter().filter(|text| text.starts_with("yaml: ")).collect();
    Ok(Configuration { object, duplicates })
}

impl Configuration {
    /// Returns warnings for duplicate keys, or refuses them.
    fn duplicate_key_warnings(&self, validation: FieldValidation) -> Result<Vec<String>> {
        match validation {
            FieldValidation::Ignore => Ok(Vec::new()),
            FieldValidation::Warn => Ok(warnings(self.duplicates.clone())),
            FieldValidation::Strict if self.duplicates.is_empty() => Ok(Vec::new()),
            FieldValidation::Strict => Err(Box::new(Status::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: {}",
                self.duplicates.join(", ")
            )))),
        }
    }
}

/// Converts the merged object to the types of its kind.
fn convert_merged(served_resource: &ServedResource, merged: Object, config: &Object) -> Result<Object> {
    match served_resource.info.schema.convert(merged, &served_resource.info.gvk) {
        Ok(decoded) => Ok(decoded.object),
        Err(DecodeError::Unconvertible(reason)) => Err(unconvertible(config, &reason)),
        Err(error) => Err(Box::new(error.status())),
    }
}

/// Status 500 with upstream's message for a value that its schema accepted and its types do not.
fn unconvertible(config: &Object, reason: &str) -> Box<Status> {
    let (namespace, name, ty) = (config.namespace(), config.name(), managed_fields::type_of(config));
    Box::new(Status::failure(
        Reason::Unknown,
        format!(
            "failed to convert new object ({namespace}/{name}; {ty}) to proper version: \
             unable to convert unstructured object to {ty}: {reason}"
        ),
    ))
}
