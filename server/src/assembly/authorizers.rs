//! Who decides what callers may do: `--authorization-mode` and its flags, or the file of `--authorization-config`, which is read
//! again when it changes.
//!
//! Upstream rules: pkg/kubeapiserver/authorizer. Facades receive the modes alone: what a mode needs a webhook or a file for, they
//! ask the control service.

mod backend;
mod configuration;
mod counted;
mod metrics;
mod webhook;

pub(super) use backend::{Calls, ReviewBackend};
use configuration::Configuration;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use portico_auth::authz::abac::Policies;
use portico_auth::authz::{
    AlwaysAllow, AlwaysDeny, Authorizer, AuthorizerUnion, Authorizing, Decision, Facades, Masters, Mode,
    Node, Relations, Rules,
};
use portico_kit::certs::{FileError, FileWatch};
use portico_kit::metrics::Registry as Metrics;
use portico_kit::tasks::TaskSet;
use portico_machinery::digest::sha256_label;
use portico_machinery::{Attributes, UserInfo};
use portico_proto::convert::{Payload, PayloadKind, setting};

use super::error::StartError;
use super::hooks::own_identity;
use crate::grpc::config::board::Board;
use crate::reload_metrics::{AUTHORIZATION, ReloadMetrics};
use crate::settings::{AuthorizationSettings, ServerSettings};
use counted::Counted;
use metrics::AuthorizationMetrics;
use webhook::Webhook;

/// What authorizers are made of; it outlives changes of the configuration.
pub(super) struct Parts {
    pub(super) rbac: Arc<dyn Authorizer>,
    pub(super) relations: Relations,
    pub(super) calls: Calls,
    pub(super) metrics: Metrics,
}

/// Authorizers in their order, and the modes that facades receive.
struct Chain {
    authorizers: AuthorizerUnion,
    modes: Vec<Mode>,
    /// Credentials in files that webhooks are called with are read again as long as the chain is there.
    tasks: TaskSet,
}

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(super) struct Authorizers {
    current: Arc<ArcSwap<Chain>>,
    /// The file that is read again.
    file: Option<FileWatch<Chain>>,
}

impl Authorizers {
    /// Reads flags and files.
    ///
    /// # Errors
    /// [`StartError::Authorization`] names what cannot be used.
    pub(super) fn new(settings: &ServerSettings, parts: Parts) -> Result<Self, StartError> {
        match &settings.authorization {
            AuthorizationSettings::Flags(flags) => {
                let policies = flags.policy_file.as_deref().map(policies).transpose()?;
                let configuration = Configuration::of_flags(flags);
                let chain = Builder { parts, policies }.chain(&configuration);
                let current = Arc::new(ArcSwap::from_pointee(chain.map_err(StartError::Authorization)?));
                Ok(Self { current, file: None })
            }
            AuthorizationSettings::File { path, policy_file } => {
                let policies = policy_file.as_deref().map(policies).transpose()?;
                let id = own_identity().id;
                let reloads = ReloadMetrics::new(&parts.metrics, &AUTHORIZATION, &id);
                let file = watched(path, Builder { parts, policies }, reloads)?;
                let current = Arc::new(ArcSwap::new(file.current()));
                Ok(Self { current, file: Some(file) })
            }
        }
    }

    /// Whether a mode is among those that decide.
    pub(super) fn has(&self, mode: Mode) -> bool {
        self.current.load().modes.contains(&mode)
    }

    /// Sends facades the modes, now and whenever they change.
    pub(super) fn publish(&self, board: &Board, tasks: &TaskSet) {
        board.post([self.setting()]);
        let Some(file) = &self.file else { return };
        file.watch(tasks, "authorization-config");
        let (this, board, mut changes) = (self.clone(), board.clone(), file.subscribe());
        tasks.spawn_until_cancelled("authorization-reload", async move {
            while changes.changed().await.is_ok() {
                let next = changes.borrow_and_update().clone();
                this.current.swap(next).tasks.cancel();
                board.post([this.setting()]);
            }
        });
    }

    /// Looks at the file now.
    pub(super) async fn reload(&self) -> Result<(), FileError> {
        match &self.file {
            Some(file) => file.reload().await.map(drop),
            None => Ok(()),
        }
    }

