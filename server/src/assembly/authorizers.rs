//! Authorizers: `--authorization-mode` and its flags, or the file of `--authorization-config`, which is reloaded when it changes.
//!
//! Upstream rules: pkg/kubeapiserver/authorizer. Facades receive only the modes. For modes that need a webhook or a file, they
//! call the control service.

mod backend;
mod configuration;
mod instrumented_authorizer;
mod metrics;
mod webhook;

pub(super) use backend::{ReviewBackend, WebhooksCell};
use configuration::Configuration;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use portico_auth::authz::abac::Policies;
use portico_auth::authz::{
    AlwaysAllow, AlwaysDeny, AuthorizationMode, Authorizer, AuthorizerUnion, Decision, DecisionFuture,
    FacadesAuthorizer, MastersAuthorizer, NodeAuthorizer, NodeRelations, UserRules,
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
use instrumented_authorizer::InstrumentedAuthorizer;
use metrics::AuthorizationMetrics;
use webhook::Webhook;

/// Dependencies of the authorizers, which outlive changes of the configuration.
pub(super) struct Dependencies {
    pub(super) rbac: Arc<dyn Authorizer>,
    pub(super) relations: NodeRelations,
    pub(super) webhooks: WebhooksCell,
    pub(super) metrics: Metrics,
}

/// Authorizers in order, and the modes that facades receive.
struct AuthorizerChain {
    authorizers: AuthorizerUnion,
    modes: Vec<AuthorizationMode>,
    /// Tasks that reload the credential files of webhooks, as long as the chain is in use.
    tasks: TaskSet,
}

/// Authorizers of the current configuration. Cheap to clone.
#[derive(Clone)]
pub(super) struct Authorizers {
    current: Arc<ArcSwap<AuthorizerChain>>,
    /// Configuration file that is reloaded.
    file: Option<FileWatch<AuthorizerChain>>,
}

impl Authorizers {
    /// Reads flags and files.
    ///
    /// # Errors
    /// [`StartError::Authorization`] names the invalid flag or file.
    pub(super) fn new(settings: &ServerSettings, dependencies: Dependencies) -> Result<Self, StartError> {
        match &settings.authorization {
            AuthorizationSettings::Flags(flags) => {
                let policies = flags.policy_file.as_deref().map(policies).transpose()?;
                let configuration = Configuration::from_flags(flags);
                let chain = ChainBuilder { dependencies, policies }.build_chain(&configuration);
                let current = Arc::new(ArcSwap::from_pointee(chain.map_err(StartError::Authorization)?));
                Ok(Self { current, file: None })
            }
            AuthorizationSettings::File { path, policy_file } => {
                let policies = policy_file.as_deref().map(policies).transpose()?;
                let id = own_identity().id;
                let reloads = ReloadMetrics::new(&dependencies.metrics, &AUTHORIZATION, &id);
                let file = watch_file(path, ChainBuilder { dependencies, policies }, reloads)?;
                let current = Arc::new(ArcSwap::new(file.current()));
                Ok(Self { current, file: Some(file) })
            }
        }
    }

    /// True if a mode is enabled.
    pub(super) fn has(&self, mode: AuthorizationMode) -> bool {
        self.current.load().modes.contains(&mode)
    }

    /// Sends facades the modes and their changes.
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

    /// Reloads the file.
    pub(super) async fn reload(&self) -> Result<(), FileError> {
        match &self.file {
            Some(file) => file.reload().await.map(drop),
            None => Ok(()),
        }
    }

    fn setting(&self) -> (PayloadKind, String, Option<Payload>) {
        let modes: Vec<_> = self.current.load().modes.iter().map(|mode| mode.name()).collect();
        let payload = Some(Payload::Setting(modes.join("\n")));
        (PayloadKind::Setting, setting::AUTHORIZATION_MODES.to_owned(), payload)
    }
}

impl Authorizer for Authorizers {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        self.current.load().authorizers.authorize(attributes)
    }

    fn decide<'a>(&'a self, attributes: &'a Attributes) -> DecisionFuture<'a> {
        Box::pin(async move {
            let current = self.current.load_full();
            current.authorizers.decide(attributes).await
        })
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        self.current.load().authorizers.rules_for(user, namespace)
    }
}

