//! Patch (upstream's `patcher`): applied to the served version of the current object, and retried after concurrent writes.

use portico_machinery::{GroupVersion, Object, Status};
use portico_schema::{DecodeError, Decoded, merge, patch_status};

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::attempts::{MAX_WRITE_ATTEMPTS, too_many_changes};
use crate::managed_fields::{Tracked, manager_name};
use crate::options::{FieldValidation, PatchOptions};
use crate::replace::{Attempt, Terms, UidRule};
use crate::scheme::{Scheme, has_current_fields};
use crate::served::ServedResource;
use crate::system::settle_namespace;
use crate::typed::{Context, Patch, Place, Written};
use crate::update::forget_zero_version;
use crate::verbs::Verbs;

impl Verbs {
    /// Patches an object or a subresource; retries with the newer state after a concurrent write.
    ///
    /// # Errors
    /// Status 400, 404, 409 or 422.
    pub async fn patch(
        &self,
        context: &Context,
        served: &ServedResource,
        place: Place<'_>,
        patch: &Patch,
        options: &PatchOptions,
    ) -> Result<Written> {
        let manager = manager_name(&options.write.field_manager, &context.user_agent);
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let current = self.current(served, place, newer).await?;
            let current = current.ok_or_else(|| Box::new(Status::not_found(&served.resource, place.name)))?;
            let current = self.objects.recent.stored(current);
            let mut object = current.object().clone();
            served.to_version(&mut object);
            let has_internal = served.custom.is_none();
            let (mut new, warnings) =
                apply(&self.objects.scheme, served, &object, patch, options, has_internal)?;
            settle_namespace(&mut new, served.info.namespaced, place.namespace)
                .and_then(|()| check_identity(served, &new, place))
                .map_err(|status| status.with_warnings(warnings.clone()))?;
            if let Some(error) = served.strategies.decode.unreadable(&new) {
                return Err(Box::new(patch_status(&shown(served, &object, patch, &new), &error)));
            }
            served.complete(&mut new, self.objects.moment());
            forget_zero_version(&mut new);
            // A concurrent write is not a conflict for the caller: the patch is applied to the newer state, and fails there if it
            // contains a resource version.
            let terms = Terms {
                attributes: Attributes::new(context, served, place, Options::Patch(options)),
                admitted: false,
                insists: false,
                uid: UidRule::Immutable,
                tracked: Tracked::By(&manager),
                others: &[],
            };
            let attempt = self.replace(served, place, &current, new, terms).await;
            newer = match attempt.map_err(|status| status.with_warnings(warnings.clone()))? {
                Attempt::Done(written) => return Ok(written.with_first(warnings)),
                Attempt::Again(newer) => newer,
            };
        }
        Err(too_many_changes(&served.resource, place.name))
    }
}

/// Applies a patch to an object. `has_internal` is true for kinds that have an internal version upstream.
pub(crate) fn apply(
    scheme: &Scheme,
    served: &ServedResource,
    current: &Object,
    patch: &Patch,
    options: &PatchOptions,
    has_internal: bool,
) -> Result<(Object, Vec<String>)> {
    let (schema, kind) = (&served.info.schema, &served.info.gvk);
    let merged = match patch {
        Patch::Json(bytes) => merge::json_patch(current, bytes),
        Patch::Merge(bytes) => merge::merge_patch(current, bytes),
        Patch::Strategic(bytes) => schema.strategic_merge(current, bytes).map(|new| tagged(new, current)),
    };
    let mut merged = merged.map_err(|e| e.status())?;
    settle_version(served, &mut merged);
    let (decoded, merged) = match patch {
        Patch::Strategic(_) => (schema.convert(merged, kind), None),
        _ if has_internal && has_lost_version(current, &merged, &kind.kind) => {
            (Ok(read_as_internal(&written(served, current, patch, &merged))), Some(merged))
        }
        Patch::Json(_) | Patch::Merge(_) => match schema.retype(&merged, kind) {
            Ok(decoded) if decoded.strict.is_empty() => (Ok(decoded), Some(merged)),
            // Errors are reported in the order in which upstream writes the result.
            _ => (schema.retype(&written(served, current, patch, &merged), kind), Some(merged)),
        },
    };
    let shown = || shown(served, current, patch, merged.as_ref().unwrap_or(current));
    let mut decoded = decoded.map_err(|e| scheme.refusal(misfit(served, e), kind).patch_status(&shown()))?;
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
fn settle_version(served: &ServedResource, merged: &mut Object) {
    let kind = &served.info.gvk;
    let version = merged.api_version();
    if served.custom.is_some() || version == served.api_version || merged.kind() != kind.kind {
        return;
    }
    if version.parse().is_ok_and(|version| has_current_fields(&version, kind)) {
        merged.set(&["apiVersion"], &served.api_version);
    }
}

/// Replaces the error about a version that the kind does not have: upstream reports an unknown kind, regardless of the path. A
/// custom resource has one version only.
fn misfit(served: &ServedResource, error: DecodeError) -> DecodeError {
    match error {
        DecodeError::Version { found, .. } if served.custom.is_none() => {
            let kind = &served.info.gvk.kind;
            match found.parse::<GroupVersion>() {
                Ok(version) => DecodeError::WrongKind { found: version.kind(kind), expected: kind.clone() },
                Err(_) => DecodeError::Unconvertible(format!("unexpected GroupVersion string: {found}")),
            }
        }
        error => error,
    }
}

/// Text that a refusal contains: the patched object, or for a strategic merge patch the patch itself.
fn shown(served: &ServedResource, current: &Object, patch: &Patch, merged: &Object) -> String {
    match patch {
        Patch::Strategic(bytes) => merge::shown::strategic(bytes),
        Patch::Json(_) | Patch::Merge(_) => merge::shown::text(&written(served, current, patch, merged)),
    }
}

/// Patched object in the field order in which upstream writes it.
fn written(served: &ServedResource, current: &Object, patch: &Patch, merged: &Object) -> Object {
    let custom = served.info.schema.custom().is_some();
    match patch {
        Patch::Json(bytes) if !custom => merge::shown::patched(bytes, merged),
        Patch::Merge(bytes) if !custom => merge::shown::merged(current, bytes, merged),
        _ => merge::shown::sorted(merged),
    }
}

/// Restores kind and apiVersion, which a strategic merge patch cannot change. Values that are not strings stay
/// and are refused later.
fn tagged(mut new: Object, current: &Object) -> Object {
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

pub(crate) fn check_identity(served: &ServedResource, new: &Object, place: Place<'_>) -> Result<()> {
    check_name(new, place.name)?;
    if served.info.namespaced && new.namespace() != place.namespace {
        return Err(Box::new(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )));
    }
    Ok(())
}
