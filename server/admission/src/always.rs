//! AlwaysAdmit and AlwaysDeny, which upstream keeps for tests: admit every request, or refuse every request that admission sees.

use portico_registry::{Objects, Operation};

use crate::plugin::{ANY, DeleteRequest, MutationFuture, MutationRequest, Plugin, ResourcePattern};

const DENIED: &str = "admission control is denying all modifications";
const EVERYTHING: &[ResourcePattern] = &[(ANY, ANY, ANY)];
const OPERATIONS: &[Operation] =
    &[Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];

/// AlwaysAdmit plugin, which handles no resources.
pub(crate) struct AlwaysAdmit;

impl Plugin for AlwaysAdmit {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[]
    }
}

/// AlwaysDeny plugin. It refuses requests during mutating admission, so that validating admission is never reached.
pub(crate) struct AlwaysDeny;

impl Plugin for AlwaysDeny {
    fn targets(&self) -> &'static [ResourcePattern] {
        EVERYTHING
    }

    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn mutate<'a>(&'a self, _objects: &'a Objects, request: MutationRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async move { Err(request.forbidden(DENIED)) })
    }

    fn admit_delete<'a>(&'a self, _objects: &'a Objects, request: DeleteRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async move { Err(request.forbidden(DENIED)) })
    }
}
