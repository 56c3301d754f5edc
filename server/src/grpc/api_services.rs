//! `portico.apiregistration.v1`: APIServices as typed messages, through the registry's typed verbs.

mod events;
mod options;
mod stream;

use std::pin::Pin;

use futures::Stream;
use portico_machinery::{GroupResource, RequestInfo, Status};
use portico_proto::apiregistration as pb;
use portico_proto::apiregistration::api_services_server::ApiServices;
use portico_proto::convert::{api_service_from_object, api_service_to_object};
use portico_registry::{
    Context, DeleteOptions, Part, Patch, PatchOptions, Place, Preconditions, Registry, Stored, Written,
};
use tonic::{Request, Response};

use super::routes::Explainer;
use super::{Hold, RpcResult, authorize, caller, recorded, refused};
use crate::chain::Caller;
use crate::queues::{Queues, Running};

/// Stream of responses.
type Answers<T> = Pin<Box<dyn Stream<Item = RpcResult<T>> + Send>>;

/// Implementation of the service.
#[derive(Clone)]
pub(crate) struct ApiServicesService {
    registry: Registry,
    explainer: Explainer,
    resource: GroupResource,
    hold: Hold,
    queues: Queues,
}

/// Authorized call.
struct Allowed {
    caller: Caller,
    /// Seat of the call, which is held until the response is complete.
    running: Running,
}

impl ApiServicesService {
    pub(crate) fn new(registry: Registry, explainer: Explainer, hold: Hold, queues: Queues) -> Self {
        let resource = GroupResource::new("apiregistration.k8s.io", "apiservices");
        Self { registry, explainer, resource, hold, queues }
    }

    /// Waits for a seat and authorizes the caller for the equivalent Kubernetes request.
    async fn allow(&self, caller: Caller, verb: &str, name: &str, subresource: &str) -> RpcResult<Allowed> {
        self.allow_query(caller, self.info(verb, name, subresource), "").await
    }

    fn info(&self, verb: &str, name: &str, subresource: &str) -> RequestInfo {
        RequestInfo {
            is_resource_request: true,
            verb: verb.to_owned(),
            api_prefix: "apis".to_owned(),
            api_group: self.resource.group.clone(),
            api_version: "v1".to_owned(),
            resource: self.resource.resource.clone(),
            subresource: subresource.to_owned(),
            name: name.to_owned(),
            ..RequestInfo::default()
        }
    }

    /// Like [`ApiServicesService::allow`], for a request whose number of seats depends on its query.
    async fn allow_query(&self, caller: Caller, info: RequestInfo, query: &str) -> RpcResult<Allowed> {
        recorded::begin(&caller, &info).await?;
        let running = self.queues.turn(&caller, &info, query).await?;
        authorize(&caller, info.clone()).await?;
        match self.hold.refusal(&caller, || info) {
            Some(status) => Err(refused(status)),
            None => Ok(Allowed { caller, running }),
        }
    }

    async fn replace(
        &self,
        caller: &Caller,
        part: Part<'_>,
        message: Option<pb::ApiService>,
        dry_run: bool,
    ) -> RpcResult<Response<pb::ApiService>> {
        let object = api_service_to_object(&required(message)?);
        let (options, context) = (options::write(dry_run), context(caller));
        recorded::sent(caller, "", || object.to_json());
        let written = self.registry.update(&context, &self.resource, part, object, &options).await;
        written_answer(caller, &context, written)
    }
}

/// Returns the response to a write, and records it for audit.
fn written_answer(
    caller: &Caller,
    context: &Context,
    written: Result<Written, Box<Status>>,
) -> RpcResult<Response<pb::ApiService>> {
    let code = |written: &Written| if written.created { 201 } else { 200 };
    let stored = written.as_ref().map(|written| (code(written), &written.stored));
    events::ended(caller, context, stored.map_err(|status| &**status));
    Ok(answer(&written.map_err(refused)?.stored))
}

fn context(caller: &Caller) -> Context {
    Context::new(caller.user().clone(), "grpc")
}

fn required(message: Option<pb::ApiService>) -> RpcResult<pb::ApiService> {
    message.ok_or_else(|| tonic::Status::invalid_argument("api_service is required"))
}

fn name_of(message: Option<&pb::ApiService>) -> String {
    message.and_then(|m| m.metadata.as_ref()).map(|m| m.name.clone()).unwrap_or_default()
}

fn answer(stored: &Stored) -> Response<pb::ApiService> {
    Response::new(api_service_from_object(stored.object()))
}

#[tonic::async_trait]
impl ApiServices for ApiServicesService {
    type ListStream = Answers<pb::ListResponse>;
    type WatchStream = Answers<pb::WatchResponse>;

    async fn create(&self, request: Request<pb::CreateRequest>) -> RpcResult<Response<pb::ApiService>> {
        // As over HTTP, a create is authorized without a name.
        let Allowed { caller, running: _running } = self.allow(caller(&request)?, "create", "", "").await?;
        let request = request.into_inner();
        let object = api_service_to_object(&required(request.api_service)?);
        let (options, context) = (options::write(request.dry_run), context(&caller));
        recorded::sent(&caller, object.name(), || object.to_json());
        let written = self.registry.create(&context, &self.resource, object, &options).await;
        written_answer(&caller, &context, written)
    }

