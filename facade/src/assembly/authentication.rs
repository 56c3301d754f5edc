//! Builds the chain of authenticators from settings, and rebuilds it when a file changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use portico_auth::AuthenticatorChain;
use portico_auth::authn::{
    RequestHeaderConfig, TokenCacheMetrics, TokenFile, TokenReviewCache, TrustedAuthority,
};
use portico_kit::certs::{FileError, FileWatch};
use portico_kit::metrics::Registry;
use portico_kit::pki::CertInfo;
use portico_kit::tasks::TaskSet;
use portico_machinery::FrontProxy;

use super::error::StartError;
use portico_auth::authz::AuthorizationMode;

use crate::configuration::Configuration;
use crate::settings::FacadeSettings;

/// Files with CAs and tokens that are trusted. Clones share them.
#[derive(Clone)]
pub(super) struct AuthFiles {
    internal: Option<TrustedAuthority>,
    client_ca: Option<FileWatch<TrustedAuthority>>,
    proxy_ca: Option<(FileWatch<TrustedAuthority>, Arc<FrontProxy>)>,
    tokens: Option<FileWatch<TokenFile>>,
    reviews: Arc<TokenReviewCache>,
    anonymous: bool,
}

impl AuthFiles {
    /// Reads all files. Tokens that the token file does not contain are reviewed by the control service.
    pub(super) fn load(settings: &FacadeSettings, registry: &Registry) -> Result<Self, StartError> {
        let auth = &settings.authentication;
        let internal = auth.internal_ca.as_deref().map(TrustedAuthority::from_pem).transpose();
        let proxy_ca = auth.request_header.as_ref().map(|proxy| {
            let ca = authority(&proxy.client_ca_file)?;
            Ok::<_, FileError>((ca, Arc::new(proxy.clone())))
        });
        Ok(Self {
            internal: internal.map_err(StartError::InternalCa)?,
            client_ca: auth.client_ca_file.as_deref().map(authority).transpose()?,
            proxy_ca: proxy_ca.transpose()?,
            tokens: auth.token_auth_file.clone().map(tokens).transpose()?,
            reviews: Arc::new(TokenReviewCache::default().with_metrics(TokenCacheMetrics::new(registry))),
            anonymous: auth
                .anonymous
                .unwrap_or(!settings.authorization.contains(&AuthorizationMode::AlwaysAllow)),
        })
    }

    /// Builds the authenticators from the current contents of the files.
    pub(super) fn authenticators(&self) -> AuthenticatorChain {
        let mut chain = AuthenticatorChain::default()
            .with_anonymous(self.anonymous)
            .with_reviews(Arc::clone(&self.reviews));
        if let Some((ca, proxy)) = &self.proxy_ca {
            chain = chain.with_request_header(RequestHeaderConfig {
                authority: TrustedAuthority::clone(&ca.current()),
                allowed_names: proxy.allowed_names.clone(),
                username_headers: proxy.username_headers.clone(),
                uid_headers: proxy.uid_headers.clone(),
                group_headers: proxy.group_headers.clone(),
                extra_prefixes: proxy.extra_headers_prefix.clone(),
            });
        }
        if let Some(internal) = &self.internal {
            chain = chain.with_internal_authority(internal.clone());
        }
        if let Some(ca) = &self.client_ca {
            chain = chain.with_client_authority(TrustedAuthority::clone(&ca.current()));
        }
        if let Some(tokens) = &self.tokens {
            chain = chain.with_tokens(tokens.current());
        }
        chain
    }

    /// Returns the current CAs of client certificates.
    pub(super) fn certificates(&self) -> Vec<(&'static str, CertInfo)> {
        let client = self.client_ca.as_ref().map(|ca| ("client CA", ca.current()));
        let proxy = self.proxy_ca.as_ref().map(|(ca, _)| ("front-proxy CA", ca.current()));
        let read = |(usage, ca): (&'static str, Arc<TrustedAuthority>)| {
            let infos = ca.certificates().iter().filter_map(|der| CertInfo::parse(der).ok());
            infos.map(|info| (usage, info)).collect::<Vec<_>>()
        };
        client.into_iter().chain(proxy).flat_map(read).collect()
    }

    /// Polls the files and activates new authenticators when a file changes.
    pub(super) fn follow(&self, tasks: &TaskSet, configuration: &Arc<Configuration>) {
        if let Some(ca) = &self.client_ca {
            self.follow_one(tasks, configuration, ca, "client-ca-file");
        }
        if let Some((ca, _)) = &self.proxy_ca {
            self.follow_one(tasks, configuration, ca, "requestheader-client-ca-file");
        }
        if let Some(tokens) = &self.tokens {
            self.follow_one(tasks, configuration, tokens, "token-auth-file");
        }
    }

    fn follow_one<T: Send + Sync + 'static>(
        &self,
        tasks: &TaskSet,
        configuration: &Arc<Configuration>,
        file: &FileWatch<T>,
        name: &'static str,
    ) {
        file.watch(tasks, name);
        let (this, configuration, mut changes) = (self.clone(), configuration.clone(), file.subscribe());
        tasks.spawn_until_cancelled(name, async move {
            while changes.changed().await.is_ok() {
                configuration.set_authenticators(this.authenticators());
            }
        });
    }

    /// Rereads the files now.
    pub(super) async fn reload(&self) -> Vec<FileError> {
        let mut errors = Vec::new();
        if let Some(ca) = &self.client_ca {
            errors.extend(ca.reload().await.err());
        }
        if let Some((ca, _)) = &self.proxy_ca {
            errors.extend(ca.reload().await.err());
        }
        if let Some(tokens) = &self.tokens {
            errors.extend(tokens.reload().await.err());
        }
        errors
    }
}

fn authority(path: &Path) -> Result<FileWatch<TrustedAuthority>, FileError> {
    let parse = |raw: &[Vec<u8>]| TrustedAuthority::from_pem(raw.first().map_or(&[], Vec::as_slice));
    FileWatch::new(vec![path.to_owned()], parse)
}

fn tokens(path: PathBuf) -> Result<FileWatch<TokenFile>, FileError> {
    let parse = |raw: &[Vec<u8>]| {
        let text = String::from_utf8(raw.first().cloned().unwrap_or_default()).map_err(|e| e.to_string())?;
        TokenFile::parse(&text).map_err(|e| e.to_string())
    };
    FileWatch::new(vec![path], parse)
}
