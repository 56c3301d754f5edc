//! A client of a run: random requests for a few objects, each recorded with its response.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio_util::sync::CancellationToken;

use super::history::{Content, Operation, Patch, Request, Response, State};
use super::object;
use super::transport::{Outcome, Transport, TransportRequest};
use super::watch_record::ListedStates;

use crate::Failure;

/// Maximum pause between two requests of a client, in milliseconds.
const MAX_PAUSE_MS: u64 = 30;
/// Pause after a request that could not be sent, in milliseconds.
const FAILURE_PAUSE_MS: u64 = 100;
/// Maximum attempts of the last writes.
const LAST_ATTEMPTS: usize = 100;

/// Record of all requests of the clients.
pub(crate) struct Recorder {
    begun: Instant,
    next: AtomicU64,
    objects: Vec<String>,
    pub(crate) operations: Mutex<Vec<Operation>>,
    pub(crate) lists: Mutex<Vec<(String, ListedStates)>>,
    /// Last state of each object that a client saw; updates are based on it.
    last_states: Mutex<BTreeMap<String, State>>,
    /// Text of responses that no client may ever receive.
    pub(crate) unexpected: Mutex<Vec<String>>,
}

impl Recorder {
    /// Creates a recorder for a run with this number of objects.
    pub(crate) fn new(objects: usize) -> Self {
        Self {
            begun: Instant::now(),
            next: AtomicU64::new(1),
            objects: (0..objects).map(|at| format!("object-{at}")).collect(),
            operations: Mutex::default(),
            lists: Mutex::default(),
            last_states: Mutex::default(),
            unexpected: Mutex::default(),
        }
    }

    /// Returns the nanoseconds since the run began.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn record(&self, operation: Operation) {
        if let Response::State(state) = &operation.response {
            self.last_states.lock().insert(operation.object.clone(), state.clone());
        }
        self.operations.lock().push(operation);
    }

    /// Records a list as a read of every object.
    fn record_list(&self, client: &str, start_time: u64, list: ListedStates) {
        let ended = self.now();
        for object in &self.objects {
            let response = list.states.get(object).cloned().map_or(Response::Absent, Response::State);
            let (client, object) = (client.to_owned(), object.clone());
            self.record(Operation {
                id: self.next_id(),
                client,
                object,
                begun: start_time,
                ended,
                request: Request::Read,
                response,
            });
        }
        self.lists.lock().push((client.to_owned(), list));
    }
}

/// A client that sends requests until it is stopped.
pub(crate) struct Actor {
    pub(crate) name: String,
    pub(crate) transport: Transport,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) seed: u64,
    /// Reason for the last response of unknown outcome.
    pub(crate) failure: String,
}

