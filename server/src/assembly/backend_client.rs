//! HTTP client for backends, for the catalog and for controllers, with the same trust, names and certificate as proxied requests.

use std::collections::HashMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use parking_lot::Mutex;
use portico_kit::dial;
use portico_kit::fetch::{FetchRequest, FetchResponse, FetchTarget, Fetcher};
use portico_kit::header_text;
use portico_kit::tls::{Alpn, CertPair, ClientTls, Roots};
use portico_machinery::route::{Backend, Trust};
use portico_server_catalog::{Fetch, FetchFailure, FetchFuture, FetchedDocument, GetRequest};

use super::backend_connections::BackendConnections;

/// Client for backends, with the same trust, names and certificate as proxied requests.
pub(super) struct BackendClient {
    fetcher: Fetcher,
    client_cert: Option<portico_kit::certs::FileWatch<CertPair>>,
    tls_cache: Mutex<TlsCache>,
}

/// Key of shared TLS settings: trust, and whether HTTP/2 is used.
type TrustKey = (Trust, bool);
/// Fingerprint of the client certificate, and the TLS settings that present it.
type CachedTls = (Option<[u8; 32]>, ClientTls);

/// Maximum number of cached server names; the cache is cleared when it is full.
const MAX_SERVER_NAMES: usize = 16 * 1024;

/// CA bundles by hash, and TLS settings in use.
#[derive(Default)]
struct TlsCache {
    bundles: HashMap<String, Bytes>,
    tls: HashMap<TrustKey, CachedTls>,
    /// TLS settings by server name. They are cached because pooled connections are found by the identity of the settings: with
    /// new settings for each fetch, no connection could be reused.
    by_server_name: HashMap<(TrustKey, String), CachedTls>,
}

impl BackendClient {
    pub(super) fn new(backends: &BackendConnections) -> Self {
        Self {
            fetcher: backends.fetcher.clone(),
            client_cert: backends.client_cert_watch(),
            tls_cache: Mutex::default(),
        }
    }

    pub(super) fn add_bundle(&self, hash: &str, pem: &[u8]) {
        self.tls_cache.lock().bundles.insert(hash.to_owned(), Bytes::copy_from_slice(pem));
    }

    pub(super) fn remove_bundle(&self, hash: &str) {
        let mut cache = self.tls_cache.lock();
        cache.bundles.remove(hash);
        let removed = Trust::Bundle(hash.to_owned());
        cache.tls.retain(|(trust, _), _| *trust != removed);
        cache.by_server_name.retain(|((trust, _), _), _| *trust != removed);
    }

    /// Returns TLS settings for a backend's server name. Backends with equal trust share the settings.
    fn tls(&self, backend: &Backend) -> Result<ClientTls, FetchFailure> {
        let failed = |e: portico_kit::tls::TlsError| FetchFailure(e.to_string());
        let pair = self.client_cert.as_ref().map(|w| w.current());
        let fingerprint = pair.as_ref().map(|p| p.info().fingerprint);
        let key = (backend.trust.clone(), backend.http2);
        let trust_and_name = (key.clone(), backend.server_name.clone());
        let mut cache = self.tls_cache.lock();
        if let Some((_, tls)) = cache
            .by_server_name
            .get(&trust_and_name)
            .filter(|(cached_fingerprint, _)| *cached_fingerprint == fingerprint)
        {
            return Ok(tls.clone());
        }
        let base = match cache.tls.get(&key) {
            Some((cached_fingerprint, tls)) if *cached_fingerprint == fingerprint => tls.clone(),
            _ => {
                let roots = match &backend.trust {
                    Trust::System => Roots::System,
                    Trust::Insecure => Roots::Insecure,
                    Trust::Bundle(hash) => match cache.bundles.get(hash) {
                        Some(pem) => Roots::bundle("spec.caBundle", pem),
                        None => return Err(FetchFailure("the CA bundle is not available yet".to_owned())),
                    },
                };
                let alpn = if backend.http2 { Alpn::Http2 } else { Alpn::Http1 };
                let tls = ClientTls::builder()
                    .roots(roots)
                    .alpn(alpn)
                    .client_cert(pair.as_deref().cloned())
                    .build()
                    .map_err(failed)?;
                cache.tls.insert(key, (fingerprint, tls.clone()));
                tls
            }
        };
        let tls = base.with_server_name(&backend.server_name).map_err(failed)?;
        if cache.by_server_name.len() >= MAX_SERVER_NAMES {
            cache.by_server_name.clear();
        }
        cache.by_server_name.insert(trust_and_name, (fingerprint, tls.clone()));
        Ok(tls)
    }

