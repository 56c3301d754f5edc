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
use crate::managed_fields::{self, Applying, Tracked};
use crate::options::{FieldValidation, PatchOptions};
use crate::patch::check_identity;
use crate::replace::{Attempt, Terms, UidRule};
use crate::served::ServedResource;
use crate::typed::{Context, Part, Place, Written};
use crate::update::forget_zero_version;
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
        served: &ServedResource,
        place: Place<'_>,
        body: &[u8],
        options: &PatchOptions,
    ) -> Result<Written> {
        let config = read(served, body)?;
        let manager = managed_fields::manager_name(&options.write.field_manager, &context.user_agent);
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let current = self.current(served, place, newer).await?;
            let current = current.map(|record| self.objects.recent.stored(record));
            let live = match &current {
                Some(current) => Cow::Borrowed(current.object()),
                None if place.part == Part::Main => Cow::Owned(nothing(served)),
                None => return Err(Box::new(Status::not_found(&served.resource, place.name))),
            };
            let (new, warnings) =
                self.merge_applied(served, place.part, &live, &config, &manager, options).await?;
            if current.is_none() && !new.uid().is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {}, and no existing object was found",
                    new.uid()
                );
                return Err(Box::new(Status::conflict(&served.resource, place.name, &why)));
            }
            let new = self.identified(served, new, place)?;
            let attempt = match current {
                Some(current) => {
                    let terms = Terms {
                        attributes: Attributes::new(context, served, place, Options::Patch(options)),
                        admitted: false,
                        insists: false,
                        uid: UidRule::Immutable,
                        tracked: Tracked::Already,
                        others: &[],
                    };
                    self.replace(served, place, &current, new, terms).await
                }
                None => self.create_applied(context, served, place, new, options).await,
            };
            let attempt = match attempt {
                Ok(attempt) => attempt,
                Err(status) => return Err(status.with_warnings(warnings)),
            };
            newer = match attempt {
                Attempt::Done(written) => return Ok(written.with_first(warnings)),
                Attempt::Again(newer) => newer,
            };
        }
        Err(too_many_changes(&served.resource, place.name))
    }

    /// Returns the typed state after the apply, and warnings about the configuration.
    pub(crate) async fn merge_applied(
        &self,
        served: &ServedResource,
        part: Part<'_>,
        live: &Object,
        config: &Configuration,
        manager: &str,
        options: &PatchOptions,
    ) -> Result<(Object, Vec<String>)> {
        let applying = Applying {
            config: &config.object,
            manager,
            force: options.force.unwrap_or(false),
            now: self.objects.moment().now,
        };
        let new = self
            .objects
            .across_versions(served, part, |versions| managed_fields::apply(versions, live, applying))
            .await?;
        let warnings = config.strict(options.write.field_validation)?;
        Ok((typed(served, new, &config.object)?, warnings))
    }

    /// Sets name and namespace from the path, applies defaults, and converts to the storage version.
    fn identified(&self, served: &ServedResource, mut new: Object, place: Place<'_>) -> Result<Object> {
        crate::system::settle_namespace(&mut new, served.info.namespaced, place.namespace)?;
        check_identity(served, &new, place)?;
        served.check_readable(&new)?;
        served.complete(&mut new, self.objects.moment());
        forget_zero_version(&mut new);
        Ok(new)
    }

    /// Creates the object of an apply after authorizing the verb `create`. If a concurrent request creates the object first,
    /// applies to that object.
    async fn create_applied(
        &self,
        context: &Context,
        served: &ServedResource,
        place: Place<'_>,
        mut new: Object,
        options: &PatchOptions,
    ) -> Result<Attempt> {
        let user = context.user.clone();
        let question = portico_machinery::Attributes::resource(
            user,
            "create",
            &served.resource,
            place.namespace,
            place.name,
        );
        self.objects.authorizer.decide(&question).await.permit(&question)?;
        new.remove(&["metadata", "resourceVersion"]);
        served.to_version(&mut new);
        let origin = Origin { part: Part::Main, name: place.name, tracked: Tracked::Already };
        let created =
            self.create_tracked(context, served, place.namespace, new, &options.write, origin).await;
        match created {
            Ok(written) => Ok(Attempt::Done(Box::new(written))),
            Err(status) if status.reason() == Reason::AlreadyExists => Ok(Attempt::Again(None)),
            Err(status) => Err(status),
        }
    }
}

/// Object of the kind without content.
fn nothing(served: &ServedResource) -> Object {
    let mut object = Object::new(&served.info.gvk);
    served.info.schema.normalise(&mut object);
    served.to_storage(&mut object);
    object
}

/// Decodes and checks the body, before any lookup.
pub(crate) fn read(served: &ServedResource, body: &[u8]) -> Result<Configuration> {
    let info = &served.info;
    let (object, typed) = info.schema.read_applied(body).map_err(|e| e.status())?;
    let refuse = |text: String| Err(Box::new(Status::bad_request(text)));
    if object.api_version() != served.api_version || object.kind() != info.gvk.kind {
        return refuse(format!("invalid object type: {}", managed_fields::type_of(&object)));
    }
    if object.at(&["metadata", "managedFields"]).is_present() {
        return refuse("metadata.managedFields must be nil".to_owned());
    }
    info.schema
        .check_applied(&object)
        .map_err(|misfits| managed_fields::unfit("failed to create typed patch object", &object, &misfits))?;
    let duplicates = typed.strict.into_iter().filter(|text| text.starts_with("yaml: ")).collect();
    Ok(Configuration { object, duplicates })
}

impl Configuration {
    /// Returns warnings for duplicate keys, or refuses them.
    fn strict(&self, validation: FieldValidation) -> Result<Vec<String>> {
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
fn typed(served: &ServedResource, merged: Object, config: &Object) -> Result<Object> {
    match served.info.schema.convert(merged, &served.info.gvk) {
        Ok(decoded) => Ok(decoded.object),
        Err(DecodeError::Unconvertible(why)) => Err(unconvertible(config, &why)),
        Err(error) => Err(Box::new(error.status())),
    }
}

/// Status 500 with upstream's message for a value that its schema accepted and its types do not.
fn unconvertible(config: &Object, why: &str) -> Box<Status> {
    let (namespace, name, ty) = (config.namespace(), config.name(), managed_fields::type_of(config));
    Box::new(Status::failure(
        Reason::Unknown,
        format!(
            "failed to convert new object ({namespace}/{name}; {ty}) to proper version: \
             unable to convert unstructured object to {ty}: {why}"
        ),
    ))
}
