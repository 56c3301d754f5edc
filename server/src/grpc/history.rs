//! `portico.history.v1`: past states of objects, and their restoration.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, TryStreamExt, stream};
use portico_kit::spans;
use portico_machinery::{GroupVersionResource, Object, RequestInfo, Status};
use portico_proto::history as pb;
use portico_proto::history::history_server::History;
use portico_proto::history::list_request::At;
use portico_registry::{
    Context, DecodedPastState, ObjectHistory, PastRange, Registry, RestoreRequest, ServedResource, Target,
    last_change, last_manager,
};
use portico_store::{EventType, with_single_revision_check};
use tonic::{Request, Response};

use super::{RpcResult, WriteGate, audit_records, authorize_message, caller, to_grpc_status};
use crate::chain::Caller;
use crate::queues::{Queues, RunningCall};

/// Verb that is required to read past states.
const VERB: &str = "history";
/// States in one History response without objects.
///
/// Limit (Storage and watches): the rest is in the next page.
const MAX_STATES: u32 = 1_000;
/// States in one History response by default, and at most with objects.
///
/// Limit (Storage and watches): the rest is in the next page.
const DEFAULT_STATES: u32 = 100;
/// Bytes of objects in one History response, unless its only object is larger.
///
/// Limit (Storage and watches, bytes): the rest is in the next page.
const MAX_OBJECT_BYTES: usize = 1 << 20;
/// Number of objects that are read at a time for a list.
const LISTED_AT_ONCE: usize = 100;

/// Implementation of the service.
pub(crate) struct HistoryService {
    pub(crate) registry: Registry,
    pub(crate) write_gate: WriteGate,
    pub(crate) queues: Queues,
}

/// Call that is authorized to read the past states of a target.
struct AllowedCall {
    caller: Caller,
    served: Arc<ServedResource>,
    target: Target,
    /// Namespace of the target's objects.
    namespace: String,
    /// Revision at which the history begins that the caller may read.
    history_start: i64,
    /// Seat of the call, which is held until the response is complete.
    running: RunningCall,
}

impl HistoryService {
    /// Waits for a seat and authorizes the caller to read the past states of a target.
    async fn begin_call(&self, caller: Caller, target: Option<pb::Target>) -> RpcResult<AllowedCall> {
        let is_named = target.is_some();
        let pb::Target { group, version, resource, namespace, name } = target.unwrap_or_default();
        let target = Target { group, version, resource, namespace, name, ..Target::default() };
        let info = target.request_info(VERB, "");
        audit_records::begin(&caller, &info).await?;
        let running = self.queues.admit(&caller, &info, "").await?;
        authorize_message(&caller, info.clone()).await?;
        if !is_named {
            return Err(tonic::Status::invalid_argument("target is required"));
        }
        let resource = GroupVersionResource {
            group: target.group.clone(),
            version: target.version.clone(),
            resource: target.resource.clone(),
        };
        let served = self.registry.objects().by_resource(&resource);
        let served = served.ok_or_else(|| to_grpc_status(Status::route_not_found()))?;
        // The authorization is for the namespace in the target, which must be that of the objects.
        let namespace = served.namespace_of(&target).map_err(to_grpc_status)?.to_owned();
        let history_start = self.history_start(&caller, info).await?;
        Ok(AllowedCall { caller, served, target, namespace, history_start, running })
    }

    /// Returns the revision at which the history of an authorized request begins. Objects of an earlier namespace with the same
    /// name are visible only to callers that may read the history of all namespaces.
    async fn history_start(&self, caller: &Caller, info: RequestInfo) -> RpcResult<i64> {
        let namespace = info.namespace.clone();
        if namespace.is_empty() || caller.is_allowed(RequestInfo { namespace: String::new(), ..info }).await {
            return Ok(0);
        }
        self.registry.namespace_history_start(&namespace).await.map_err(to_grpc_status)
    }