    /// Sends a request to the first address of a backend.
    pub(super) async fn send(
        &self,
        backend: &Backend,
        request: &FetchRequest,
    ) -> Result<FetchResponse, FetchFailure> {
        let target = backend.targets.first().ok_or_else(|| {
            let reason = backend.resolve_error.as_ref().map(|e| e.message.clone());
            FetchFailure(reason.unwrap_or_else(|| "no address to dial".to_owned()))
        })?;
        let target = dial::Target::new(target.host.as_str(), target.port);
        let fetch_target = FetchTarget { target, tls: Some(self.tls(backend)?), host: None };
        self.fetcher.send(&fetch_target, request).await.map_err(|e| FetchFailure(e.to_string()))
    }

    async fn fetch(&self, get: GetRequest<'_>) -> Result<FetchedDocument, FetchFailure> {
        let request = FetchRequest {
            method: Method::GET,
            path: get.path.to_owned(),
            headers: headers(&get)?,
            timeout: get.timeout,
            body: Bytes::new(),
            max_body_bytes: get.max_body,
        };
        let fetched = self.send(get.backend, &request).await?;
        let text = |name| header_text::first(&fetched.headers, name).to_owned();
        Ok(FetchedDocument {
            status: fetched.status.as_u16(),
            content_type: text(header::CONTENT_TYPE),
            etag: text(header::ETAG),
            body: fetched.body,
        })
    }
}

fn headers(get: &GetRequest<'_>) -> Result<HeaderMap, FetchFailure> {
    let value = |text: &str| HeaderValue::from_str(text).map_err(|e| FetchFailure(e.to_string()));
    let mut headers = HeaderMap::new();
    headers.insert("x-remote-user", HeaderValue::from_static(get.user));
    for group in get.groups {
        headers.append("x-remote-group", HeaderValue::from_static(group));
    }
    for (name, text) in [(header::ACCEPT, get.accept), (header::IF_NONE_MATCH, get.if_none_match)] {
        if !text.is_empty() {
            headers.insert(name, value(text)?);
        }
    }
    Ok(headers)
}

impl Fetch for BackendClient {
    fn get<'a>(&'a self, get: GetRequest<'a>) -> FetchFuture<'a> {
        Box::pin(self.fetch(get))
    }
}

#[cfg(test)]
mod tests {
    use portico_kit::dial::{Connector, ConnectorOptions};
    use portico_kit::tasks::TaskSet;

    use super::*;

    #[tokio::test]
    async fn fetches_from_one_backend_share_their_connections() {
        let fetcher = Fetcher::new(Connector::new(ConnectorOptions::default()), TaskSet::new());
        let backends = BackendClient { fetcher, client_cert: None, tls_cache: Mutex::default() };
        let new_backend = |name: &str| Backend {
            server_name: name.to_owned(),
            trust: Trust::Insecure,
            ..Backend::default()
        };
        let id = |backend: &Backend| backends.tls(backend).unwrap().id();
        // Pooled connections are found by this identity.
        assert_eq!(id(&new_backend("a.default.svc")), id(&new_backend("a.default.svc")));
        assert_ne!(id(&new_backend("a.default.svc")), id(&new_backend("b.default.svc")));
        assert_ne!(
            id(&new_backend("a.default.svc")),
            id(&Backend { http2: true, ..new_backend("a.default.svc") })
        );
    }
}
