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
    Context, DeleteOptions, ObjectPart, ObjectPath, Patch, PatchOptions, Preconditions, Registry,
    StoredObject, WriteResult,
};
use tonic::{Request, Response};

use super::routes::Explainer;
use super::{RpcResult, WriteGate, audit_records, authorize, caller, to_grpc_status};
use crate::chain::Caller;
use crate::queues::{Queues, RunningCall};

/// Stream of responses.
type ResponseStream<T> = Pin<Box<dyn Stream<Item = RpcResult<T>> + Send>>;

/// Implementation of the service.
#[derive(Clone)]
pub(crate) struct ApiServicesService {
    registry: Registry,
    explainer: Explainer,
    resource: GroupResource,
    write_gate: WriteGate,
    queues: Queues,
}

/// Authorized call.
struct AllowedCall {
    caller: Caller,
    /// Seat of the call, which is held until the response is complete.
    running: RunningCall,
}

impl ApiServicesService {
    pub(crate) fn new(
        registry: Registry,
        explainer: Explainer,
        write_gate: WriteGate,
        queues: Queues,
    ) -> Self {
        let resource = GroupResource::new("apiregistration.k8s.io", "apiservices");
        Self { registry, explainer, resource, write_gate, queues }
    }

    /// Waits for a seat and authorizes the caller for the equivalent Kubernetes request.
    async fn begin_call(
        &self,
        caller: Caller,
        verb: &str,
        name: &str,
        subresource: &str,
    ) -> RpcResult<AllowedCall> {
        self.begin_query_call(caller, self.info(verb, name, subresource), "").await
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

    /// Like [`ApiServicesService::begin_call`], for a request whose number of seats depends on its query.
    async fn begin_query_call(
        &self,
        caller: Caller,
        info: RequestInfo,
        query: &str,
    ) -> RpcResult<AllowedCall> {
        audit_records::begin(&caller, &info).await?;
        let running = self.queues.admit(&caller, &info, query).await?;
        authorize(&caller, info.clone()).await?;
        match self.write_gate.refusal(&caller, || info) {
            Some(status) => Err(to_grpc_status(status)),
            None => Ok(AllowedCall { caller, running }),
        }
    }

    async fn replace(
        &self,
        caller: &Caller,
        part: ObjectPart<'_>,
        message: Option<pb::ApiService>,
        dry_run: bool,
    ) -> RpcResult<Response<pb::ApiService>> {
        let object = api_service_to_object(&require_message(message)?);
        let (options, context) = (options::write(dry_run), context(caller));
        audit_records::record_request(caller, "", || object.to_json());
        let result = self.registry.update(&context, &self.resource, part, object, &options).await;
        write_response(caller, &context, result)
    }
}

/// Returns the response to a write, and records it for audit.
fn write_response(
    caller: &Caller,
    context: &Context,
    result: Result<WriteResult, Box<Status>>,
) -> RpcResult<Response<pb::ApiService>> {
    let code = |write_result: &WriteResult| if write_result.created { 201 } else { 200 };
    let stored = result.as_ref().map(|write_result| (code(write_result), &write_result.stored));
    events::record_result(caller, context, stored.map_err(|status| &**status));
    Ok(answer(&result.map_err(to_grpc_status)?.stored))
}

fn context(caller: &Caller) -> Context {
    Context::new(caller.user().clone(), "grpc")
}

fn require_message(message: Option<pb::ApiService>) -> RpcResult<pb::ApiService> {
    message.ok_or_else(|| tonic::Status::invalid_argument("api_service is required"))
}

fn name_of(message: Option<&pb::ApiService>) -> String {
    message.and_then(|m| m.metadata.as_ref()).map(|m| m.name.clone()).unwrap_or_default()
}

fn answer(stored: &StoredObject) -> Response<pb::ApiService> {
    Response::new(api_service_from_object(stored.object()))
}

#[tonic::async_trait]
impl ApiServices for ApiServicesService {
    type ListStream = ResponseStream<pb::ListResponse>;
    type WatchStream = ResponseStream<pb::WatchResponse>;

    async fn create(&self, request: Request<pb::CreateRequest>) -> RpcResult<Response<pb::ApiService>> {
        // As over HTTP, a create is authorized without a name.
        let AllowedCall { caller, running: _running } =
            self.begin_call(caller(&request)?, "create", "", "").await?;
        let request = request.into_inner();
        let object = api_service_to_object(&require_message(request.api_service)?);
        let (options, context) = (options::write(request.dry_run), context(&caller));
        audit_records::record_request(&caller, object.name(), || object.to_json());
        let result = self.registry.create(&context, &self.resource, object, &options).await;
        write_response(&caller, &context, result)
    }

    async fn get(&self, request: Request<pb::GetRequest>) -> RpcResult<Response<pb::ApiService>> {
        let AllowedCall { caller, running: _running } =
            self.begin_call(caller(&request)?, "get", &request.get_ref().name, "").await?;
        let request = request.into_inner();
        if request.resource_version.is_empty() {
            let found = self.registry.get(&self.resource, "", &request.name).await;
            events::record_result(
                &caller,
                &context(&caller),
                found.as_ref().map(|stored| (200, stored)).map_err(|status| &**status),
            );
            return Ok(answer(&found.map_err(to_grpc_status)?));
        }
        let call = options::get_call(&self.resource, caller.user().clone(), &request);
        let found = self.registry.serve(call).await;
        audit_records::record_answer(&caller, &found);
        stream::object(found).map(Response::new)
    }

