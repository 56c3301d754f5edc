//! HTTPS client for issuers: fetches metadata, keys and distributed claims.
//!
//! Upstream rules: go-oidc's `NewProvider` and `remoteKeySet`, `getClaimJWT`. Responses are limited in size and time. Redirects
//! are followed up to a limit, and only to https.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use portico_auth::oidc::{ClaimSource, JsonWebKeys, MAX_TOKEN_BYTES};
use portico_gostd::json::{error_text, from_slice};
use portico_kit::dial::{Connector, ConnectorOptions, Target};
use portico_kit::egress::EgressDialer;
use portico_kit::fetch::{FetchRequest, FetchResponse, FetchTarget, Fetcher};
use portico_kit::header_text;
use portico_kit::tasks::TaskSet;
use portico_kit::tls::{Alpn, ClientTls, TlsError};
use serde::Deserialize;

use super::address::IssuerAddress;

/// Path of the metadata of an issuer (`wellKnownEndpointPath`).
const WELL_KNOWN: &str = "/.well-known/openid-configuration";
/// Time to fetch a document of an issuer.
///
/// Limit (Authentication and authorization): the fetch fails.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for fetching a claim, which a request waits for.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of one step of a connection.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Size of the metadata or the key set of an issuer.
///
/// Limit (Authentication and authorization, bytes): the fetch fails.
const MAX_DOCUMENT_BYTES: usize = 1 << 20;
/// Maximum number of redirects for one document (as in Go's `http.Client`).
const MAX_REDIRECTS: usize = 10;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

/// Client for one issuer. Cheap to clone.
#[derive(Clone)]
pub(super) struct Provider {
    fetcher: Fetcher,
    tls: ClientTls,
}

impl Provider {
    /// Creates a client that trusts the CAs of the address.
    ///
    /// # Errors
    /// The CA cannot be used.
    pub(super) fn new(
        address: &IssuerAddress,
        egress: Option<EgressDialer>,
        tasks: &TaskSet,
    ) -> Result<Self, TlsError> {
        let options = ConnectorOptions {
            dial_timeout: STEP_TIMEOUT,
            tls_timeout: STEP_TIMEOUT,
            ..ConnectorOptions::default()
        };
        let fetcher = Fetcher::new(Connector::with_egress(options, egress), tasks.clone());
        let tls = ClientTls::builder().roots(address.roots.clone()).alpn(Alpn::Both).build()?;
        Ok(Self { fetcher, tls })
    }

    /// Returns the URL of an issuer's keys.
    ///
    /// # Errors
    /// The metadata cannot be fetched or does not contain the URL.
    pub(super) async fn discover(&self, issuer: &str, at: Option<&str>) -> Result<String, String> {
        let well_known = format!("{}{WELL_KNOWN}", issuer.strip_suffix('/').unwrap_or(issuer));
        let body = self.document(at.unwrap_or(&well_known)).await?;
        let metadata: Metadata = from_slice(&body).map_err(|error| {
            format!("oidc: failed to decode provider discovery object: {}", error_text(&error))
        })?;
        if metadata.issuer != issuer {
            let got = metadata.issuer;
            return Err(format!(
                "oidc: issuer did not match the issuer returned by provider, expected {issuer:?} got {got:?}"
            ));
        }
        if metadata.jwks_uri.is_empty() {
            Err("provider did not return JWKS URL".to_owned())
        } else {
            Ok(metadata.jwks_uri)
        }
    }

    /// Returns the keys of an issuer, and the document that contains them.
    ///
    /// # Errors
    /// The keys cannot be fetched or decoded.
    pub(super) async fn keys(&self, at: &str) -> Result<(JsonWebKeys, Bytes), String> {
        let body = self.document(at).await.map_err(|error| format!("oidc: get keys failed {error}"))?;
        let keys =
            JsonWebKeys::parse(&body).map_err(|error| format!("oidc: failed to decode keys: {error}"))?;
        Ok((keys, body))
    }

    /// Returns the token that contains a distributed claim.
    ///
    /// # Errors
    /// The token cannot be fetched.
    pub(super) async fn claim(&self, source: &ClaimSource) -> Result<String, String> {
        let mut headers = HeaderMap::new();
        if !source.access_token.is_empty() {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", source.access_token))
                .map_err(|_| "invalid header field value for \"Authorization\"".to_owned())?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let found = self.get(&source.endpoint, headers, CLAIM_TIMEOUT, MAX_TOKEN_BYTES).await?;
        if !found.status.is_success() {
            return Err(format!("error while getting distributed claim JWT: {}", found.status));
        }
        String::from_utf8(found.body.to_vec())
            .map_err(|_| "could not decode distributed claim response".to_owned())
    }

    async fn document(&self, url: &str) -> Result<Bytes, String> {
        let found = self.get(url, HeaderMap::new(), TIMEOUT, MAX_DOCUMENT_BYTES).await?;
        if found.status == StatusCode::OK { Ok(found.body) } else { Err(found.status.to_string()) }
    }

    /// Fetches a document and follows redirects, all within `timeout`.
    async fn get(
        &self,
        url: &str,
        headers: HeaderMap,
        timeout: Duration,
        max_body: usize,
    ) -> Result<FetchResponse, String> {
        let found = tokio::time::timeout(timeout, self.follow(url, headers, timeout, max_body)).await;
        found.unwrap_or_else(|_| Err(format!("Get {url:?}: context deadline exceeded")))
    }

    async fn follow(
        &self,
        url: &str,
        mut headers: HeaderMap,
        timeout: Duration,
        max_body_bytes: usize,
    ) -> Result<FetchResponse, String> {
        let failed = |error: &dyn std::fmt::Display| format!("Get {url:?}: {error}");
        let mut at: Uri = url.parse().map_err(|error| failed(&error))?;
        for _ in 0..=MAX_REDIRECTS {
            let (target, path) = self.target(&at).map_err(|error| failed(&error))?;
            let request = FetchRequest {
                method: Method::GET,
                path,
                headers: headers.clone(),
                timeout,
                body: Bytes::new(),
                max_body_bytes,
            };
            let found = self.fetcher.send(&target, &request).await.map_err(|error| failed(&error))?;
            let Some(location) =
                found.headers.get(header::LOCATION).filter(|_| found.status.is_redirection())
            else {
                return Ok(found);
            };
            let next = resolve_redirect(&at, header_text::text(location));
            let next = next.ok_or_else(|| failed(&"the redirect has no valid location"))?;
            if next.authority() != at.authority() {
                headers.remove(header::AUTHORIZATION);
            }
            at = next;
        }
        Err(failed(&format!("stopped after {MAX_REDIRECTS} redirects")))
    }

    fn target(&self, at: &Uri) -> Result<(FetchTarget, String), &'static str> {
        if at.scheme_str() != Some("https") {
            return Err("not an https URL");
        }
        let authority = at.authority().ok_or("no Host in request URL")?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let target = Target::new(host, authority.port_u16().unwrap_or(443));
        let path = at.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let host = Some(authority.as_str().rsplit('@').next().unwrap_or_default().to_owned());
        Ok((FetchTarget { target, tls: Some(self.tls.clone()), host }, path))
    }
}

/// Resolves the location of a redirect: an absolute URL, or a path on the same host.
fn resolve_redirect(base: &Uri, location: &str) -> Option<Uri> {
    if location.starts_with('/') && !location.starts_with("//") {
        return format!("https://{}{location}", base.authority()?).parse().ok();
    }
    location.parse().ok()
}