impl Actor {
    /// Sends random requests.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut random = StdRng::seed_from_u64(self.seed);
        while !stop.is_cancelled() {
            let sent = self.act(&mut random).await;
            let pause = if sent { random.random_range(0..MAX_PAUSE_MS) } else { FAILURE_PAUSE_MS };
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    /// Sends one request; returns true if it was sent.
    async fn act(&mut self, random: &mut StdRng) -> bool {
        if random.random_range(0..100) < 4 {
            return self.list().await;
        }
        let object = self.recorder.objects[random.random_range(0..self.recorder.objects.len())].clone();
        let last_state = self.recorder.last_states.lock().get(&object).cloned();
        let id = self.recorder.next_id();
        let chosen = random_request(random, id, &object, last_state);
        self.perform(id, &object, chosen).await.0
    }

    /// Sends a consistent list; returns true if it succeeded.
    pub(crate) async fn list(&mut self) -> bool {
        let start_time = self.recorder.now();
        let outcome =
            self.transport.send(TransportRequest { verb: "list", name: "", body: String::new() }).await;
        let Outcome::Response(200, body) = outcome else { return false };
        match object::list(&body) {
            Ok(list) => self.recorder.record_list(&self.name, start_time, list),
            Err(failure) => self.record_unexpected("a list", &failure),
        }
        true
    }

    /// Writes an object a last time, whether it exists or not; returns the revision.
    pub(crate) async fn write_last(&mut self, object: &str, group: &str) -> Result<u64, Failure> {
        for _ in 0..LAST_ATTEMPTS {
            for verb in ["patch", "create"] {
                let (id, group) = (self.recorder.next_id(), group.to_owned());
                let (body, request) = if verb == "patch" {
                    let patch = Patch { writer: id, mark: "last".to_owned(), group: Some(group) };
                    (object::patch(&patch), Request::Patch(patch))
                } else {
                    let content = Content { writer: id, group, ..Content::default() };
                    (object::encode(object, &content, None), Request::Create(content))
                };
                if let (_, Response::State(state)) = self.perform(id, object, (verb, body, request)).await {
                    return Ok(state.revision);
                }
            }
            tokio::time::sleep(Duration::from_millis(FAILURE_PAUSE_MS)).await;
        }
        let Self { name, failure, .. } = self;
        Err(format!("{name}: {object} cannot be written although all faults are healed: {failure}").into())
    }

    /// Sends a request for an object and records it; returns whether there was a response, and the response.
    async fn perform(
        &mut self,
        id: u64,
        object: &str,
        (verb, body, request): (&'static str, String, Request),
    ) -> (bool, Response) {
        let start_time = self.recorder.now();
        let outcome = self.transport.send(TransportRequest { verb, name: object, body }).await;
        let (answered, response) = self.response(&request, outcome);
        let (client, object, ended) = (self.name.clone(), object.to_owned(), self.recorder.now());
        let recorded = response.clone();
        self.recorder.record(Operation {
            id,
            client,
            object,
            begun: start_time,
            ended,
            request,
            response: recorded,
        });
        (answered, response)
    }

    fn record_unexpected(&self, what: &str, failure: &Failure) {
        self.recorder.unexpected.lock().push(format!("{}: {what}: {failure}", self.name));
    }

    fn response(&mut self, request: &Request, outcome: Outcome) -> (bool, Response) {
        let (code, body) = match outcome {
            Outcome::NotSent(why) => return (false, Response::Refused(why)),
            Outcome::Unknown(why) => {
                self.failure = why;
                return (false, Response::Unknown);
            }
            Outcome::Response(code, body) => (code, body),
        };
        let response = match (code, request) {
            (200, Request::Delete(_)) => object::deleted_uid(&body).map(Response::Deleted),
            (200 | 201, _) => object::state(&body).map(Response::State),
            (404, _) => Ok(Response::Absent),
            (409, Request::Create(_)) => Ok(Response::Exists),
            (409, _) => Ok(Response::Conflict),
            // 401: a stepped clock of the process is outside of the validity of the client's certificate.
            (401 | 429, _) => Ok(Response::Refused(code.to_string())),
            (500 | 502..=504 | 507, _) => {
                self.failure = format!("{code}: {}", String::from_utf8_lossy(&body));
                Ok(Response::Unknown)
            }
            _ => Err(format!("{code}: {}", String::from_utf8_lossy(&body)).into()),
        };
        match response {
            Ok(response) => (!matches!(response, Response::Unknown | Response::Refused(_)), response),
            Err(failure) => {
                self.record_unexpected(&format!("{request:?}"), &failure);
                (true, Response::Unknown)
            }
        }
    }
}

/// Returns a random request: its verb, its body, and its record.
fn random_request(
    random: &mut StdRng,
    id: u64,
    object: &str,
    last_state: Option<State>,
) -> (&'static str, String, Request) {
    let group = |random: &mut StdRng| if random.random_bool(0.5) { "a" } else { "b" }.to_owned();
    match (random.random_range(0..100), last_state) {
        (0..30, _) => ("get", String::new(), Request::Read),
        (30..55, Some(state)) => {
            let State { revision, content, .. } = state;
            let content = Content { writer: id, count: content.count + 1, group: group(random), ..content };
            ("update", object::encode(object, &content, Some(revision)), Request::Update(revision, content))
        }
        (55..78, _) => {
            let mark = random.random_range(0..4_u8).to_string();
            let group = random.random_bool(0.3).then(|| group(random));
            let patch = Patch { writer: id, mark, group };
            ("patch", object::patch(&patch), Request::Patch(patch))
        }
        (78..86, last_state) => {
            let uid = last_state.filter(|_| random.random_bool(0.5)).map(|state| state.uid);
            ("delete", object::delete_options(uid.as_deref()), Request::Delete(uid))
        }
        _ => {
            let content = Content { writer: id, group: group(random), ..Content::default() };
            ("create", object::encode(object, &content, None), Request::Create(content))
        }
    }
}
