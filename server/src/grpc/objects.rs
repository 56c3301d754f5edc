//! `portico.objects.v1`: one service for all kinds, on top of the registry.

mod call;
mod stream;

use std::collections::HashMap;

use portico_machinery::Attributes;
use portico_proto::objects::connect_response::Decision;
use portico_proto::objects::objects_server::Objects;
use portico_proto::objects::{
    ConnectRequest, ConnectResponse, DoRequest, DoResponse, ListRequest, Resource, ResourcesRequest,
    ResourcesResponse, WatchRequest, WatchResponse, WatchStarted, watch_response,
};
use portico_proto::rpc_status::to_rpc;
use portico_registry::{Answer, Body, ConnectOutcome, NamedResource, Registry};
use portico_routes::Routes;
use tonic::{Request, Response};

use super::{RpcResult, WriteGate, audit_records, authorize, caller};
use crate::queues::{Queues, RunningCall};
use call::CallProperties;
use stream::{ListMessages, WatchMessages};

/// Size of a protobuf list that an event records.
///
/// Limit (Audit, bytes): the list is omitted, with `audit.k8s.io/truncated`.
const MAX_LIST_RECORD: usize = 2 * 1024 * 1024;

/// Implementation of the service.
#[derive(Clone)]
pub(crate) struct ObjectsService {
    registry: Registry,
    routes: Routes,
    write_gate: WriteGate,
    queues: Queues,
}

impl ObjectsService {
    /// Creates the service. `routes` knows Services whose backends have their own addresses, `write_gate` blocks some writes, and
    /// `queues` assigns seats to native callers.
    pub(crate) fn new(registry: Registry, routes: Routes, write_gate: WriteGate, queues: Queues) -> Self {
        Self { registry, routes, write_gate, queues }
    }

    /// Waits for a seat (native callers), authorizes the call and passes it to the registry. Forwarded callers get a refusal as
    /// an answer, native ones as an error.
    async fn serve(
        &self,
        caller: &crate::chain::Caller,
        call: Option<portico_proto::objects::Call>,
    ) -> RpcResult<ServedCall> {
        let call = require_call(call)?;
        let mut call = call::from_proto(call, caller.user().clone(), caller.is_forwarded())?;
        let info = call::request_info(&call);
        audit_records::begin(caller, &info).await?;
        let running = self.queues.admit(caller, &info, &call.query).await?;
        authorize(caller, info).await?;
        call.own_account = caller.is_on_own_account();
        let properties = CallProperties::new(&call, !caller.is_forwarded());
        call.audit_detail = properties.recorded.max(audit_records::detail(caller));
        let answer = match self.write_gate.refusal(caller, || call::request_info(&call)) {
            Some(status) => Answer::status(status),
            None => self.registry.serve(call).await,
        };
        audit_records::record_answer(caller, &answer);
        match &answer.status {
            Some(status) if status.is_failure() && !caller.is_forwarded() => Err(to_rpc(status)),
            _ => Ok(ServedCall { answer, properties, running }),
        }
    }
}

/// Answer of the registry to a call.
struct ServedCall {
    answer: Answer,
    properties: CallProperties,
    /// Seat of the call, which is held until the answer is sent.
    running: RunningCall,
}

#[tonic::async_trait]
impl Objects for ObjectsService {
    type ListStream = ListMessages;
    type WatchStream = WatchMessages;

