//! Tokens of OpenID Connect issuers: `--oidc-*`, or the file of `--authentication-config`, which is reloaded when it changes.
//!
//! Upstream rules: pkg/kubeapiserver/authenticator (`newJWTAuthenticator`, `authenticationConfigUpdater`). Only the control
//! service validates these tokens: facades send it TokenReviews, as they do for tokens of a webhook. The anonymous access that
//! the file configures is published to facades.

mod address;
mod configuration;
mod flags;
mod issuer;
mod key_feed;
mod metrics;
mod provider;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use portico_auth::authn::token_webhook::{
    AuthenticatedToken, AuthenticatedTokenFuture, RemoteTokenAuthenticator, own_audiences,
};
use portico_auth::oidc::untrusted_issuer;
use portico_kit::certs::{FileError, FileWatch};
use portico_kit::egress::EgressDialer;
use portico_kit::metrics::Registry as Metrics;
use portico_kit::tasks::TaskSet;
use portico_machinery::aggregate;
use portico_machinery::digest::sha256_label;
use portico_proto::convert::{Payload, PayloadKind, setting};

use super::error::StartError;
use super::hooks::own_identity;
use crate::grpc::config::board::Board;
use crate::reload_metrics::{AUTHENTICATION, ReloadMetrics};
use crate::settings::{AuthenticationSettings, ServerSettings};
use configuration::{Configuration, InitialAnonymous};
use issuer::Issuer;
use metrics::IssuerMetrics;

/// Timeout for reaching the issuers of a changed file (`UpdateAuthenticationConfigTimeout`).
const HEALTH_TIMEOUT: Duration = Duration::from_secs(60);

/// Dialers of the proxies in the egress selector.
pub(super) struct Egress {
    pub(super) controlplane: Option<EgressDialer>,
    pub(super) cluster: Option<EgressDialer>,
}

/// Issuers of one configuration. Their keys are fetched as long as this value exists.
#[derive(Default)]
struct IssuerSet {
    all: Vec<Issuer>,
    tasks: TaskSet,
}

/// Dependencies of issuers.
struct Dependencies {
    egress: Egress,
    metrics: IssuerMetrics,
}

impl Dependencies {
    fn start(&self, configuration: &Configuration) -> Result<IssuerSet, String> {
        let tasks = TaskSet::new();
        let start = |issuer: &configuration::IssuerConfiguration| {
            let egress = match issuer.address.egress {
                None => None,
                Some(name) => {
                    let dialer =
                        if name == "cluster" { &self.egress.cluster } else { &self.egress.controlplane };
                    let missing = || format!("oidc: egress lookup for {name:?} is not configured");
                    Some(dialer.clone().ok_or_else(missing)?)
                }
            };
            Issuer::start(issuer, egress, &self.metrics, &tasks).map_err(|error| error.to_string())
        };
        let all = configuration.issuers.iter().map(start).collect::<Result<_, _>>();
        if all.is_err() {
            tasks.cancel();
        }
        Ok(IssuerSet { all: all?, tasks })
    }
}

/// Issuers of the current configuration. Cheap to clone.
#[derive(Clone)]
pub(super) struct TokenIssuers {
    inner: Arc<Inner>,
}

struct Inner {
    current: ArcSwap<IssuerSet>,
    dependencies: Dependencies,
    file: Option<(FileWatch<LoadedFile>, Arc<ReloadMetrics>)>,
    /// Audiences of this API. A valid token counts as one for these, regardless of the audiences that its issuer knows.
    audiences: Vec<String>,
}

/// Content of a file and its parsed configuration.
struct LoadedFile {
    bytes: Vec<u8>,
    configuration: Configuration,
}

impl TokenIssuers {
    /// Reads flags or the file and starts to fetch keys; `None` if no issuers can be configured.
    ///
    /// # Errors
    /// [`StartError::Authentication`] names the error.
    pub(super) fn new(
        settings: &ServerSettings,
        egress: Egress,
        audiences: &[String],
        metrics: &Metrics,
    ) -> Result<Option<Self>, StartError> {
        let own_issuers = &settings.service_accounts.issuers;
        let id = own_identity().id;
        let (file, flags) = match &settings.authentication {
            AuthenticationSettings::None => return Ok(None),
            AuthenticationSettings::Flags(flags) => {
                (None, Some(flags::configuration(flags, own_issuers).map_err(StartError::Authentication)?))
            }
            AuthenticationSettings::File { path, anonymous_flag } => {
                let reloads = Arc::new(ReloadMetrics::new(metrics, &AUTHENTICATION, &id));
                let file = watch_file(path, own_issuers, Arc::clone(&reloads)).map_err(failed)?;
                if *anonymous_flag && file.current().configuration.anonymous.is_some() {
                    let message = "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file";
                    return Err(StartError::Authentication(message.to_owned()));
                }
                (Some((file, reloads)), None)
            }
        };
        let dependencies = Dependencies { egress, metrics: IssuerMetrics::new(metrics, &id) };
        let first = match (&file, &flags) {
            (Some((file, _)), _) => dependencies.start(&file.current().configuration),
            (None, Some(configuration)) => dependencies.start(configuration),
            (None, None) => Ok(IssuerSet::default()),
        };
        let current = ArcSwap::from_pointee(first.map_err(StartError::Authentication)?);
        let audiences = audiences.to_vec();
        Ok(Some(Self { inner: Arc::new(Inner { current, dependencies, file, audiences }) }))
    }