/// Builder of chains from configurations.
struct ChainBuilder {
    dependencies: Dependencies,
    policies: Option<Arc<Policies>>,
}

impl ChainBuilder {
    /// Builds the authorizers of a configuration, after those that are always enabled.
    ///
    /// # Errors
    /// Error of the authorizer that cannot be created.
    fn build_chain(&self, configuration: &Configuration) -> Result<AuthorizerChain, String> {
        let tasks = TaskSet::new();
        let metrics = AuthorizationMetrics::new(&self.dependencies.metrics);
        let mut all: Vec<Arc<dyn Authorizer>> =
            vec![Arc::new(MastersAuthorizer), Arc::new(FacadesAuthorizer)];
        let mut modes = Vec::new();
        for authorizer_configuration in &configuration.authorizers {
            let authorizer: Arc<dyn Authorizer> = match authorizer_configuration.mode {
                AuthorizationMode::Node => Arc::new(NodeAuthorizer::new(self.dependencies.relations.clone())),
                AuthorizationMode::Rbac => Arc::clone(&self.dependencies.rbac),
                AuthorizationMode::AlwaysAllow => Arc::new(AlwaysAllow),
                AuthorizationMode::AlwaysDeny => Arc::new(AlwaysDeny),
                AuthorizationMode::Abac => Arc::clone(self.policies.as_ref().ok_or(NO_POLICIES)?) as _,
                AuthorizationMode::Webhook => {
                    let webhook =
                        authorizer_configuration.webhook.as_ref().ok_or("required when type=Webhook")?;
                    Arc::new(Webhook::new(
                        &authorizer_configuration.name,
                        webhook,
                        &self.dependencies.webhooks,
                        &metrics,
                        &tasks,
                    )?)
                }
            };
            modes.push(authorizer_configuration.mode);
            all.push(Arc::new(InstrumentedAuthorizer::new(
                authorizer_configuration.mode,
                &authorizer_configuration.name,
                authorizer,
                &metrics,
            )));
        }
        Ok(AuthorizerChain { authorizers: AuthorizerUnion::new(all), modes, tasks })
    }
}

/// Upstream's message about a file with the mode ABAC without the flag for policies.
const NO_POLICIES: &str =
    "authorizer type ABAC is not allowed if it was not enabled at initial server startup";

/// Watches a configuration file. A new version must have the same modes, except for webhooks.
fn watch_file(
    path: &Path,
    builder: ChainBuilder,
    reloads: ReloadMetrics,
) -> Result<FileWatch<AuthorizerChain>, StartError> {
    let required_modes = OnceLock::<BTreeSet<AuthorizationMode>>::new();
    let refused: Mutex<Option<Vec<u8>>> = Mutex::default();
    let parse = move |files: &[Vec<u8>]| {
        let bytes = files.first().map_or(&[][..], Vec::as_slice);
        let built =
            Configuration::read(bytes, required_modes.get()).and_then(|read| builder.build_chain(&read));
        let mut refused = refused.lock();
        match (&built, required_modes.get()) {
            (Ok(chain), None) => {
                let initial_modes =
                    chain.modes.iter().copied().filter(|mode| *mode != AuthorizationMode::Webhook);
                // Only the first version gets here.
                let _ = required_modes.set(initial_modes.collect());
                reloads.record_initial(sha256_label(bytes));
            }
            (Ok(_), Some(_)) => {
                *refused = None;
                reloads.record_success(sha256_label(bytes));
            }
            // Failures of the same file are counted once.
            (Err(_), Some(_)) if refused.as_deref() != Some(bytes) => {
                *refused = Some(bytes.to_vec());
                reloads.record_failure();
            }
            (Err(_), _) => {}
        }
        built
    };
    FileWatch::new(vec![path.to_owned()], parse).map_err(|error| StartError::Authorization(error.to_string()))
}

/// Reads the policies of a file.
fn policies(file: &Path) -> Result<Arc<Policies>, StartError> {
    let failed = |reason: String| StartError::Authorization(format!("{}: {reason}", file.display()));
    let text = portico_kit::config_file::read_text(file)
        .map_err(|error| failed(portico_gostd::os::error_text(&error)))?;
    Policies::parse(&text).map(Arc::new).map_err(|error| failed(error.to_string()))
}
