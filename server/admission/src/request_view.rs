//! View of a request for a webhook or policy: resource and kind in the version that a rule names, and the objects
//! in that version.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use portico_machinery::{GroupVersionKind, GroupVersionResource, Object};
use portico_policy::{AdmissionRequest, EvaluationInput, LazyObject, UserAuthorizer, parse_request};
use portico_registry::{Objects, Result, ServedResource};

use crate::matching::{MatchTarget, MatchedVersion, ObjectPair};
use crate::options::RequestOptions;

/// Request as a webhook or policy receives it.
pub(crate) struct RequestView<'a> {
    /// Version of the view; `None` inside for the version of the request.
    pub(crate) version: MatchedVersion,
    pub(crate) new: Option<Cow<'a, Object>>,
    pub(crate) old: Option<Cow<'a, Object>>,
    /// Request without its UID and objects, as JSON.
    request_json: Bytes,
    /// Decoded form of `request_json`, created when an expression reads it.
    request: LazyObject,
    /// Cache of [`RequestView::members`].
    members: OnceLock<Vec<u8>>,
}

impl<'a> RequestView<'a> {
    /// Converts a request to a version.
    ///
    /// # Errors
    /// 500 if an object cannot be converted.
    pub(crate) async fn convert(
        objects: &Objects,
        target: &MatchTarget<'_>,
        version: MatchedVersion,
        pair: ObjectPair<'a>,
    ) -> Result<Self> {
        let served = version.served(target);
        let (resource, kind) = (served.info.gvr(), target.attributes.kind_in(served));
        let (mut new, mut old) = (None, None);
        for (converted, object) in [(&mut new, pair.new), (&mut old, pair.old)] {
            if let Some(object) = object {
                *converted = Some(target.attributes.to_version(objects, served, object).await?);
            }
        }
        let request_json = Bytes::from(request(target, &resource, &kind).to_json());
        let read = request_json.clone();
        let request = LazyObject::new(Box::new(move || parse_request(&read)));
        Ok(Self { version, new, old, request_json, request, members: OnceLock::new() })
    }

    /// Returns the index in `views` of the view in a version; adds the view if it does not exist.
    ///
    /// # Errors
    /// 500 if an object cannot be converted.
    pub(crate) async fn find_or_convert(
        views: &mut Vec<Self>,
        objects: &Objects,
        target: &MatchTarget<'_>,
        version: MatchedVersion,
        pair: ObjectPair<'a>,
    ) -> Result<usize> {
        if let Some(index) = views.iter().position(|view| view.has_version(&version)) {
            return Ok(index);
        }
        views.push(Self::convert(objects, target, version, pair).await?);
        Ok(views.len() - 1)
    }

    /// True if the view has this version.
    fn has_version(&self, version: &MatchedVersion) -> bool {
        let id = |version: &Option<Arc<ServedResource>>| version.as_ref().map(Arc::as_ptr);
        id(&self.version.0) == id(&version.0)
    }

    /// Returns the members of the request as JSON, with its objects but without its UID. They are encoded once
    /// for all recipients.
    pub(crate) fn members(&self) -> &[u8] {
        self.members.get_or_init(|| {
            let mut members = self.request_json.to_vec();
            // Remove the braces.
            members.pop();
            members.drain(..1);
            for (field, object) in [("object", &self.new), ("oldObject", &self.old)] {
                members.extend_from_slice(format!(r#","{field}":"#).as_bytes());
                match object {
                    Some(object) => members.extend_from_slice(&object.to_json()),
                    None => members.extend_from_slice(b"null"),
                }
            }
            members
        })
    }

    /// Returns the variables of expressions, except for parameters and namespace.
    pub(crate) fn subject<'s>(
        &'s self,
        objects: &Objects,
        target: &'s MatchTarget<'_>,
    ) -> EvaluationInput<'s> {
        EvaluationInput {
            object: self.new.as_deref(),
            old_object: self.old.as_deref(),
            request: &self.request,
            params: None,
            namespace: None,
            authorizer: Some(Arc::<UserAuthorizer>::clone(target.authorizer(objects))),
            request_budget: &target.request_budget,
            resource: &target.resource,
        }
    }
}

/// Returns the request without its UID and objects, as a request for this resource.
fn request<'r>(
    target: &'r MatchTarget<'_>,
    resource: &'r GroupVersionResource,
    kind: &'r GroupVersionKind,
) -> AdmissionRequest<'r, RequestOptions<'r>> {
    let attributes = &target.attributes;
    AdmissionRequest {
        kind,
        resource,
        subresource: attributes.subresource(),
        request_kind: &target.kind,
        request_resource: &target.resource,
        request_subresource: attributes.subresource(),
        name: attributes.name,
        namespace: target.namespace,
        operation: attributes.operation_name(),
        user: &attributes.context.user,
        dry_run: attributes.is_dry_run(),
        options: RequestOptions::from_options(attributes.options),
    }
}
