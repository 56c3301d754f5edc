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
use portico_registry::{Answer, Body, Connected, NamedResource, Registry};
use portico_routes::Routes;
use tonic::{Request, Response};

use super::{Hold, RpcResult, authorize, caller, recorded};
use crate::queues::{Queues, Running};
use call::Asked;
use stream::{ListParts, WatchSteps};

/// Size of a protobuf list that an event records.
///
/// Limit (Audit, bytes): the list is omitted, with `audit.k8s.io/truncated`.
const MAX_LIST_RECORD: usize = 2 * 1024 * 1024;

/// Implementation of the service.
#[derive(Clone)]
pub(crate) struct ObjectsService {
    registry: Registry,
    routes: Routes,
    hold: Hold,
    queues: Queues,
}

impl ObjectsService {
    /// Creates the service. `routes` knows Services whose backends have their own addresses, `write_gate` blocks some writes, and
    /// `queues` assigns seats to native callers.
    pub(crate) fn new(registry: Registry, routes: Routes, hold: Hold, queues: Queues) -> Self {
        Self { registry, routes, hold, queues }
    }

    /// Waits for a seat (native callers), authorizes the call and passes it to the registry. Forwarded callers get a refusal as
    /// an answer, native ones as an error.
    async fn serve(
        &self,
        caller: &crate::chain::Caller,
        call: Option<portico_proto::objects::Call>,
    ) -> RpcResult<Served> {
        let call = required(call)?;
        let mut call = call::from_proto(call, caller.user().clone(), caller.is_forwarded())?;
        let info = call::request_info(&call);
        recorded::begin(caller, &info).await?;
        let running = self.queues.turn(caller, &info, &call.query).await?;
        authorize(caller, info).await?;
        call.own_account = caller.asks_on_own_account();
        let asked = Asked::of(&call, !caller.is_forwarded());
        call.recorded = asked.recorded.max(recorded::wanted(caller));
        let answer = match self.hold.refusal(caller, || call::request_info(&call)) {
            Some(status) => Answer::status(status),
            None => self.registry.serve(call).await,
        };
        recorded::note(caller, &answer);
        match &answer.status {
            Some(status) if status.is_failure() && !caller.is_forwarded() => Err(to_rpc(status)),
            _ => Ok(Served { answer, asked, running }),
        }
    }
}

/// Answer of the registry to a call.
struct Served {
    answer: Answer,
    asked: Asked,
    /// Seat of the call, which is held until the answer is sent.
    running: Running,
}

#[tonic::async_trait]
impl Objects for ObjectsService {
    type ListStream = ListParts;
    type WatchStream = WatchSteps;

    async fn r#do(&self, request: Request<DoRequest>) -> RpcResult<Response<DoResponse>> {
        let caller = caller(&request)?;
        let served = self.serve(&caller, request.into_inner().call).await?;
        let Served { answer, asked, running: _running } = served;
        Ok(Response::new(call::response(answer, &asked).await?))
    }

    async fn list(&self, request: Request<ListRequest>) -> RpcResult<Response<ListParts>> {
        let caller = caller(&request)?;
        let served = self.serve(&caller, request.into_inner().call).await?;
        // The seat is released once the answer exists: a client that does not read would keep it from other calls.
        let Served { mut answer, asked, .. } = served;
        let gathered = recorded::gathered(&caller, &answer);
        let head = call::head(&mut answer, &asked, MAX_LIST_RECORD);
        Ok(Response::new(ListParts::new(head, answer.body, gathered)?))
    }

    async fn watch(&self, request: Request<WatchRequest>) -> RpcResult<Response<WatchSteps>> {
        let caller = caller(&request)?;
        let served = self.serve(&caller, request.into_inner().call).await?;
        let Served { answer, asked, mut running } = served;
        let media_type = call::media_type(&answer, asked.native);
        let steps = match answer {
            Answer { body: Body::Watch(watch), warnings, audit, .. } => {
                let audit_annotations = audit.into_iter().collect();
                let (initial_frames, revision) = (watch.initial as u64, watch.from);
                running.leave_seat();
                let started =
                    WatchStarted { media_type, warnings, audit_annotations, initial_frames, revision };
                WatchSteps::frames(step(watch_response::Step::Started(started)), watch, running)
            }
            answer => {
                let refused = call::response(answer, &asked).await?;
                WatchSteps::only(step(watch_response::Step::Refused(refused)))
            }
        };
        Ok(Response::new(steps))
    }

    async fn connect(&self, request: Request<ConnectRequest>) -> RpcResult<Response<ConnectResponse>> {
        let caller = caller(&request)?;
        let call = required(request.into_inner().call)?;
        let mut call = call::from_proto(call, caller.user().clone(), caller.is_forwarded())?;
        let info = call::request_info(&call);
        recorded::begin(&caller, &info).await?;
        authorize(&caller, info).await?;
        let asked = Asked::of(&call, !caller.is_forwarded());
        call.recorded = asked.recorded.max(recorded::wanted(&caller));
        let connected = match self.hold.refusal(&caller, || call::request_info(&call)) {
            Some(status) => Connected::Answered(Answer::status(status)),
            None => self.registry.connect(call, &self.routes).await,
        };
        if let Connected::Answered(answer) = &connected {
            recorded::note(&caller, answer);
        }
        let mut audit_annotations = HashMap::new();
        let decision = match connected {
            Connected::Dial(dial, notes) => {
                recorded::connects(&caller, &notes);
                audit_annotations.extend(notes);
                Decision::Dial(dial.into())
            }
            Connected::Answered(Answer { status: Some(status), .. })
                if status.is_failure() && !caller.is_forwarded() =>
            {
                return Err(to_rpc(&status));
            }
            Connected::Answered(answer) => Decision::Answered(call::response(answer, &asked).await?),
        };
        Ok(Response::new(ConnectResponse { audit_annotations, decision: Some(decision) }))
    }

    async fn resources(&self, request: Request<ResourcesRequest>) -> RpcResult<Response<ResourcesResponse>> {
        let caller = caller(&request)?;
        // Callers that may read discovery may call this method.
        let info = Attributes::path(caller.user().clone(), "get", "/apis").request.as_ref().clone();
        recorded::begin(&caller, &info).await?;
        authorize(&caller, info).await?;
        let found = self.registry.objects().resources_named(&request.into_inner().name);
        Ok(Response::new(ResourcesResponse { resources: found.into_iter().map(resource).collect() }))
    }
}

fn resource(named: NamedResource) -> Resource {
    Resource {
        group: named.gvk.group,
        version: named.gvk.version,
        resource: named.resource,
        singular: named.singular,
        kind: named.gvk.kind,
        namespaced: named.namespaced,
        short_names: named.short_names,
        categories: named.categories,
        verbs: named.verbs,
        subresources: named.subresources,
    }
}

fn required(call: Option<portico_proto::objects::Call>) -> RpcResult<portico_proto::objects::Call> {
    call.ok_or_else(|| tonic::Status::invalid_argument("call is required"))
}

fn step(step: watch_response::Step) -> WatchResponse {
    WatchResponse { step: Some(step), revision: 0, more: false }
}
