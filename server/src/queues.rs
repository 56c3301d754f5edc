//! Priority and fairness for native gRPC callers: their calls for objects wait for seats, as HTTP requests do in a facade.
//!
//! Calls that facades forward have had a seat there. This module does not depend on messages: it receives attributes of calls.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use portico_controllers::flow_feed::FlowChanges;
use portico_flow::{
    Dispatcher, FlowMetrics, FlowRequest, FlowRules, Seat, SeatDecision, SeatWaker, WatchGuard,
};
use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use portico_machinery::flow_control::{Fact, Key, StoredObjects};
use portico_machinery::{RequestInfo, Status, UserInfo};
use portico_proto::rpc_status::to_rpc;

use crate::chain::Caller;

/// Queues for native callers. Cheap to clone; without seats, calls do not wait.
#[derive(Clone)]
pub(crate) struct Queues(Option<Arc<Inner>>);

struct Inner {
    dispatcher: Dispatcher,
    facts: Mutex<BTreeMap<Key, Fact>>,
    rules: ArcSwap<FlowRules<SeatWaker>>,
}

/// Running call: its seat, and its registration as a watch, from which the cost of writes is estimated.
#[derive(Default)]
pub(crate) struct RunningCall {
    seat: Option<Seat>,
    _watch: Option<WatchGuard>,
}

impl RunningCall {
    /// Releases the seat of the call.
    pub(crate) fn release_seat(&mut self) {
        self.seat = None;
    }
}

impl Queues {
    /// Creates queues with a number of seats. Calls without a deadline wait according to `call_time`. The metrics have their own
    /// prefix, because an all-in-one process registers the queues of a facade as well.
    pub(crate) fn new(seats: Option<usize>, call_time: Duration, registry: &Registry) -> Self {
        Self(seats.map(|seats| {
            let dispatcher = Dispatcher::new(seats, call_time, |_, _, _| {});
            let metrics = FlowMetrics { dispatcher: dispatcher.clone(), prefix: "portico_grpc_flowcontrol" };
            registry.register_collector(Box::new(metrics));
            let rules = ArcSwap::from_pointee(dispatcher.apply_config(&[], &[]));
            Arc::new(Inner { dispatcher, facts: Mutex::default(), rules })
        }))
    }

    /// Rebalances seats between priority levels until the tasks end.
    pub(crate) fn run(&self, tasks: &TaskSet) {
        if let Some(inner) = &self.0 {
            tasks.spawn_until_cancelled("flow-rebalance", inner.dispatcher.clone().rebalance());
            tasks.spawn_until_cancelled("flow-give-back", inner.dispatcher.clone().release_due_seats());
        }
    }

    /// Applies changes of flow schemas and priority levels.
    pub(crate) fn apply_changes(&self, changes: &FlowChanges) {
        let Some(inner) = &self.0 else { return };
        let mut facts = inner.facts.lock();
        for (key, fact) in changes {
            match fact {
                Some(fact) => facts.insert(key.clone(), fact.clone()),
                None => facts.remove(key),
            };
        }
        let (mut schemas, mut levels) = (Vec::new(), Vec::new());
        for fact in facts.values() {
            match fact {
                Fact::Schema(schema) => schemas.push(Arc::clone(schema)),
                Fact::Level(level) => levels.push(Arc::clone(level)),
            }
        }
        inner.rules.store(Arc::new(inner.dispatcher.apply_config(&schemas, &levels)));
    }

    /// Sets the numbers of stored objects by `resource.group`, from which the cost of lists is estimated.
    pub(crate) fn set_stored(&self, stored: HashMap<String, StoredObjects>) {
        if let Some(inner) = &self.0 {
            inner.dispatcher.set_stored(stored);
        }
    }

    /// Waits until a call may run.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED, with the time after which the client should retry.
    pub(crate) async fn admit(
        &self,
        caller: &Caller,
        request: &RequestInfo,
        query: &str,
    ) -> Result<RunningCall, tonic::Status> {
        match &self.0 {
            Some(inner) if caller.facade_name().is_none() => {
                inner.admit(caller.user(), request, query).await.map_err(|status| to_rpc(&status))
            }
            _ => Ok(RunningCall::default()),
        }
    }
}

impl Inner {
    async fn admit(
        &self,
        user: &UserInfo,
        request: &RequestInfo,
        query: &str,
    ) -> Result<RunningCall, Box<Status>> {
        let (rules, received) = (self.rules.load_full(), Instant::now());
        let Some(matched_schema) = rules.classify(user, request) else { return Ok(RunningCall::default()) };
        let (user, info) = (Arc::new(user.clone()), Arc::new(request.clone()));
        let flow_request = FlowRequest { user: &user, info: &info, query, received, deadline: None };
        let seat = match self.dispatcher.request_seat(flow_request, matched_schema) {
            SeatDecision::Run(seat) => Ok(seat),
            SeatDecision::Wait(wait) => wait.seat().await,
            SeatDecision::Reject(seconds) => Err(seconds),
        };
        let seat = seat.map_err(|seconds| {
            let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
            Box::new(Status::too_many_requests("Too many requests, please try again later.", seconds))
        })?;
        let watch = (request.verb == "watch").then(|| self.dispatcher.register_watch(request));
        Ok(RunningCall { seat: Some(seat), _watch: watch })
    }
}
