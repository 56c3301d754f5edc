//! Identities that the control service trusts: built from files, and rebuilt when the files change.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::RwLock;
use portico_auth::authn::{
    AuthnError, TokenAuthenticator, TokenFile, TokenReviewBackend, TokenReviewCache, TokenTrust,
    TrustedAuthority,
};
use portico_auth::authz::node::{Graph, NodeFeatures, NodeRelations};
use portico_auth::authz::{AuthorizationMode, RbacAuthorizer};
use portico_auth::forwarded::LocalTrustVerifier;
use portico_auth::{AuthenticatorChain, Authorizer};
use portico_controllers::log::Listener;
use portico_identity::{Signer, TokenAuthority};
use portico_kit::certs::{FileError, FileWatch};
use portico_kit::metrics::Registry as Metrics;
use portico_kit::tasks::TaskSet;
use portico_machinery::UserInfo;
use portico_registry::Registry;

use super::authorizers::{Authorizers, Dependencies, WebhooksCell};
use super::error::StartError;
use super::node_graph::NodeGraph;
use crate::chain::Identities;
use crate::settings::ServerSettings;

/// Trusted identities and the files that define them. Cheap to clone.
#[derive(Clone)]
pub(super) struct TrustedIdentities {
    pub(super) identities: Arc<Identities>,
    pub(super) authorizer: Arc<dyn Authorizer>,
    pub(super) authorizers: Authorizers,
    /// Client for webhooks, set once the registry exists.
    pub(super) webhooks: WebhooksCell,
    /// Roles and bindings for the authorizer.
    pub(super) rbac: Arc<RbacAuthorizer>,
    /// Relations of objects to nodes; `None` without the Node authorizer.
    node_graph: Option<Arc<RwLock<Graph>>>,
    internal: TrustedAuthority,
    /// CA that signs certificate requests, if Portico created it.
    signing: Option<TrustedAuthority>,
    files: Vec<FileWatch<AuthenticatorFile>>,
    reviews: Arc<TokenReviewCache>,
    /// Keys and issuers of trusted tokens; empty until a reviewer is set.
    trust: Arc<ArcSwap<TokenTrust>>,
}

/// Content of one file, from which an authenticator is built.
enum AuthenticatorFile {
    ClientCa(TrustedAuthority),
    Tokens(Arc<TokenFile>),
}

fn client_ca(pem: &[u8]) -> Result<AuthenticatorFile, String> {
    TrustedAuthority::from_pem(pem).map(AuthenticatorFile::ClientCa).map_err(|e| e.to_string())
}

fn tokens(csv: &[u8]) -> Result<AuthenticatorFile, String> {
    let text = std::str::from_utf8(csv).map_err(|e| e.to_string())?;
    TokenFile::parse(text).map(|t| AuthenticatorFile::Tokens(Arc::new(t))).map_err(|e| e.to_string())
}

fn watch_file(
    path: Option<&PathBuf>,
    parse: fn(&[u8]) -> Result<AuthenticatorFile, String>,
) -> Result<Option<FileWatch<AuthenticatorFile>>, FileError> {
    let read = move |raw: &[Vec<u8>]| parse(raw.first().map_or(&[], Vec::as_slice));
    path.map(|path| FileWatch::new(vec![path.clone()], read)).transpose()
}

/// Builds authenticators from the current content of the files. gRPC has no anonymous callers and no front proxies.
fn authenticators(
    internal: &TrustedAuthority,
    signing: Option<&TrustedAuthority>,
    files: &[FileWatch<AuthenticatorFile>],
    reviews: &Arc<TokenReviewCache>,
    trust: &ArcSwap<TokenTrust>,
) -> AuthenticatorChain {
    let chain = AuthenticatorChain::default()
        .with_internal_authority(internal.clone())
        .with_signing_authority(signing.cloned())
        .with_reviews(Arc::clone(reviews))
        .with_token_trust(trust.load_full());
    files.iter().fold(chain, |chain, file| match &*file.current() {
        AuthenticatorFile::ClientCa(authority) => chain.with_client_authority(authority.clone()),
        AuthenticatorFile::Tokens(tokens) => chain.with_tokens(Arc::clone(tokens) as _),
    })
}

/// Tokens in the current version of a file, for token reviews.
struct FileTokens(FileWatch<AuthenticatorFile>);

impl TokenAuthenticator for FileTokens {
    fn authenticate_token(&self, token: &str) -> Result<Option<Arc<UserInfo>>, AuthnError> {
        match &*self.0.current() {
            AuthenticatorFile::Tokens(tokens) => tokens.authenticate_token(token),
            AuthenticatorFile::ClientCa(_) => Ok(None),
        }
    }
}

