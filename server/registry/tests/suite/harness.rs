//! Harness: a registry over a real database, called with requests in the form of HTTP.

use std::sync::Arc;

use futures::StreamExt;
use portico_admission::{AdmissionChain, AdmissionSettings};
use portico_auth::Authorizer;
use portico_auth::authn::TokenKeys;
use portico_auth::authz::AlwaysAllow;
use portico_auth::jwt::SigningKey;
use portico_identity::{CurrentKeys, EXTENDED_LIFETIME, Signer, TokenAuthority};
use portico_kinds::Kinds;
use portico_kit::tasks::TaskSet;
use portico_machinery::{GroupResource, Object, RequestInfo, UserInfo};
use portico_registry::{
    Admission, Answer, Body, Call, Context, CreateOptions, Frame, Registry, Settings, Target, WatchStream,
};
use portico_store::{Metrics, SqliteStore};
use tempfile::TempDir;

use crate::intercepting_store::InterceptingStore;

pub const JSON: &str = "application/json";
pub const MERGE: &str = "application/merge-patch+json";
pub const JSON_PATCH: &str = "application/json-patch+json";
pub const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub const YAML: &str = "application/yaml";
pub const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Registry, its database, and the background tasks.
pub struct Harness {
    pub registry: Registry,
    pub store: Arc<InterceptingStore>,
    tasks: TaskSet,
    _dir: TempDir,
}

/// Answer with the complete body.
#[derive(Debug)]
pub struct Reply {
    pub code: u16,
    pub text: String,
    pub warnings: Vec<String>,
}

impl Reply {
    pub fn object(&self) -> Object {
        Object::from_json(self.text.as_bytes()).unwrap()
    }

    /// Value at a dotted path, as text.
    pub fn at(&self, path: &str) -> String {
        let object = self.object();
        let cursor = path.split('.').fold(object.cursor(), |cursor, field| match field.parse::<usize>() {
            Ok(index) => cursor.items().nth(index).unwrap_or_else(|| cursor.field(field)),
            Err(_) => cursor.field(field),
        });
        cursor.opt_str().map_or_else(|| cursor.printed(), str::to_owned)
    }

    pub fn names(&self) -> Vec<String> {
        self.object()
            .at(&["items"])
            .items()
            .map(|i| i.field("metadata").field("name").str().to_owned())
            .collect()
    }
}

impl Harness {
    /// Opens a new database with the namespace `default`, without authorization.
    pub async fn open() -> Self {
        Self::open_with(Arc::new(AlwaysAllow)).await
    }

    /// Opens a harness with this authorizer.
    pub async fn open_with(authorizer: Arc<dyn Authorizer>) -> Self {
        Self::open_with_admission(default_admission(), authorizer).await
    }

    /// Opens a harness with this admission and this authorizer.
    pub async fn open_with_admission(admission: Arc<dyn Admission>, authorizer: Arc<dyn Authorizer>) -> Self {
        Self::open_on(|_| {}, admission, authorizer).await
    }

    /// Opens a harness with changed settings of the store, without authorization.
    pub async fn open_with_settings(change: impl FnOnce(&mut portico_store::Settings)) -> Self {
        Self::open_on(change, default_admission(), Arc::new(AlwaysAllow)).await
    }

    async fn open_on(
        change: impl FnOnce(&mut portico_store::Settings),
        admission: Arc<dyn Admission>,
        authorizer: Arc<dyn Authorizer>,
    ) -> Self {
        let (dir, tasks) = (TempDir::new().unwrap(), TaskSet::new());
        let kinds = Kinds::builtin().unwrap();
        let mut settings = portico_store::Settings::new(dir.path().join("test.db"));
        change(&mut settings);
        let metrics = Metrics::new(&portico_kit::metrics::Registry::default());
        let mut table = portico_resources::table();
        portico_identity::add_actions(&mut table, &Arc::new(token_authority()));
        let indexer = Arc::new(table.indexer(&kinds));
        let store = SqliteStore::open(settings, indexer, metrics, &tasks).await.unwrap();
        let settings =
            Settings { future_revision_wait: std::time::Duration::from_millis(50), ..Settings::default() };
        let clock = Arc::new(jiff::Timestamp::now);
        let store = Arc::new(InterceptingStore::new(Arc::new(store)));
        let registry = Registry::new(store.clone(), &kinds, &table, admission, authorizer, settings, clock);
        let harness = Self { registry, store, tasks, _dir: dir };
        harness.post("/api/v1/namespaces", &object("Namespace", "default", "")).await;
        harness
    }

    /// Background tasks, which end with the harness.
    pub fn tasks(&self) -> &TaskSet {
        &self.tasks
    }

