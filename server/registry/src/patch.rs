//! Patch (upstream's `patcher`): applied to the served version of the current object, and retried after concurrent writes.

use portico_machinery::{GroupVersion, Object, Status};
use portico_schema::{DecodeError, Decoded, merge, patch_status};

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::attempts::{MAX_WRITE_ATTEMPTS, too_many_changes};
use crate::managed_fields::{FieldTracking, manager_name};
use crate::options::{FieldValidation, PatchOptions};
use crate::replace::{AttemptOutcome, ReplaceOptions, UidRule};
use crate::scheme::{Scheme, has_current_fields};
use crate::served_resource::ServedResource;
use crate::system::default_namespace;
use crate::update::clear_zero_version;
use crate::verb_types::{Context, ObjectPath, Patch, WriteResult};
use crate::verbs::Verbs;

impl Verbs {
    /// Patches an object or a subresource; retries with the newer state after a concurrent write.
    ///
    /// # Errors
    /// Status 400, 404, 409 or 422.
    pub async fn patch(
        &self,
        context: &Context,
        served_resource: &ServedResource,
        path: ObjectPath<'_>,
        patch: &Patch,
        options: &PatchOptions,
    ) -> Result<WriteResult> {
        let manager = manager_name(&options.write.field_manager, &context.user_agent);
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let current = self.current(served_resource, path, newer).await?;
            let current =
                current.ok_or_else(|| Box::new(Status::not_found(&served_resource.resource, path.name)))?;
            let current = self.objects.recent.get_or_insert(current);
            let mut object = current.object().clone();
            served_resource.to_version(&mut object);
            let has_internal = served_resource.custom.is_none();
            let (mut new, warnings) =
                apply(&self.objects.scheme, served_resource, &object, patch, options, has_internal)?;
            default_namespace(&mut new, served_resource.info.namespaced, path.namespace)
                .and_then(|()| check_identity(served_resource, &new, path))
                .map_err(|status| status.with_warnings(warnings.clone()))?;
            if let Some(error) = served_resource.strategies.decode.conversion_error(&new) {
                return Err(Box::new(patch_status(
                    &refused_text(served_resource, &object, patch, &new),
                    &error,
                )));
            }
            served_resource.apply_defaults(&mut new, self.objects.request_time());
            clear_zero_version(&mut new);
            // A concurrent write is not a conflict for the caller: the patch is applied to the newer state, and fails there if it
            // contains a resource version.
            let replace_options = ReplaceOptions {
                attributes: Attributes::new(context, served_resource, path, Options::Patch(options)),
                already_admitted: false,
                has_resource_version: false,
                uid_rule: UidRule::Immutable,
                tracking: FieldTracking::Manager(&manager),
                extra_ops: &[],
            };
            let attempt = self.replace(served_resource, path, &current, new, replace_options).await;
            newer = match attempt.map_err(|status| status.with_warnings(warnings.clone()))? {
                AttemptOutcome::Done(written) => return Ok(written.prepend_warnings(warnings)),
                AttemptOutcome::Retry(newer) => newer,
            };
        }
        Err(too_many_changes(&served_resource.resource, path.name))
    }
}

/// Applies a patch to an object. `has_internal` is true for kinds that have an internal version upstream.
pub(crate) fn apply(
    scheme: &Scheme,
    served_resource: &ServedResource,
    current: &Object,
    patch: &Patch,
    options: &PatchOptions,
    has_internal: bool,
) -> Result<(Object, Vec<String>)> {
    let (schema, kind) = (&served_resource.info.schema, &served_resource.info.gvk);
    let merged = match patch {
        Patch::Json(bytes) => merge::json_patch(current, bytes),
        Patch::Merge(bytes) => merge::merge_patch(current, bytes),
        Patch::Strategic(bytes) => {
            schema.strategic_merge(current, bytes).map(|new| restore_type(new, current))
        }
    };
    let mut merged = merged.map_err(|e| e.status())?;
    normalize_version(served_resource, &mut merged);
    let (decoded, merged) = match patch {
        Patch::Strategic(_) => (schema.convert(merged, kind), None),
        _ if has_internal && has_lost_version(current, &merged, &kind.kind) => {
            (Ok(read_as_internal(&in_upstream_order(served_resource, current, patch, &merged))), Some(merged))
        }
        Patch::Json(_) | Patch::Merge(_) => match schema.retype(&merged, kind) {
            Ok(decoded) if decoded.strict.is_empty() => (Ok(decoded), Some(merged)),
            // Errors are reported in the order in which upstream writes the result.
            _ => (
                schema.retype(&in_upstream_order(served_resource, current, patch, &merged), kind),
                Some(merged),
            ),
        },
    };
    let shown = || refused_text(served_resource, current, patch, merged.as_ref().unwrap_or(current));
    let mut decoded = decoded
        .map_err(|e| scheme.refusal(version_error(served_resource, e), kind).patch_status(&shown()))?;
    if options.write.field_validation != FieldValidation::Ignore {
        let mut diagnostics = merge::diagnostics(patch.bytes(), matches!(patch, Patch::Json(_)));
        diagnostics
            .extend(decoded.strict.drain(..).filter(|text| !diagnostics.contains(text)).collect::<Vec<_>>());
        decoded.strict = diagnostics;
    }
    match options.write.field_validation {
        FieldValidation::Strict if decoded.strict.is_empty() => Ok((decoded.object, Vec::new())),
        FieldValidation::Strict => Err(Box::new(decoded.strict_patch_status(&shown()))),
        FieldValidation::Warn => Ok((decoded.object, decoded.strict)),
        FieldValidation::Ignore => Ok((decoded.object, Vec::new())),
    }
}

