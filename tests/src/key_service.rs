//! A key service: a KMS v2 plugin on a Unix socket, whose keys are masks derived from their ids.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use portico_kit::tasks::TaskSet;
use portico_proto::kms as pb;
use portico_proto::kms::key_management_service_server::{KeyManagementService, KeyManagementServiceServer};
use tokio::net::UnixListener;
use tokio::runtime::{Builder, Runtime};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

/// A running key service. Dropping it ends it, and leaves its socket behind.
pub struct KeyServicePlugin {
    state: Arc<Mutex<State>>,
    /// Separate runtime, so that connections end with the service.
    runtime: Option<Runtime>,
}

/// Settings of the service, and its counters.
#[derive(Clone, Debug, Default)]
struct State {
    key_id: String,
    /// Keys that the service has lost.
    lost: Vec<String>,
    wrapped: usize,
    unwrapped: usize,
}

struct Plugin(Arc<Mutex<State>>);

impl KeyServicePlugin {
    /// Listens at this path, replacing a present socket, with the key of this id.
    pub fn start(socket: &Path, key_id: &str) -> Self {
        let _none = std::fs::remove_file(socket);
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = {
            let _entered = runtime.enter();
            UnixListener::bind(socket).expect("the socket can be made")
        };
        let state = Arc::new(Mutex::new(State { key_id: key_id.to_owned(), ..State::default() }));
        let tasks = TaskSet::new();
        let service = KeyManagementServiceServer::new(Plugin(Arc::clone(&state)));
        tasks.spawn_on(runtime.handle(), "key-service", async move {
            let incoming = UnixListenerStream::new(listener);
            Server::builder().add_service(service).serve_with_incoming(incoming).await.unwrap();
        });
        Self { state, runtime: Some(runtime) }
    }

    /// Wraps with this key from now on.
    pub fn rotate(&self, key_id: &str) {
        self.state.lock().unwrap().key_id = key_id.to_owned();
    }

    /// Removes this key: values that it wrapped cannot be unwrapped any more.
    pub fn lose_key(&self, key_id: &str) {
        self.state.lock().unwrap().lost.push(key_id.to_owned());
    }

    /// Returns how many keys were wrapped, and unwrapped.
    pub fn calls(&self) -> (usize, usize) {
        let state = self.state.lock().unwrap();
        (state.wrapped, state.unwrapped)
    }
}

impl Drop for KeyServicePlugin {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Applies the mask of a key, which is its own inverse.
fn mask(bytes: &[u8], key_id: &str) -> Vec<u8> {
    bytes.iter().zip(key_id.bytes().cycle()).map(|(byte, mask)| byte ^ mask).collect()
}

#[tonic::async_trait]
impl KeyManagementService for Plugin {
    async fn status(&self, _: Request<pb::StatusRequest>) -> Result<Response<pb::StatusResponse>, Status> {
        let key_id = self.0.lock().unwrap().key_id.clone();
        let (version, healthz) = ("v2".to_owned(), "ok".to_owned());
        Ok(Response::new(pb::StatusResponse { version, healthz, key_id }))
    }

    async fn encrypt(
        &self,
        request: Request<pb::EncryptRequest>,
    ) -> Result<Response<pb::EncryptResponse>, Status> {
        let mut state = self.0.lock().unwrap();
        state.wrapped += 1;
        let ciphertext = mask(&request.into_inner().plaintext, &state.key_id);
        let annotations = HashMap::from([("plugin.example.com".to_owned(), b"1".to_vec())]);
        Ok(Response::new(pb::EncryptResponse { ciphertext, key_id: state.key_id.clone(), annotations }))
    }

    async fn decrypt(
        &self,
        request: Request<pb::DecryptRequest>,
    ) -> Result<Response<pb::DecryptResponse>, Status> {
        let mut state = self.0.lock().unwrap();
        let request = request.into_inner();
        if state.lost.contains(&request.key_id) {
            return Err(Status::not_found("the key is gone"));
        }
        assert_eq!(request.annotations.get("plugin.example.com").map(Vec::as_slice), Some(b"1".as_slice()));
        state.unwrapped += 1;
        Ok(Response::new(pb::DecryptResponse { plaintext: mask(&request.ciphertext, &request.key_id) }))
    }
}