    /// Sends a request and returns the answer.
    pub async fn answer(&self, method: &str, url: &str, accept: &str, media: &str, body: &str) -> Answer {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let info = RequestInfo::parse(method, path, query).unwrap();
        let is_standard_method = ["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&method);
        let verb = if is_standard_method { info.verb.clone() } else { method.to_owned() };
        let call = Call {
            user: UserInfo::new("admin", ["system:masters"]),
            target: Target::from_request_info(&info),
            verb,
            query: query.to_owned(),
            watch_prefix: info.watch_prefix,
            body: body.as_bytes().to_vec().into(),
            content_type: media.to_owned(),
            accept: accept.to_owned(),
            user_agent: "suite".to_owned(),
            audit_detail: portico_registry::AuditDetail::Nothing,
            own_account: false,
        };
        self.registry.serve(call).await
    }

    pub async fn request(&self, method: &str, url: &str, accept: &str, media: &str, body: &str) -> Reply {
        let answer = self.answer(method, url, accept, media, body).await;
        let mut text = Vec::new();
        match answer.body {
            Body::Bytes(bytes) => text.extend_from_slice(&bytes),
            Body::List(mut pieces) => {
                while let Some(piece) = pieces.next().await {
                    text.extend_from_slice(&piece.unwrap());
                }
            }
            Body::Watch(_) => panic!("a watch has no complete body"),
        }
        Reply { code: answer.code, text: String::from_utf8(text).unwrap(), warnings: answer.warnings }
    }

    pub async fn get(&self, url: &str) -> Reply {
        self.request("GET", url, JSON, "", "").await
    }

    pub async fn post(&self, url: &str, body: &str) -> Reply {
        self.request("POST", url, JSON, JSON, body).await
    }

    pub async fn put(&self, url: &str, body: &str) -> Reply {
        self.request("PUT", url, JSON, JSON, body).await
    }

    pub async fn patch(&self, url: &str, media: &str, body: &str) -> Reply {
        self.request("PATCH", url, JSON, media, body).await
    }

    pub async fn delete(&self, url: &str) -> Reply {
        self.request("DELETE", url, JSON, "", "").await
    }

    /// Starts a watch.
    pub async fn watch(&self, url: &str, accept: &str) -> WatchStream {
        let answer = self.answer("GET", url, accept, "", "").await;
        assert_eq!(answer.code, 200, "{answer:?}");
        match answer.body {
            Body::Watch(watch) => watch.frames,
            other => panic!("no watch: {other:?}"),
        }
    }

    pub async fn create(&self, resource: (&str, &str), json: &str) -> portico_registry::WriteResult {
        let object = Object::from_json(json.as_bytes()).unwrap();
        let resource = GroupResource::new(resource.0, resource.1);
        let options = CreateOptions::default();
        self.registry.create(&Context::system("suite"), &resource, object, &options).await.unwrap()
    }
}

/// Token authority with a new key.
fn token_authority() -> TokenAuthority {
    let signer = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
    let issuers = vec!["https://issuer.example".to_owned()];
    let keys = TokenKeys { audiences: issuers.clone(), issuers, keys: vec![signer.public_key().clone()] };
    TokenAuthority {
        keys: Arc::new(CurrentKeys::new(keys)),
        signer: Signer::Local(signer),
        max_expiration: None,
        extend_expiration: false,
        extended_lifetime: EXTENDED_LIFETIME,
        lookup: true,
        bootstrap_tokens: false,
        static_authenticators: Vec::new(),
        remote_authenticators: Vec::new(),
    }
}

fn default_admission() -> Arc<dyn Admission> {
    Arc::new(AdmissionChain::new(&AdmissionSettings::default(), &portico_kit::metrics::Registry::new()))
}

/// Returns the next frame; fails the test after ten seconds without one.
pub async fn next(frames: &mut WatchStream) -> Arc<Frame> {
    let wait = std::time::Duration::from_secs(10);
    tokio::time::timeout(wait, frames.next()).await.unwrap().unwrap().frame
}

/// Core object with this name; `extra` is appended after the metadata.
pub fn object(kind: &str, name: &str, extra: &str) -> String {
    format!(r#"{{"kind":"{kind}","apiVersion":"v1","metadata":{{"name":"{name}"}}{extra}}}"#)
}

/// APIService for a version of a group, with further fields of the spec.
pub fn api_service(version: &str, group: &str, extra: &str) -> String {
    format!(
        r#"{{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1","metadata":{{"name":"{version}.{group}"}},"spec":{{"group":"{group}","version":"{version}","groupPriorityMinimum":1000,"versionPriority":10{extra}}}}}"#
    )
}

/// Subject of a binding.
pub fn subject(kind: &str, name: &str) -> portico_machinery::Node {
    let mut subject = Object::default();
    subject.set(&["kind"], kind);
    subject.set(&["name"], name);
    subject.into_node()
}
