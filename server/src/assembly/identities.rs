//! Identities that the control service trusts: built from files, and rebuilt when the files change.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::RwLock;
use portico_auth::authn::{
    AuthnError, Authority, Reviewer, Reviews, TokenAuthenticator, TokenFile, TokenTrust,
};
use portico_auth::authz::node::{Features, Graph, Relations};
use portico_auth::authz::{Mode, Rbac};
use portico_auth::forwarded::LocalTrustVerifier;
use portico_auth::{AuthenticatorChain, Authorizer};
use portico_controllers::log::Listener;
use portico_identity::{Identity, Signer};
use portico_kit::certs::{FileError, FileWatch};
use portico_kit::metrics::Registry as Metrics;
use portico_kit::tasks::TaskSet;
use portico_machinery::UserInfo;
use portico_registry::Registry;

use super::authorizers::{Authorizers, Calls, Parts};
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
    pub(super) calls: Calls,
    /// Roles and bindings for the authorizer.
    pub(super) rbac: Arc<Rbac>,
    /// Relations of objects to nodes; `None` without the Node authorizer.
    nodes: Option<Arc<RwLock<Graph>>>,
    internal: Authority,
    /// CA that signs certificate requests, if Portico created it.
    signing: Option<Authority>,
    files: Vec<FileWatch<Part>>,
    reviews: Arc<Reviews>,
    /// Keys and issuers of trusted tokens; empty until a reviewer is set.
    trust: Arc<ArcSwap<TokenTrust>>,
}

/// Content of one file, from which an authenticator is built.
enum Part {
    Client(Authority),
    Tokens(Arc<TokenFile>),
}

fn client_ca(pem: &[u8]) -> Result<Part, String> {
    Authority::from_pem(pem).map(Part::Client).map_err(|e| e.to_string())
}

fn tokens(csv: &[u8]) -> Result<Part, String> {
    let text = std::str::from_utf8(csv).map_err(|e| e.to_string())?;
    TokenFile::parse(text).map(|t| Part::Tokens(Arc::new(t))).map_err(|e| e.to_string())
}

fn watched(
    path: Option<&PathBuf>,
    parse: fn(&[u8]) -> Result<Part, String>,
) -> Result<Option<FileWatch<Part>>, FileError> {
    let read = move |raw: &[Vec<u8>]| parse(raw.first().map_or(&[], Vec::as_slice));
    path.map(|path| FileWatch::new(vec![path.clone()], read)).transpose()
}

/// Builds authenticators from the current content of the files. gRPC has no anonymous callers and no front proxies.
fn authenticators(
    internal: &Authority,
    signing: Option<&Authority>,
    files: &[FileWatch<Part>],
    reviews: &Arc<Reviews>,
    trust: &ArcSwap<TokenTrust>,
) -> AuthenticatorChain {
    let chain = AuthenticatorChain::default()
        .with_internal_authority(internal.clone())
        .with_signing_authority(signing.cloned())
        .with_reviews(Arc::clone(reviews))
        .with_trust(trust.load_full());
    files.iter().fold(chain, |chain, file| match &*file.current() {
        Part::Client(authority) => chain.with_client_authority(authority.clone()),
        Part::Tokens(tokens) => chain.with_tokens(Arc::clone(tokens) as _),
    })
}

/// Tokens in the current version of a file, for token reviews.
struct FixedTokens(FileWatch<Part>);

impl TokenAuthenticator for FixedTokens {
    fn authenticate_token(&self, token: &str) -> Result<Option<Arc<UserInfo>>, AuthnError> {
        match &*self.0.current() {
            Part::Tokens(tokens) => tokens.authenticate_token(token),
            Part::Client(_) => Ok(None),
        }
    }
}

impl TrustedIdentities {
    /// Sets the client with which authorizers and token reviews call webhooks.
    pub(super) fn call_with(&self, registry: &Registry) {
        if let Some(webhooks) = registry.objects().webhooks() {
            // Set only once.
            let _ = self.calls.set(webhooks.clone());
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
        let internal = Authority::from_pem(internal_ca.as_bytes())?;
        let signing = signing_ca.map(|pem| Authority::from_pem(pem.as_bytes())).transpose()?;
        let clients = watched(settings.client_ca_file.as_ref(), client_ca)?;
        let tokens = watched(settings.token_auth_file.as_ref(), tokens)?;
        let files: Vec<_> = clients.into_iter().chain(tokens).collect();
        let rbac = Arc::new(Rbac::default());
        let graph = Arc::<RwLock<Graph>>::default();
        let gate = |name| settings.features.enabled(name);
        let relations = Relations::Known {
            graph: Arc::clone(&graph),
            features: Features {
                pod_certificates: gate("PodCertificateRequest"),
                trust_bundles: gate("ClusterTrustBundle"),
            },
        };
        let calls = Calls::default();
        let parts = Parts {
            rbac: Arc::clone(&rbac) as _,
            relations,
            calls: Arc::clone(&calls),
            metrics: metrics.clone(),
        };
        let authorizers = Authorizers::new(settings, parts)?;
        let authorizer: Arc<dyn Authorizer> = Arc::new(authorizers.clone());
        let nodes = authorizers.has(Mode::Node).then_some(graph);
        let reviews = Arc::new(Reviews::default());
        let trust = Arc::<ArcSwap<TokenTrust>>::default();
        let chain = authenticators(&internal, signing.as_ref(), &files, &reviews, &trust);
        let identities = Arc::new(Identities::new(chain, Arc::clone(&authorizer), local));
        Ok(Self {
            identities,
            authorizer,
            authorizers,
            calls,
            rbac,
            nodes,
            internal,
            signing,
            files,
            reviews,
            trust,
        })
    }

    /// Returns the listener that updates the relations of objects to nodes; `None` without the Node authorizer.
    pub(super) fn node_listener(&self) -> Option<Arc<dyn Listener>> {
        self.nodes.clone().map(|graph| Arc::new(NodeGraph::new(graph)) as _)
    }

    /// Returns the tokens of files, with their changes.
    pub(super) fn fixed_tokens(&self) -> Vec<Arc<dyn TokenAuthenticator>> {
        self.files.iter().map(|file| Arc::new(FixedTokens(file.clone())) as _).collect()
    }

    /// Sets the reviewer of tokens that are bound to objects, and trusts their keys.
    pub(super) fn review_with(&self, identity: &Identity, reviewer: Arc<dyn Reviewer>) {
        self.identities.review_with(reviewer);
        self.trust_keys_of(identity);
    }

    /// Trusts the current keys.
    pub(super) fn trust_keys_of(&self, identity: &Identity) {
        let trust = TokenTrust::new(identity.keys.load().as_ref().clone(), identity.bootstrap_tokens)
            .with_others(!identity.remote.is_empty())
            .with_changing_keys(matches!(identity.signer, Signer::External(_)));
        if !trust.agrees_with(&self.trust.load()) {
            self.trust.store(Arc::new(trust));
            self.renew();
        }
    }

    /// Rebuilds the authenticators from the current files and keys.
    fn renew(&self) {
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
                    this.renew();
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