    async fn restore_object(
        &self,
        allowed: &AllowedCall,
        request: &pb::RestoreRequest,
    ) -> RpcResult<pb::RestoreResponse> {
        let AllowedCall { caller, served, target, namespace, .. } = allowed;
        let name = &*target.name;
        let exists =
            self.registry.objects().read(served, namespace, name).await.map_err(to_grpc_status)?.is_some();
        let info = target.request_info(if exists { "update" } else { "create" }, "");
        authorize_message(caller, info.clone()).await?;
        if let Some(status) = self.write_gate.refusal(caller, || info) {
            return Err(to_grpc_status(status));
        }
        if exists && request.revision == 0 {
            let message = format!("{} {name:?} exists: specify the revision to restore", served.resource);
            return Err(to_grpc_status(Status::bad_request(message)));
        }
        let restore_request = RestoreRequest {
            revision: (request.revision > 0).then_some(request.revision),
            since: allowed.history_start,
            exists,
            dry_run: request.dry_run,
        };
        let context = Context::new(caller.user().clone(), "grpc");
        let restored = self.registry.restore(&context, served, (namespace, name), &restore_request).await;
        let restored = restored.map_err(to_grpc_status)?;
        let mut object = restored.result.stored.object().clone();
        served.to_version(&mut object);
        Ok(pb::RestoreResponse {
            object: object.to_json().into(),
            revision: restored.revision,
            created: restored.result.created,
            warnings: restored.result.warnings,
        })
    }
}

#[tonic::async_trait]
impl History for HistoryService {
    type ListStream = Pin<Box<dyn Stream<Item = RpcResult<pb::ListResponse>> + Send>>;

    async fn states(&self, request: Request<pb::StatesRequest>) -> RpcResult<Response<pb::StatesResponse>> {
        let caller = caller(&request)?;
        let pb::StatesRequest { target, before, limit, objects } = request.into_inner();
        let allowed = self.begin_call(caller, target).await?;
        require_name(&allowed.target)?;
        let most = if objects { DEFAULT_STATES } else { MAX_STATES };
        let limit = if limit == 0 { DEFAULT_STATES } else { limit.min(most) };
        let namespace_and_name = (&*allowed.namespace, &*allowed.target.name);
        let before = (before > 0).then_some(before);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let latest = self.registry.store().latest_revision().await;
        let revision = latest.map_err(|error| to_grpc_status(Status::unavailable(error.to_string())))?;
        let range = PastRange { since: allowed.history_start, before, limit };
        let read = move |past: ObjectHistory| states_response(&past, revision, objects);
        let answer = self.registry.past_states(&allowed.served, namespace_and_name, range, read).await;
        answer.map(Response::new).map_err(to_grpc_status)
    }

    async fn list(&self, request: Request<pb::ListRequest>) -> RpcResult<Response<Self::ListStream>> {
        let caller = caller(&request)?;
        let pb::ListRequest { target, at } = request.into_inner();
        let allowed = self.begin_call(caller, target).await?;
        let store = self.registry.store();
        let unavailable =
            |error: portico_store::StoreError| to_grpc_status(Status::unavailable(error.to_string()));
        let revision = match at {
            None => store.latest_revision().await.map_err(unavailable)?,
            Some(At::Revision(revision)) => revision,
            Some(At::Time(time)) if time >= jiff::Timestamp::now().as_second() => {
                store.latest_revision().await.map_err(unavailable)?
            }
            Some(At::Time(time)) => match store.revision_at(time).await.map_err(unavailable)? {
                0 => return Err(to_grpc_status(Status::expired("no history is retained from that time"))),
                revision => revision,
            },
        };
        if revision < allowed.history_start {
            let message =
                format!("the history of this namespace begins at revision {}", allowed.history_start);
            return Err(to_grpc_status(Status::expired(&message)));
        }
        Ok(Response::new(Box::pin(list_stream(self.registry.clone(), allowed, revision))))
    }

    async fn restore(
        &self,
        request: Request<pb::RestoreRequest>,
    ) -> RpcResult<Response<pb::RestoreResponse>> {
        let caller = caller(&request)?;
        let mut request = request.into_inner();
        let allowed = self.begin_call(caller, request.target.take()).await?;
        require_name(&allowed.target)?;
        let restored = self.restore_object(&allowed, &request).await;
        drop(allowed.running);
        restored.map(Response::new)
    }
}

