//! Request bodies: media types, decoding, patches, delete options (the request part of upstream's handlers).

use portico_gostd::mime::parse_media_type;
use portico_machinery::{GroupVersionKind, Object, Status};
use portico_schema::decode::warnings;
use portico_schema::{DecodeError, Decoded, Format, Schema};

use crate::Result;
use crate::call::Call;
use crate::options::{DeleteOptions, FieldValidation, Query};
use crate::scheme::Scheme;
use crate::served_resource::ServedResource;
use crate::verb_types::Patch;

const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
/// Media types of patches, as upstream lists them.
pub(super) const PATCHES: [&str; 4] =
    ["application/json-patch+json", "application/merge-patch+json", STRATEGIC, APPLY];
const ACCEPTED: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// Format of a body; status 415 for other media types.
pub(super) fn format(served_resource: &ServedResource, call: &Call) -> Result<Format> {
    let essence = match call.content_type.trim() {
        "" => Some(String::new()),
        text => parse_media_type(text).ok().map(|media| media.essence),
    };
    essence
        .and_then(|e| Format::of_media_type(&e))
        // kube-apiserver closes the connection on protobuf bodies of custom resources.
        .filter(|format| served_resource.custom.is_none() || *format != Format::Protobuf)
        .ok_or_else(|| Box::new(Status::unsupported_media_type(&ACCEPTED)))
}

/// Decodes an object of the kind; strict errors are refused, reported as warnings, or ignored.
pub(super) fn decode(
    scheme: &Scheme,
    call: &Call,
    format: Format,
    schema: &Schema,
    gvk: &GroupVersionKind,
    validation: FieldValidation,
) -> Result<Decoded> {
    let decoded = schema.decode(&call.body, format, gvk);
    let mut decoded = decoded.map_err(|error| scheme.refusal(error, gvk).status())?;
    match validation {
        FieldValidation::Ignore => decoded.strict.clear(),
        FieldValidation::Warn => decoded.strict = warnings(decoded.strict),
        FieldValidation::Strict => {
            if let Some(status) = decoded.strict_status(gvk) {
                return Err(Box::new(status));
            }
        }
    }
    Ok(decoded)
}

/// True if the route of patches accepts this Content-Type; one acceptable media type in the header suffices.
pub(super) fn route_accepts_patch(content_type: &str) -> bool {
    content_type.split(',').any(|media| PATCHES.contains(&patch_essence(media).trim_matches(' ')))
}

/// True for media types of patches.
pub(super) fn is_patch(content_type: &str) -> bool {
    is_apply(content_type) || patch_type(content_type).is_some()
}

/// True for the media type of a strategic merge patch.
pub(super) fn is_strategic(content_type: &str) -> bool {
    patch_essence(content_type) == STRATEGIC
}

/// Media type of a patch. Upstream compares it exactly: with capitals or a trailing space it does not match.
fn patch_essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default()
}

/// Constructor of the patch for this media type; `None` for other media types.
pub(super) fn patch_type(content_type: &str) -> Option<fn(bytes::Bytes) -> Patch> {
    match patch_essence(content_type) {
        "application/json-patch+json" => Some(Patch::Json),
        "application/merge-patch+json" => Some(Patch::Merge),
        STRATEGIC => Some(Patch::Strategic),
        _ => None,
    }
}

/// True for the media type of server-side apply.
pub(super) fn is_apply(content_type: &str) -> bool {
    patch_essence(content_type) == APPLY
}

pub(super) fn patch(call: &Call) -> Result<Patch> {
    let new_patch =
        patch_type(&call.content_type).ok_or_else(|| Box::new(Status::unsupported_media_type(&PATCHES)))?;
    Ok(new_patch(call.body.clone()))
}

/// Options of a delete that came in a body, as an object.
pub(super) fn untagged_options(
    schema: &Schema,
    call: &Call,
    served_resource: &ServedResource,
) -> Option<Object> {
    let format = format(served_resource, call).ok().filter(|_| !call.body.is_empty())?;
    schema.decode_untagged(&call.body, format).ok().map(|decoded| decoded.object)
}

/// Options of a delete: from the body if there is one, else from the query. `schema` is that of delete options.
pub(super) fn delete_options(
    schema: Option<&Schema>,
    call: &Call,
    query: &Query<'_>,
    served_resource: &ServedResource,
) -> Result<DeleteOptions> {
    if call.body.is_empty() {
        return query.delete_options();
    }
    match (format(served_resource, call)?, schema) {
        (format, Some(schema)) => {
            let decoded = schema.decode_untagged(&call.body, format);
            DeleteOptions::from_body(&decoded.map_err(|error| options_error(&error))?.object.to_json())
        }
        (_, None) => DeleteOptions::from_body(&call.body),
    }
}

/// Error about delete options, which does not contain their kind, as in upstream.
fn options_error(error: &DecodeError) -> Box<Status> {
    Box::new(match error {
        DecodeError::CannotBeHandled { error, .. } => Status::bad_request(error.clone()),
        DecodeError::Syntax { error, .. } => {
            Status::bad_request(format!("couldn't get version/kind; {error}"))
        }
        other => other.status(),
    })
}
