//! NamespaceExists: refuses every operation in a namespace that does not exist.
//!
//! Upstream rules: plugin/pkg/admission/namespace/exists.

use portico_machinery::{GroupResource, Status};
use portico_registry::{Attributes, Objects, Operation, Result};

use crate::plugin::{ANY, DeleteRequest, Plugin, ResourcePattern, ValidationFuture, ValidationRequest};

/// NamespaceExists plugin.
pub(crate) struct NamespaceExists;

impl Plugin for NamespaceExists {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[(ANY, ANY, ANY)]
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Create, Operation::Update, Operation::Delete]
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(check(objects, request.attributes))
    }

    fn validate_delete<'a>(
        &'a self,
        objects: &'a Objects,
        request: DeleteRequest<'a>,
    ) -> ValidationFuture<'a> {
        Box::pin(check(objects, request.attributes))
    }
}

async fn check(objects: &Objects, attributes: Attributes<'_>) -> Result<Vec<String>> {
    let (namespace, of_namespaces) = (attributes.namespace, is_namespace(&attributes));
    if namespace.is_empty() || of_namespaces {
        return Ok(Vec::new());
    }
    match objects.object_of("", "namespaces", "", namespace).await? {
        Some(_) => Ok(Vec::new()),
        None => Err(Box::new(Status::not_found(&GroupResource::new("", "namespaces"), namespace))),
    }
}

fn is_namespace(attributes: &Attributes<'_>) -> bool {
    let kind = attributes.kind();
    kind.group.is_empty() && kind.kind == "Namespace"
}