    async fn get(&self, request: Request<pb::GetRequest>) -> RpcResult<Response<pb::ApiService>> {
        let Allowed { caller, running: _running } =
            self.allow(caller(&request)?, "get", &request.get_ref().name, "").await?;
        let request = request.into_inner();
        if request.resource_version.is_empty() {
            let found = self.registry.get(&self.resource, "", &request.name).await;
            events::ended(
                &caller,
                &context(&caller),
                found.as_ref().map(|stored| (200, stored)).map_err(|status| &**status),
            );
            return Ok(answer(&found.map_err(refused)?));
        }
        let call = options::get_call(&self.resource, caller.user().clone(), &request);
        let found = self.registry.serve(call).await;
        recorded::note(&caller, &found);
        stream::object(found).map(Response::new)
    }

    async fn list(&self, request: Request<pb::ListRequest>) -> RpcResult<Response<Self::ListStream>> {
        let (info, query) = (self.info("list", "", ""), format!("limit={}", request.get_ref().limit));
        let Allowed { caller, running: _running } = self.allow_query(caller(&request)?, info, &query).await?;
        let options = options::list(&request.into_inner())?;
        let listed = self.registry.list(&self.resource, "", &options).await.map_err(refused)?;
        events::listed(&caller, &listed);
        Ok(Response::new(Box::pin(stream::list_parts(listed))))
    }

    async fn update(&self, request: Request<pb::UpdateRequest>) -> RpcResult<Response<pb::ApiService>> {
        let name = name_of(request.get_ref().api_service.as_ref());
        let Allowed { caller, running: _running } =
            self.allow(caller(&request)?, "update", &name, "").await?;
        let request = request.into_inner();
        self.replace(&caller, Part::Main, request.api_service, request.dry_run).await
    }

    async fn update_status(
        &self,
        request: Request<pb::UpdateStatusRequest>,
    ) -> RpcResult<Response<pb::ApiService>> {
        let name = name_of(request.get_ref().api_service.as_ref());
        let Allowed { caller, running: _running } =
            self.allow(caller(&request)?, "update", &name, "status").await?;
        let request = request.into_inner();
        self.replace(&caller, Part::Subresource("status"), request.api_service, request.dry_run).await
    }

    async fn patch(&self, request: Request<pb::PatchRequest>) -> RpcResult<Response<pb::ApiService>> {
        let (name, subresource) = (request.get_ref().name.clone(), request.get_ref().subresource.clone());
        let Allowed { caller, running: _running } =
            self.allow(caller(&request)?, "patch", &name, &subresource).await?;
        let request = request.into_inner();
        recorded::sent(&caller, "", || request.patch.to_vec());
        let patch = match request.r#type() {
            pb::PatchType::Json => Patch::Json(request.patch.into()),
            pb::PatchType::Merge => Patch::Merge(request.patch.into()),
            pb::PatchType::Unspecified => {
                return Err(tonic::Status::invalid_argument(
                    "type must be PATCH_TYPE_JSON or PATCH_TYPE_MERGE",
                ));
            }
        };
        let part = if subresource.is_empty() { Part::Main } else { Part::Subresource(&subresource) };
        let options = PatchOptions { write: options::write(request.dry_run), force: None };
        let (place, context) = (Place { part, namespace: "", name: &name }, context(&caller));
        let written = self.registry.patch(&context, &self.resource, place, &patch, &options).await;
        written_answer(&caller, &context, written)
    }

    async fn delete(&self, request: Request<pb::DeleteRequest>) -> RpcResult<Response<pb::ApiService>> {
        let Allowed { caller, running: _running } =
            self.allow(caller(&request)?, "delete", &request.get_ref().name, "").await?;
        let request = request.into_inner();
        recorded::sent(&caller, "", || events::delete_options(&request));
        let some = |text: String| (!text.is_empty()).then_some(text);
        let options = DeleteOptions {
            dry_run: request.dry_run,
            preconditions: Preconditions {
                uid: some(request.uid),
                resource_version: some(request.resource_version),
            },
            ..DeleteOptions::default()
        };
        let context = context(&caller);
        let deleted = self.registry.delete(&context, &self.resource, "", &request.name, &options).await;
        let stored = deleted.as_ref().map(|deleted| (200, &deleted.stored));
        events::ended(&caller, &context, stored.map_err(|status| &**status));
        Ok(answer(&deleted.map_err(refused)?.stored))
    }

    async fn watch(&self, request: Request<pb::WatchRequest>) -> RpcResult<Response<Self::WatchStream>> {
        let Allowed { caller, mut running } = self.allow(caller(&request)?, "watch", "", "").await?;
        let call = options::watch_call(&self.resource, caller.user().clone(), &request.into_inner());
        let watched = self.registry.serve(call).await;
        recorded::note(&caller, &watched);
        running.leave_seat();
        let events = stream::watch_events(watched, running)?;
        Ok(Response::new(Box::pin(events)))
    }

    async fn explain(
        &self,
        request: Request<pb::ExplainRequest>,
    ) -> RpcResult<Response<pb::ExplainResponse>> {
        let _allowed = self.allow(caller(&request)?, "get", &request.get_ref().name, "").await?;
        let name = request.into_inner().name;
        let found = self.registry.get(&self.resource, "", &name).await;
        let explained = self.explainer.api_service(&name);
        // A group version that a definition should serve, but does not, has no APIService. The definition explains the reason.
        let is_defined = explained.stages.iter().any(|stage| stage.stage == "defined");
        match found {
            Err(status) if !is_defined => Err(refused(status)),
            _ => Ok(Response::new(explained)),
        }
    }
}