    async fn r#do(&self, request: Request<DoRequest>) -> RpcResult<Response<DoResponse>> {
        let caller = caller(&request)?;
        let served = self.serve(&caller, request.into_inner().call).await?;
        let ServedCall { answer, properties, running: _running } = served;
        Ok(Response::new(call::response(answer, &properties).await?))
    }

    async fn list(&self, request: Request<ListRequest>) -> RpcResult<Response<ListMessages>> {
        let caller = caller(&request)?;
        let served = self.serve(&caller, request.into_inner().call).await?;
        // The seat is released once the answer exists: a client that does not read would keep it from other calls.
        let ServedCall { mut answer, properties, .. } = served;
        let collector = audit_records::list_collector(&caller, &answer);
        let head = call::head(&mut answer, &properties, MAX_LIST_RECORD);
        Ok(Response::new(ListMessages::new(head, answer.body, collector)?))
    }

    async fn watch(&self, request: Request<WatchRequest>) -> RpcResult<Response<WatchMessages>> {
        let caller = caller(&request)?;
        let served = self.serve(&caller, request.into_inner().call).await?;
        let ServedCall { answer, properties, mut running } = served;
        let media_type = call::media_type(&answer, properties.native);
        let steps = match answer {
            Answer { body: Body::Watch(watch), warnings, audit, .. } => {
                let audit_annotations = audit.into_iter().collect();
                let (initial_frames, revision) = (watch.initial as u64, watch.start_revision);
                running.release_seat();
                let started =
                    WatchStarted { media_type, warnings, audit_annotations, initial_frames, revision };
                WatchMessages::with_frames(step(watch_response::Step::Started(started)), watch, running)
            }
            answer => {
                let refused = call::response(answer, &properties).await?;
                WatchMessages::from_first(step(watch_response::Step::Refused(refused)))
            }
        };
        Ok(Response::new(steps))
    }

    async fn connect(&self, request: Request<ConnectRequest>) -> RpcResult<Response<ConnectResponse>> {
        let caller = caller(&request)?;
        let call = require_call(request.into_inner().call)?;
        let mut call = call::from_proto(call, caller.user().clone(), caller.is_forwarded())?;
        let info = call::request_info(&call);
        audit_records::begin(&caller, &info).await?;
        authorize(&caller, info).await?;
        let properties = CallProperties::new(&call, !caller.is_forwarded());
        call.audit_detail = properties.recorded.max(audit_records::detail(&caller));
        let connected = match self.write_gate.refusal(&caller, || call::request_info(&call)) {
            Some(status) => ConnectOutcome::Answer(Answer::status(status)),
            None => self.registry.connect(call, &self.routes).await,
        };
        if let ConnectOutcome::Answer(answer) = &connected {
            audit_records::record_answer(&caller, answer);
        }
        let mut audit_annotations = HashMap::new();
        let decision = match connected {
            ConnectOutcome::Dial(dial, notes) => {
                audit_records::record_connect(&caller, &notes);
                audit_annotations.extend(notes);
                Decision::Dial(dial.into())
            }
            ConnectOutcome::Answer(Answer { status: Some(status), .. })
                if status.is_failure() && !caller.is_forwarded() =>
            {
                return Err(to_rpc(&status));
            }
            ConnectOutcome::Answer(answer) => Decision::Answered(call::response(answer, &properties).await?),
        };
        Ok(Response::new(ConnectResponse { audit_annotations, decision: Some(decision) }))
    }

    async fn resources(&self, request: Request<ResourcesRequest>) -> RpcResult<Response<ResourcesResponse>> {
        let caller = caller(&request)?;
        // Callers that may read discovery may call this method.
        let info = Attributes::path(caller.user().clone(), "get", "/apis").request.as_ref().clone();
        audit_records::begin(&caller, &info).await?;
        authorize(&caller, info).await?;
        let found = self.registry.objects().resources_named(&request.into_inner().name);
        Ok(Response::new(ResourcesResponse { resources: found.into_iter().map(resource).collect() }))
    }
}

fn resource(named_resource: NamedResource) -> Resource {
    Resource {
        group: named_resource.gvk.group,
        version: named_resource.gvk.version,
        resource: named_resource.resource,
        singular: named_resource.singular,
        kind: named_resource.gvk.kind,
        namespaced: named_resource.namespaced,
        short_names: named_resource.short_names,
        categories: named_resource.categories,
        verbs: named_resource.verbs,
        subresources: named_resource.subresources,
    }
}

fn require_call(call: Option<portico_proto::objects::Call>) -> RpcResult<portico_proto::objects::Call> {
    call.ok_or_else(|| tonic::Status::invalid_argument("call is required"))
}

fn step(step: watch_response::Step) -> WatchResponse {
    WatchResponse { step: Some(step), revision: 0, more: false }
}