/// Returns all objects at a revision, in messages; at least one message, which contains the revision.
fn list_stream(
    registry: Registry,
    allowed: AllowedCall,
    revision: i64,
) -> impl Stream<Item = RpcResult<pb::ListResponse>> + Send {
    let begin = Some(None::<String>);
    let parts = stream::try_unfold(begin, move |next| {
        let (registry, served) = (registry.clone(), Arc::clone(&allowed.served));
        let (namespace, name) = (allowed.namespace.clone(), allowed.target.name.clone());
        async move {
            let Some(after) = next else { return Ok(None) };
            let threads = registry.clone();
            let work = async move {
                let namespace_and_name = (&*namespace, &*name);
                let page = registry
                    .list_past(&served, namespace_and_name, revision, (after, LISTED_AT_ONCE))
                    .await?;
                let objects = page.objects.iter().map(|object| Bytes::from(object.to_json())).collect();
                Ok((parts(revision, objects, page.unreadable), page.next))
            };
            // Decoding a page takes long.
            let work = spans::current().instrument_part(with_single_revision_check(work));
            let page = threads.objects().compute(true, work).await.and_then(|page| page);
            let (parts, next) = page.map_err(to_grpc_status)?;
            RpcResult::Ok(Some((stream::iter(parts.into_iter().map(RpcResult::Ok)), next.map(Some))))
        }
    });
    parts.try_flatten()
}

/// Splits objects into messages of limited size.
fn parts(revision: i64, mut objects: VecDeque<Bytes>, unreadable: Vec<String>) -> Vec<pb::ListResponse> {
    let mut parts = vec![pb::ListResponse { revision, objects: Vec::new(), unreadable }];
    let mut bytes = 0;
    while let Some(object) = objects.pop_front() {
        if bytes + object.len() > MAX_OBJECT_BYTES && bytes > 0 {
            parts.push(pb::ListResponse { revision, ..pb::ListResponse::default() });
            bytes = 0;
        }
        bytes += object.len();
        if let Some(part) = parts.last_mut() {
            part.objects.push(object);
        }
    }
    parts
}

/// Returns the states of an object in one message of limited size.
fn states_response(past: &ObjectHistory, revision: i64, objects: bool) -> pb::StatesResponse {
    let mut answer = pb::StatesResponse {
        states: Vec::new(),
        more: past.has_more,
        complete_from: past.complete_from,
        revision,
    };
    let mut bytes = 0;
    for (index, state_at) in past.states.iter().enumerate() {
        let before = past.states.get(index + 1).and_then(|before| before.object.as_ref().ok());
        let state = state(state_at, before, objects);
        bytes += state.object.len();
        if bytes > MAX_OBJECT_BYTES && index > 0 {
            answer.more = true;
            break;
        }
        answer.states.push(state);
    }
    answer
}

fn state(past: &DecodedPastState, before: Option<&Object>, objects: bool) -> pb::State {
    let change = match past.state.change {
        EventType::Added => pb::Change::Created,
        EventType::Modified => pb::Change::Updated,
        EventType::Deleted => pb::Change::Deleted,
    };
    let (object, unreadable) = match &past.object {
        Ok(object) => (Some(object), String::new()),
        Err(error) => (None, error.clone()),
    };
    // A deletion changes no fields, so the fields describe the last write before it.
    let stored_object = object.filter(|_| past.state.change != EventType::Deleted);
    pb::State {
        revision: past.state.revision(),
        change: change.into(),
        written: past.state.written_at.or_else(|| stored_object.and_then(last_change)).unwrap_or_default(),
        uid: object.map(|object| object.uid().to_owned()).unwrap_or_default(),
        manager: stored_object.and_then(|object| last_manager(object, before)).unwrap_or_default(),
        object: object.filter(|_| objects).map(|object| object.to_json().into()).unwrap_or_default(),
        unreadable,
    }
}

fn require_name(target: &Target) -> RpcResult<()> {
    match target.name.is_empty() {
        true => Err(tonic::Status::invalid_argument("target.name is required")),
        false => Ok(()),
    }
}
