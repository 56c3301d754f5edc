//! An external signer of service accounts' tokens on a Unix socket, with keys that rotate and headers that may be wrong.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use portico_kit::tasks::TaskSet;
use portico_proto::externaljwt as pb;
use portico_proto::externaljwt::external_jwt_signer_server::{ExternalJwtSigner, ExternalJwtSignerServer};
use rcgen::{KeyPair, PKCS_RSA_SHA256, PublicKeyData as _, SigningKey as _};
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::runtime::{Builder, Runtime};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

/// A running signer. Dropping it ends it, and leaves its socket behind.
pub struct TokenSigner {
    state: Arc<Mutex<SignerState>>,
    /// Separate runtime, so that connections end with the signer.
    runtime: Option<Runtime>,
}

/// Settings and counters of the signer.
pub struct SignerState {
    /// ID of the signing key.
    pub signing_key: String,
    /// Fields that are added to headers, or replace fields.
    pub header: Value,
    /// Maximum lifetime of tokens, in seconds.
    pub max_lifetime: i64,
    /// Time after which keys should be fetched again, in seconds.
    pub refresh_hint: i64,
    /// Number of key fetches.
    pub fetches: usize,
    keys: Vec<Key>,
}

struct Key {
    id: String,
    pair: KeyPair,
    excluded: bool,
}

impl SignerState {
    /// Adds a key.
    pub fn add_key(&mut self, id: &str, excluded: bool) {
        let pair = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
        self.keys.push(Key { id: id.to_owned(), pair, excluded });
    }

    /// Returns a token with these claims (base64url), signed with this key.
    pub fn token(&self, id: &str, claims: &str) -> Option<String> {
        let key = self.keys.iter().find(|key| key.id == id)?;
        let mut header = json!({"alg": "RS256", "kid": key.id, "typ": "JWT"});
        header.as_object_mut().unwrap().extend(self.header.as_object().unwrap().clone());
        let message = format!("{}.{claims}", URL_SAFE_NO_PAD.encode(header.to_string()));
        let signature = URL_SAFE_NO_PAD.encode(key.pair.sign(message.as_bytes()).unwrap());
        Some(format!("{message}.{signature}"))
    }

    /// Removes a key.
    pub fn remove_key(&mut self, id: &str) {
        self.keys.retain(|key| key.id != id);
    }
}

struct Signer(Arc<Mutex<SignerState>>);

impl TokenSigner {
    /// Listens at this path, with a signing key `one` and a refresh hint of an hour.
    pub fn start(socket: &Path) -> Self {
        let mut state = SignerState {
            signing_key: "one".to_owned(),
            header: json!({}),
            max_lifetime: 86_400,
            refresh_hint: 3600,
            fetches: 0,
            keys: Vec::new(),
        };
        state.add_key("one", false);
        Self::resume(socket, Arc::new(Mutex::new(state)))
    }

    fn resume(socket: &Path, state: Arc<Mutex<SignerState>>) -> Self {
        let _none = std::fs::remove_file(socket);
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = {
            let _entered = runtime.enter();
            UnixListener::bind(socket).expect("the socket can be made")
        };
        let service = ExternalJwtSignerServer::new(Signer(Arc::clone(&state)));
        TaskSet::new().spawn_on(runtime.handle(), "token-signer", async move {
            let incoming = UnixListenerStream::new(listener);
            Server::builder().add_service(service).serve_with_incoming(incoming).await.unwrap();
        });
        Self { state, runtime: Some(runtime) }
    }

    /// Changes the settings.
    pub fn update<T>(&self, change: impl FnOnce(&mut SignerState) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    /// Stops the signer; the returned function starts it again at the same socket.
    pub fn stop(mut self, socket: &Path) -> impl FnOnce() -> Self + use<> {
        let (state, socket) = (Arc::clone(&self.state), socket.to_owned());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        move || Self::resume(&socket, state)
    }
}

impl Drop for TokenSigner {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[tonic::async_trait]
impl ExternalJwtSigner for Signer {
    async fn sign(
        &self,
        request: Request<pb::SignJwtRequest>,
    ) -> Result<Response<pb::SignJwtResponse>, Status> {
        let state = self.0.lock().unwrap();
        let token = state.token(&state.signing_key, &request.into_inner().claims);
        let token = token.ok_or_else(|| Status::failed_precondition("the key is gone"))?;
        let mut parts = token.split('.').map(str::to_owned);
        let (header, signature) = (parts.next().unwrap(), parts.next_back().unwrap());
        Ok(Response::new(pb::SignJwtResponse { header, signature }))
    }

    async fn fetch_keys(
        &self,
        _: Request<pb::FetchKeysRequest>,
    ) -> Result<Response<pb::FetchKeysResponse>, Status> {
        let mut state = self.0.lock().unwrap();
        state.fetches += 1;
        let key = |key: &Key| pb::Key {
            key_id: key.id.clone(),
            key: key.pair.subject_public_key_info(),
            exclude_from_oidc_discovery: key.excluded,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let seconds = i64::try_from(now).unwrap();
        Ok(Response::new(pb::FetchKeysResponse {
            keys: state.keys.iter().map(key).collect(),
            data_timestamp: Some(prost_types::Timestamp { seconds, nanos: 0 }),
            refresh_hint_seconds: state.refresh_hint,
        }))
    }

    async fn metadata(
        &self,
        _: Request<pb::MetadataRequest>,
    ) -> Result<Response<pb::MetadataResponse>, Status> {
        let max_token_expiration_seconds = self.0.lock().unwrap().max_lifetime;
        Ok(Response::new(pb::MetadataResponse { max_token_expiration_seconds }))
    }
}
