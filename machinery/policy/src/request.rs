//! The request, as expressions and webhooks see it (upstream's `CreateAdmissionRequest`).

use portico_machinery::{GroupVersionKind, GroupVersionResource, Object, UserInfo};

/// What a request asks for, and who asks.
pub struct Request<'a> {
    /// The kind of the objects as they are shown.
    pub kind: &'a GroupVersionKind,
    /// The resource that a rule has matched.
    pub resource: &'a GroupVersionResource,
    /// The kind that the request was made with.
    pub request_kind: &'a GroupVersionKind,
    /// The resource that the request was made to.
    pub request_resource: &'a GroupVersionResource,
    /// The subresource of both.
    pub subresource: &'a str,
    /// The name of the object; empty where it is made by the server.
    pub name: &'a str,
    /// Its namespace; empty at cluster scope.
    pub namespace: &'a str,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'a str,
    /// Who asks.
    pub user: &'a UserInfo,
    /// Whether nothing is kept.
    pub dry_run: bool,
    /// The options, as an object of their kind; null for a connection, which has none.
    pub options: Option<&'a Object>,
}

impl Request<'_> {
    /// As an AdmissionRequest of `admission.k8s.io/v1` without its uid and objects. What is empty and may be left out is, but for options.
    #[must_use]
    pub fn to_object(&self) -> Object {
        let mut request = Object::default();
        let kinds = [("kind", self.kind), ("requestKind", self.request_kind)];
        for (field, kind) in kinds {
            request.set(&[field, "group"], &kind.group);
            request.set(&[field, "version"], &kind.version);
            request.set(&[field, "kind"], &kind.kind);
        }
        let resources = [("resource", self.resource), ("requestResource", self.request_resource)];
        for (field, resource) in resources {
            request.set(&[field, "group"], &resource.group);
            request.set(&[field, "version"], &resource.version);
            request.set(&[field, "resource"], &resource.resource);
        }
        let texts = [
            ("subResource", self.subresource),
            ("requestSubResource", self.subresource),
            ("name", self.name),
            ("namespace", self.namespace),
        ];
        for (field, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            request.set(&[field], text);
        }
        request.set(&["operation"], self.operation);
        self.set_user(&mut request);
        request.set(&["dryRun"], self.dry_run);
        request.put(&["options"], self.options.map(Object::to_node).unwrap_or_default());
        request
    }

    fn set_user(&self, request: &mut Object) {
        let UserInfo { name, uid, groups, extra } = self.user;
        let mut user = Object::default();
        for (field, text) in [("username", name), ("uid", uid)] {
            if !text.is_empty() {
                user.set(&[field], text);
            }
        }
        if !groups.is_empty() {
            user.set(&["groups"], groups);
        }
        if !extra.is_empty() {
            user.set(&["extra"], extra);
        }
        request.put(&["userInfo"], user.into_node());
    }
}