/// True if a patch removed the version of an object without changing its kind.
fn has_lost_version(current: &Object, merged: &Object, kind: &str) -> bool {
    let is_unset = |field: &str| match merged.at(&[field]) {
        at if at.is_present() => at.opt_str() == Some(""),
        _ => true,
    };
    !current.api_version().is_empty() && is_unset("apiVersion") && (is_unset("kind") || merged.kind() == kind)
}

/// Decodes an object without a version as upstream does: with the Go type of its internal version, which has none
/// of the JSON fields.
fn read_as_internal(written: &Object) -> Decoded {
    let fields = written.cursor().entries().map(|(field, _)| field);
    let unknown = fields.filter(|field| !matches!(*field, "apiVersion" | "kind"));
    let strict = unknown.map(|field| format!("unknown field {field:?}")).collect();
    Decoded { object: Object::default(), strict }
}

/// Replaces a registered but unserved version by the version of the request. Versions with different fields are refused, because
/// upstream decodes them with their own types.
fn normalize_version(served_resource: &ServedResource, merged: &mut Object) {
    let kind = &served_resource.info.gvk;
    let version = merged.api_version();
    if served_resource.custom.is_some()
        || version == served_resource.api_version
        || merged.kind() != kind.kind
    {
        return;
    }
    if version.parse().is_ok_and(|version| has_current_fields(&version, kind)) {
        merged.set(&["apiVersion"], &served_resource.api_version);
    }
}

/// Replaces the error about a version that the kind does not have: upstream reports an unknown kind, regardless of the path. A
/// custom resource has one version only.
fn version_error(served_resource: &ServedResource, error: DecodeError) -> DecodeError {
    match error {
        DecodeError::Version { found, .. } if served_resource.custom.is_none() => {
            let kind = &served_resource.info.gvk.kind;
            match found.parse::<GroupVersion>() {
                Ok(version) => DecodeError::WrongKind { found: version.kind(kind), expected: kind.clone() },
                Err(_) => DecodeError::Unconvertible(format!("unexpected GroupVersion string: {found}")),
            }
        }
        error => error,
    }
}

/// Text that a refusal contains: the patched object, or for a strategic merge patch the patch itself.
fn refused_text(
    served_resource: &ServedResource,
    current: &Object,
    patch: &Patch,
    merged: &Object,
) -> String {
    match patch {
        Patch::Strategic(bytes) => merge::printed::strategic_patch(bytes),
        Patch::Json(_) | Patch::Merge(_) => {
            merge::printed::text(&in_upstream_order(served_resource, current, patch, merged))
        }
    }
}

/// Patched object in the field order in which upstream writes it.
fn in_upstream_order(
    served_resource: &ServedResource,
    current: &Object,
    patch: &Patch,
    merged: &Object,
) -> Object {
    let custom = served_resource.info.schema.custom().is_some();
    match patch {
        Patch::Json(bytes) if !custom => merge::printed::json_patch_result(bytes, merged),
        Patch::Merge(bytes) if !custom => merge::printed::merge_patch_result(current, bytes, merged),
        _ => merge::printed::sorted_result(merged),
    }
}

/// Restores kind and apiVersion, which a strategic merge patch cannot change. Values that are not strings stay
/// and are refused later.
fn restore_type(mut new: Object, current: &Object) -> Object {
    for field in ["kind", "apiVersion"] {
        let is_other_type = new.at(&[field]).is_present() && new.at(&[field]).opt_str().is_none();
        if !is_other_type {
            new.copy_from(current, &[field]);
        }
    }
    new
}

/// Checks that the name of an object matches the path.
pub(crate) fn check_name(object: &Object, name: &str) -> Result<()> {
    match object.name() {
        same if same == name => Ok(()),
        "" => Err(Box::new(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )))),
        other => Err(Box::new(Status::bad_request(format!(
            "the name of the object ({other}) does not match the name on the URL ({name})"
        )))),
    }
}

pub(crate) fn check_identity(
    served_resource: &ServedResource,
    new: &Object,
    path: ObjectPath<'_>,
) -> Result<()> {
    check_name(new, path.name)?;
    if served_resource.info.namespaced && new.namespace() != path.namespace {
        return Err(Box::new(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )));
    }
    Ok(())
}