    fn setting(&self) -> (PayloadKind, String, Option<Payload>) {
        let modes: Vec<_> = self.current.load().modes.iter().map(|mode| mode.name()).collect();
        let said = Some(Payload::Setting(modes.join("\n")));
        (PayloadKind::Setting, setting::AUTHORIZATION_MODES.to_owned(), said)
    }
}

impl Authorizer for Authorizers {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        self.current.load().authorizers.authorize(attributes)
    }

    fn decide<'a>(&'a self, attributes: &'a Attributes) -> Authorizing<'a> {
        Box::pin(async move {
            let current = self.current.load_full();
            current.authorizers.decide(attributes).await
        })
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules {
        self.current.load().authorizers.rules_for(user, namespace)
    }
}

/// Makes chains of configurations.
struct Builder {
    parts: Parts,
    policies: Option<Arc<Policies>>,
}

impl Builder {
    /// The authorizers of a configuration behind those that no configuration turns off.
    ///
    /// # Errors
    /// What one of them cannot be made of.
    fn chain(&self, configuration: &Configuration) -> Result<Chain, String> {
        let tasks = TaskSet::new();
        let metrics = AuthorizationMetrics::new(&self.parts.metrics);
        let mut all: Vec<Arc<dyn Authorizer>> = vec![Arc::new(Masters), Arc::new(Facades)];
        let mut modes = Vec::new();
        for one in &configuration.authorizers {
            let authorizer: Arc<dyn Authorizer> = match one.mode {
                Mode::Node => Arc::new(Node::new(self.parts.relations.clone())),
                Mode::Rbac => Arc::clone(&self.parts.rbac),
                Mode::AlwaysAllow => Arc::new(AlwaysAllow),
                Mode::AlwaysDeny => Arc::new(AlwaysDeny),
                Mode::Abac => Arc::clone(self.policies.as_ref().ok_or(NO_POLICIES)?) as _,
                Mode::Webhook => {
                    let webhook = one.webhook.as_ref().ok_or("required when type=Webhook")?;
                    Arc::new(Webhook::new(&one.name, webhook, &self.parts.calls, &metrics, &tasks)?)
                }
            };
            modes.push(one.mode);
            all.push(Arc::new(Counted::new(one.mode, &one.name, authorizer, &metrics)));
        }
        Ok(Chain { authorizers: AuthorizerUnion::new(all), modes, tasks })
    }
}

/// What upstream says where a file asks for policies that no flag names.
const NO_POLICIES: &str =
    "authorizer type ABAC is not allowed if it was not enabled at initial server startup";

/// A file that makes a chain. Modes other than webhooks have to stay.
fn watched(path: &Path, builder: Builder, reloads: ReloadMetrics) -> Result<FileWatch<Chain>, StartError> {
    let required = OnceLock::<BTreeSet<Mode>>::new();
    let refused: Mutex<Option<Vec<u8>>> = Mutex::default();
    let parse = move |files: &[Vec<u8>]| {
        let bytes = files.first().map_or(&[][..], Vec::as_slice);
        let made = Configuration::read(bytes, required.get()).and_then(|read| builder.chain(&read));
        let mut refused = refused.lock();
        match (&made, required.get()) {
            (Ok(chain), None) => {
                let kept = chain.modes.iter().copied().filter(|mode| *mode != Mode::Webhook);
                // Only the first one comes here.
                let _ = required.set(kept.collect());
                reloads.started(sha256_label(bytes));
            }
            (Ok(_), Some(_)) => {
                *refused = None;
                reloads.succeeded(sha256_label(bytes));
            }
            // The same file is tried again and again.
            (Err(_), Some(_)) if refused.as_deref() != Some(bytes) => {
                *refused = Some(bytes.to_vec());
                reloads.failed();
            }
            (Err(_), _) => {}
        }
        made
    };
    FileWatch::new(vec![path.to_owned()], parse).map_err(|error| StartError::Authorization(error.to_string()))
}

/// The policies of a file.
fn policies(file: &Path) -> Result<Arc<Policies>, StartError> {
    let failed = |reason: String| StartError::Authorization(format!("{}: {reason}", file.display()));
    let text = portico_kit::config_file::read_text(file)
        .map_err(|error| failed(portico_gostd::os::error_text(&error)))?;
    Policies::parse(&text).map(Arc::new).map_err(|error| failed(error.to_string()))
}