    async fn list(&self, request: Request<pb::ListRequest>) -> RpcResult<Response<Self::ListStream>> {
        let (info, query) = (self.info("list", "", ""), format!("limit={}", request.get_ref().limit));
        let AllowedCall { caller, running: _running } =
            self.begin_query_call(caller(&request)?, info, &query).await?;
        let options = options::list(&request.into_inner())?;
        let listed = self.registry.list(&self.resource, "", &options).await.map_err(to_grpc_status)?;
        events::record_list(&caller, &listed);
        Ok(Response::new(Box::pin(stream::list_messages(listed))))
    }

    async fn update(&self, request: Request<pb::UpdateRequest>) -> RpcResult<Response<pb::ApiService>> {
        let name = name_of(request.get_ref().api_service.as_ref());
        let AllowedCall { caller, running: _running } =
            self.begin_call(caller(&request)?, "update", &name, "").await?;
        let request = request.into_inner();
        self.replace(&caller, ObjectPart::Main, request.api_service, request.dry_run).await
    }

    async fn update_status(
        &self,
        request: Request<pb::UpdateStatusRequest>,
    ) -> RpcResult<Response<pb::ApiService>> {
        let name = name_of(request.get_ref().api_service.as_ref());
        let AllowedCall { caller, running: _running } =
            self.begin_call(caller(&request)?, "update", &name, "status").await?;
        let request = request.into_inner();
        self.replace(&caller, ObjectPart::Subresource("status"), request.api_service, request.dry_run).await
    }

    async fn patch(&self, request: Request<pb::PatchRequest>) -> RpcResult<Response<pb::ApiService>> {
        let (name, subresource) = (request.get_ref().name.clone(), request.get_ref().subresource.clone());
        let AllowedCall { caller, running: _running } =
            self.begin_call(caller(&request)?, "patch", &name, &subresource).await?;
        let request = request.into_inner();
        audit_records::record_request(&caller, "", || request.patch.to_vec());
        let patch = match request.r#type() {
            pb::PatchType::Json => Patch::Json(request.patch.into()),
            pb::PatchType::Merge => Patch::Merge(request.patch.into()),
            pb::PatchType::Unspecified => {
                return Err(tonic::Status::invalid_argument(
                    "type must be PATCH_TYPE_JSON or PATCH_TYPE_MERGE",
                ));
            }
        };
        let part =
            if subresource.is_empty() { ObjectPart::Main } else { ObjectPart::Subresource(&subresource) };
        let options = PatchOptions { write: options::write(request.dry_run), force: None };
        let (path, context) = (ObjectPath { part, namespace: "", name: &name }, context(&caller));
        let result = self.registry.patch(&context, &self.resource, path, &patch, &options).await;
        write_response(&caller, &context, result)
    }

    async fn delete(&self, request: Request<pb::DeleteRequest>) -> RpcResult<Response<pb::ApiService>> {
        let AllowedCall { caller, running: _running } =
            self.begin_call(caller(&request)?, "delete", &request.get_ref().name, "").await?;
        let request = request.into_inner();
        audit_records::record_request(&caller, "", || events::delete_options(&request));
        let non_empty = |text: String| (!text.is_empty()).then_some(text);
        let options = DeleteOptions {
            dry_run: request.dry_run,
            preconditions: Preconditions {
                uid: non_empty(request.uid),
                resource_version: non_empty(request.resource_version),
            },
            ..DeleteOptions::default()
        };
        let context = context(&caller);
        let deleted = self.registry.delete(&context, &self.resource, "", &request.name, &options).await;
        let stored = deleted.as_ref().map(|deleted| (200, &deleted.stored));
        events::record_result(&caller, &context, stored.map_err(|status| &**status));
        Ok(answer(&deleted.map_err(to_grpc_status)?.stored))
    }

    async fn watch(&self, request: Request<pb::WatchRequest>) -> RpcResult<Response<Self::WatchStream>> {
        let AllowedCall { caller, mut running } = self.begin_call(caller(&request)?, "watch", "", "").await?;
        let call = options::watch_call(&self.resource, caller.user().clone(), &request.into_inner());
        let answer = self.registry.serve(call).await;
        audit_records::record_answer(&caller, &answer);
        running.release_seat();
        let events = stream::watch_events(answer, running)?;
        Ok(Response::new(Box::pin(events)))
    }

    async fn explain(
        &self,
        request: Request<pb::ExplainRequest>,
    ) -> RpcResult<Response<pb::ExplainResponse>> {
        let _allowed = self.begin_call(caller(&request)?, "get", &request.get_ref().name, "").await?;
        let name = request.into_inner().name;
        let found = self.registry.get(&self.resource, "", &name).await;
        let explained = self.explainer.api_service(&name);
        // A group version that a definition should serve, but does not, has no APIService. The definition explains the reason.
        let is_defined = explained.stages.iter().any(|stage| stage.stage == "defined");
        match found {
            Err(status) if !is_defined => Err(to_grpc_status(status)),
            _ => Ok(Response::new(explained)),
        }
    }
}
