//! The request, as expressions and webhooks see it (upstream's `CreateAdmissionRequest`).

use portico_machinery::{GroupVersionKind, GroupVersionResource, Object, UserInfo};
use serde::{Serialize, Serializer};

/// What a request asks for, and who asks: an AdmissionRequest of `admission.k8s.io/v1` without its uid and objects. What is
/// empty and may be left out is, but for options.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<'a, Options> {
    /// The kind of the objects as they are shown.
    pub kind: &'a GroupVersionKind,
    /// The resource that a rule has matched.
    pub resource: &'a GroupVersionResource,
    /// Its subresource.
    #[serde(rename = "subResource", skip_serializing_if = "str::is_empty")]
    pub subresource: &'a str,
    /// The kind that the request was made with.
    pub request_kind: &'a GroupVersionKind,
    /// The resource that the request was made to.
    pub request_resource: &'a GroupVersionResource,
    /// The subresource that the request was made to.
    #[serde(rename = "requestSubResource", skip_serializing_if = "str::is_empty")]
    pub request_subresource: &'a str,
    /// The name of the object; empty where it is made by the server.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: &'a str,
    /// Its namespace; empty at cluster scope.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub namespace: &'a str,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'a str,
    /// Who asks.
    #[serde(rename = "userInfo", serialize_with = "user_info")]
    pub user: &'a UserInfo,
    /// Whether nothing is kept.
    pub dry_run: bool,
    /// The options, as an object of their kind; null for a connection, which has none.
    pub options: Option<Options>,
}

impl<Options: Serialize> Request<'_, Options> {
    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        // Texts and maps of texts always encode.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The request as expressions read it, once one does.
#[must_use]
pub fn read_request(json: &[u8]) -> Object {
    // What `to_json` has written is an object.
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