impl TrustedIdentities {
    /// Sets the client with which authorizers and token reviews call webhooks.
    pub(super) fn set_webhooks(&self, registry: &Registry) {
        if let Some(webhooks) = registry.objects().webhooks() {
            // Set only once.
            let _ = self.webhooks.set(webhooks.clone());
        }
    }

    /// Reads the files.
    ///
    /// # Errors
    /// [`StartError`] names the file.
    pub(super) fn new(
        settings: &ServerSettings,
        internal_ca: &str,
        signing_ca: Option<&str>,
        local: LocalTrustVerifier,
        metrics: &Metrics,
    ) -> Result<Self, StartError> {
        let internal = TrustedAuthority::from_pem(internal_ca.as_bytes())?;
        let signing = signing_ca.map(|pem| TrustedAuthority::from_pem(pem.as_bytes())).transpose()?;
        let clients = watch_file(settings.client_ca_file.as_ref(), client_ca)?;
        let tokens = watch_file(settings.token_auth_file.as_ref(), tokens)?;
        let files: Vec<_> = clients.into_iter().chain(tokens).collect();
        let rbac = Arc::new(RbacAuthorizer::default());
        let graph = Arc::<RwLock<Graph>>::default();
        let gate = |name| settings.features.enabled(name);
        let relations = NodeRelations::Local {
            graph: Arc::clone(&graph),
            features: NodeFeatures {
                pod_certificates: gate("PodCertificateRequest"),
                trust_bundles: gate("ClusterTrustBundle"),
            },
        };
        let webhooks = WebhooksCell::default();
        let parts = Dependencies {
            rbac: Arc::clone(&rbac) as _,
            relations,
            webhooks: Arc::clone(&webhooks),
            metrics: metrics.clone(),
        };
        let authorizers = Authorizers::new(settings, parts)?;
        let authorizer: Arc<dyn Authorizer> = Arc::new(authorizers.clone());
        let node_graph = authorizers.has(AuthorizationMode::Node).then_some(graph);
        let reviews = Arc::new(TokenReviewCache::default());
        let trust = Arc::<ArcSwap<TokenTrust>>::default();
        let chain = authenticators(&internal, signing.as_ref(), &files, &reviews, &trust);
        let identities = Arc::new(Identities::new(chain, Arc::clone(&authorizer), local));
        Ok(Self {
            identities,
            authorizer,
            authorizers,
            webhooks,
            rbac,
            node_graph,
            internal,
            signing,
            files,
            reviews,
            trust,
        })
    }

    /// Returns the listener that updates the relations of objects to nodes; `None` without the Node authorizer.
    pub(super) fn node_listener(&self) -> Option<Arc<dyn Listener>> {
        self.node_graph.clone().map(|graph| Arc::new(NodeGraph::new(graph)) as _)
    }

    /// Returns the tokens of files, with their changes.
    pub(super) fn file_tokens(&self) -> Vec<Arc<dyn TokenAuthenticator>> {
        self.files.iter().map(|file| Arc::new(FileTokens(file.clone())) as _).collect()
    }

    /// Sets the reviewer of tokens that are bound to objects, and trusts their keys.
    pub(super) fn set_reviewer(&self, identity: &TokenAuthority, reviewer: Arc<dyn TokenReviewBackend>) {
        self.identities.set_reviewer(reviewer);
        self.trust_keys(identity);
    }

    /// Trusts the current keys.
    pub(super) fn trust_keys(&self, identity: &TokenAuthority) {
        let trust = TokenTrust::new(identity.keys.load().as_ref().clone(), identity.bootstrap_tokens)
            .with_other_tokens(!identity.remote_authenticators.is_empty())
            .with_changing_keys(matches!(identity.signer, Signer::External(_)));
        if !trust.is_equivalent_to(&self.trust.load()) {
            self.trust.store(Arc::new(trust));
            self.rebuild();
        }
    }

    /// Rebuilds the authenticators from the current files and keys.
    fn rebuild(&self) {
        let chain =
            authenticators(&self.internal, self.signing.as_ref(), &self.files, &self.reviews, &self.trust);
        self.identities.replace(chain);
    }

    /// Reloads changed files periodically.
    pub(super) fn watch(&self, tasks: &TaskSet) {
        for file in &self.files {
            file.watch(tasks, "authentication-file");
            let (this, mut changes) = (self.clone(), file.subscribe());
            tasks.spawn_until_cancelled("authentication-reload", async move {
                while changes.changed().await.is_ok() {
                    this.rebuild();
                }
            });
        }
    }

    /// Reloads all files. If a file cannot be read, its previous content stays in use and the error is logged.
    pub(super) async fn reload(&self) {
        for file in &self.files {
            if let Err(error) = file.reload().await {
                tracing::error!(%error, "cannot reload a file, using its previous content");
            }
        }
        if let Err(error) = self.authorizers.reload().await {
            tracing::error!(%error, "cannot reload a file, using its previous content");
        }
    }
}
