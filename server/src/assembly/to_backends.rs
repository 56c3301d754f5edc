//! The way to backends for the catalog and for controllers: same trust, same names, same certificate as real traffic.

use std::collections::HashMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use parking_lot::Mutex;
use portico_kit::dial;
use portico_kit::fetch::{FetchRequest, FetchTarget, Fetched, Fetcher};
use portico_kit::header_text;
use portico_kit::tls::{Alpn, CertPair, ClientTls, Roots};
use portico_machinery::route::{Backend, Trust};
use portico_server_catalog::{Answer, Fetch, FetchFailure, FetchFuture, Get};

use super::backends::Backends;

/// Reaches backends as real traffic does: same trust, same names, same certificate.
pub(super) struct ToBackends {
    fetcher: Fetcher,
    client_cert: Option<portico_kit::certs::FileWatch<CertPair>>,
    known: Mutex<Known>,
}

/// What backends that are trusted alike share: trust, and whether HTTP/2 is spoken.
type Alike = (Trust, bool);
/// TLS settings and the fingerprint of the client certificate that they present.
type Prepared = (Option<[u8; 32]>, ClientTls);

/// More server names than this are forgotten and prepared again.
const NAMED: usize = 16 * 1024;

/// Bundles by hash, and TLS settings of those that were used.
#[derive(Default)]
struct Known {
    bundles: HashMap<String, Bytes>,
    tls: HashMap<Alike, Prepared>,
    /// The same under a server name. Kept, because kept connections are found by the settings' identity: new ones for
    /// each fetch would mean a new connection for each fetch, and the old ones kept for nobody.
    named: HashMap<(Alike, String), Prepared>,
}

impl ToBackends {
    pub(super) fn new(backends: &Backends) -> Self {
        Self {
            fetcher: backends.fetcher.clone(),
            client_cert: backends.client_cert_watch(),
            known: Mutex::default(),
        }
    }

    pub(super) fn trust(&self, hash: &str, pem: &[u8]) {
        self.known.lock().bundles.insert(hash.to_owned(), Bytes::copy_from_slice(pem));
    }

    pub(super) fn distrust(&self, hash: &str) {
        let mut known = self.known.lock();
        known.bundles.remove(hash);
        let gone = Trust::Bundle(hash.to_owned());
        known.tls.retain(|(trust, _), _| *trust != gone);
        known.named.retain(|((trust, _), _), _| *trust != gone);
    }

    /// TLS settings shared by all backends that are trusted alike, under this one's name.
    fn tls(&self, backend: &Backend) -> Result<ClientTls, FetchFailure> {
        let failed = |e: portico_kit::tls::TlsError| FetchFailure(e.to_string());
        let pair = self.client_cert.as_ref().map(|w| w.current());
        let print = pair.as_ref().map(|p| p.info().fingerprint);
        let key = (backend.trust.clone(), backend.http2);
        let named = (key.clone(), backend.server_name.clone());
        let mut known = self.known.lock();
        if let Some((_, tls)) = known.named.get(&named).filter(|(same, _)| *same == print) {
            return Ok(tls.clone());
        }
        let base = match known.tls.get(&key) {
            Some((same, tls)) if *same == print => tls.clone(),
            _ => {
                let roots = match &backend.trust {
                    Trust::System => Roots::System,
                    Trust::Insecure => Roots::Insecure,
                    Trust::Bundle(hash) => match known.bundles.get(hash) {
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
                known.tls.insert(key, (print, tls.clone()));
                tls
            }
        };
        let tls = base.with_server_name(&backend.server_name).map_err(failed)?;
        if known.named.len() >= NAMED {
            known.named.clear();
        }
        known.named.insert(named, (print, tls.clone()));
        Ok(tls)
    }

    /// Sends a request to a backend's first address.
    pub(super) async fn send(
        &self,
        backend: &Backend,
        request: &FetchRequest,
    ) -> Result<Fetched, FetchFailure> {
        let target = backend.targets.first().ok_or_else(|| {
            let reason = backend.resolve_error.as_ref().map(|e| e.message.clone());
            FetchFailure(reason.unwrap_or_else(|| "no address to dial".to_owned()))
        })?;
        let target = dial::Target::new(target.host.as_str(), target.port);
        let to = FetchTarget { target, tls: Some(self.tls(backend)?), host: None };
        self.fetcher.send(&to, request).await.map_err(|e| FetchFailure(e.to_string()))
    }

    async fn fetch(&self, get: Get<'_>) -> Result<Answer, FetchFailure> {
        let request = FetchRequest {
            method: Method::GET,
            path: get.path.to_owned(),
            headers: headers(&get)?,
            timeout: get.timeout,
            body: Bytes::new(),
            max_body: get.max_body,
        };
        let fetched = self.send(get.backend, &request).await?;
        let text = |name| header_text::first(&fetched.headers, name).to_owned();
        Ok(Answer {
            status: fetched.status.as_u16(),
            content_type: text(header::CONTENT_TYPE),
            etag: text(header::ETAG),
            body: fetched.body,
        })
    }
}

fn headers(get: &Get<'_>) -> Result<HeaderMap, FetchFailure> {
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

impl Fetch for ToBackends {
    fn get<'a>(&'a self, get: Get<'a>) -> FetchFuture<'a> {
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
        let backends = ToBackends { fetcher, client_cert: None, known: Mutex::default() };
        let of = |name: &str| Backend {
            server_name: name.to_owned(),
            trust: Trust::Insecure,
            ..Backend::default()
        };
        let id = |backend: &Backend| backends.tls(backend).unwrap().id();
        // Kept connections are found by this identity.
        assert_eq!(id(&of("a.default.svc")), id(&of("a.default.svc")));
        assert_ne!(id(&of("a.default.svc")), id(&of("b.default.svc")));
        assert_ne!(id(&of("a.default.svc")), id(&Backend { http2: true, ..of("a.default.svc") }));
    }
}