    /// Publishes the configuration of anonymous access to facades, and follows the file.
    pub(super) fn publish(&self, board: &Board, tasks: &TaskSet) {
        let Some((file, _)) = &self.inner.file else { return };
        if let Some(anonymous) = &file.current().configuration.anonymous {
            let payload = Payload::Setting(anonymous.to_setting());
            board.post([(PayloadKind::Setting, setting::ANONYMOUS.to_owned(), Some(payload))]);
        }
        file.watch(tasks, "authentication-config");
        let (this, file) = (self.clone(), file.clone());
        tasks.spawn_until_cancelled("authentication-config-reload", async move { this.follow(&file).await });
    }

    /// Reloads the file.
    pub(super) async fn reload(&self) -> Result<(), FileError> {
        match &self.inner.file {
            Some((file, _)) => file.reload().await.map(drop),
            None => Ok(()),
        }
    }

    /// Applies changed configurations once their issuers are reachable; retries with issuers that are not.
    async fn follow(&self, file: &FileWatch<LoadedFile>) {
        let mut changes = file.subscribe();
        let mut is_due = false;
        loop {
            if !is_due && changes.changed().await.is_err() {
                return;
            }
            let next = changes.borrow_and_update().clone();
            is_due = !self.replace(&next).await;
        }
    }

    async fn replace(&self, next: &LoadedFile) -> bool {
        let Some((_, reloads)) = &self.inner.file else { return true };
        let started = match self.inner.dependencies.start(&next.configuration) {
            Ok(started) => started,
            Err(error) => {
                tracing::error!(error, "failed to update authentication config");
                reloads.record_failure();
                return true;
            }
        };
        let healthy = async {
            for issuer in &started.all {
                issuer.keys.wait_discovered().await;
            }
        };
        if tokio::time::timeout(HEALTH_TIMEOUT, healthy).await.is_err() {
            let errors: Vec<_> = started.all.iter().filter_map(|issuer| issuer.keys.health().err()).collect();
            tracing::error!(error = aggregate(&errors), "failed to update authentication config");
            started.tasks.cancel();
            reloads.record_failure();
            return false;
        }
        let old = self.inner.current.swap(Arc::new(started));
        old.tasks.cancel();
        let current = self.inner.current.load();
        self.inner
            .dependencies
            .metrics
            .retain(|issuer| current.all.iter().any(|current_issuer| current_issuer.url() == issuer));
        reloads.record_success(sha256_label(&next.bytes));
        tracing::info!("reloaded authentication config");
        true
    }

    async fn authenticate_token(
        &self,
        token: &str,
        requested_audiences: &[String],
    ) -> Result<Option<AuthenticatedToken>, String> {
        let Some(audiences) = own_audiences(&self.inner.audiences, requested_audiences) else {
            return Ok(None);
        };
        let Some(url) = untrusted_issuer(token) else { return Ok(None) };
        let current = self.inner.current.load_full();
        let Some(issuer) = current.all.iter().find(|issuer| issuer.url() == url) else { return Ok(None) };
        let begin = Instant::now();
        let user = issuer.user(token).await;
        self.inner.dependencies.metrics.observe_token(&url, user.is_ok(), begin.elapsed());
        user.map(|user| Some(AuthenticatedToken { user, audiences }))
    }
}

impl RemoteTokenAuthenticator for TokenIssuers {
    fn authenticate<'a>(&'a self, token: &'a str, audiences: &'a [String]) -> AuthenticatedTokenFuture<'a> {
        Box::pin(self.authenticate_token(token, audiences))
    }
}

fn failed(error: FileError) -> StartError {
    StartError::Authentication(error.to_string())
}

/// Watches the file. A new version must not change the configuration of anonymous access.
fn watch_file(
    path: &Path,
    own_issuers: &[String],
    reloads: Arc<ReloadMetrics>,
) -> Result<FileWatch<LoadedFile>, FileError> {
    let (initial, own_issuers) = (OnceLock::<InitialAnonymous>::new(), own_issuers.to_vec());
    let refused: Mutex<Option<Vec<u8>>> = Mutex::default();
    let parse = move |files: &[Vec<u8>]| {
        let bytes = files.first().map_or(&[][..], Vec::as_slice);
        let read = Configuration::read(bytes, &own_issuers, initial.get());
        let mut refused = refused.lock();
        match (&read, initial.get()) {
            (Ok(first), None) => {
                // Only the first version gets here.
                let _ = initial.set(InitialAnonymous(first.anonymous.clone()));
                reloads.record_initial(sha256_label(bytes));
            }
            (Ok(_), Some(_)) => *refused = None,
            // Failures of the same file are counted once.
            (Err(_), Some(_)) if refused.as_deref() != Some(bytes) => {
                *refused = Some(bytes.to_vec());
                reloads.record_failure();
            }
            (Err(_), _) => {}
        }
        read.map(|configuration| LoadedFile { bytes: bytes.to_vec(), configuration })
    };
    FileWatch::new(vec![path.to_owned()], parse)
}
