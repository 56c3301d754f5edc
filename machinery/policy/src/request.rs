//! Request data for expressions and webhooks (upstream's `CreateAdmissionRequest`).

use portico_machinery::{GroupVersionKind, GroupVersionResource, Object, UserInfo};
use serde::{Serialize, Serializer};

/// AdmissionRequest of `admission.k8s.io/v1` without its UID and objects. Empty optional fields are omitted, except for the
/// options.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionRequest<'a, Options> {
    /// Kind of the objects in the review.
    pub kind: &'a GroupVersionKind,
    /// Resource that a rule matched.
    pub resource: &'a GroupVersionResource,
    /// Subresource that a rule matched.
    #[serde(rename = "subResource", skip_serializing_if = "str::is_empty")]
    pub subresource: &'a str,
    /// Kind of the original request.
    pub request_kind: &'a GroupVersionKind,
    /// Resource of the original request.
    pub request_resource: &'a GroupVersionResource,
    /// Subresource of the original request.
    #[serde(rename = "requestSubResource", skip_serializing_if = "str::is_empty")]
    pub request_subresource: &'a str,
    /// Name of the object; empty if the server generates it.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: &'a str,
    /// Namespace of the object; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub namespace: &'a str,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'a str,
    /// User that sent the request.
    #[serde(rename = "userInfo", serialize_with = "user_info")]
    pub user: &'a UserInfo,
    /// True for a dry run.
    pub dry_run: bool,
    /// Options of the request, as an object of their kind; `None` for CONNECT, which is encoded as null.
    pub options: Option<Options>,
}

impl<Options: Serialize> AdmissionRequest<'_, Options> {
    /// Encodes the request as JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        // Strings and maps of strings can always be encoded.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Parses the request for expressions.
#[must_use]
pub fn parse_request(json: &[u8]) -> Object {
    // The output of `to_json` is an object.
    Object::from_json(json).unwrap_or_default()
}

fn user_info<S: Serializer>(user: &UserInfo, serializer: S) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeMap;

    let UserInfo { name, uid, groups, extra } = user;
    let mut members = serializer.serialize_map(None)?;
    for (field, text) in [("username", name), ("uid", uid)] {
        if !text.is_empty() {
            members.serialize_entry(field, text)?;
        }
    }
    if !groups.is_empty() {
        members.serialize_entry("groups", groups)?;
    }
    if !extra.is_empty() {
        members.serialize_entry("extra", extra)?;
    }
    members.end()
}
