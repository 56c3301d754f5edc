//! Connections that the control service has approved (`log`, `exec`, `proxy`, ...): this process dials and streams them.
//!
//! Upstream does not serve them with the aggregator's handler: the target does not get the caller's identity, it
//! gets the client's `Host`, and links in its response are rewritten to point below the path of the proxy.

mod command;
mod failure;
mod log;
mod translation;
mod transport_key;
mod tunnel;

use http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue, LOCATION};
use http::uri::PathAndQuery;
use http::{Method, Request, Response, StatusCode};
use portico_kit::header_text;
use portico_machinery::connect::{ConnectKind, DialTarget, clean_path};
use portico_machinery::{RequestInfo, Status};

use crate::Proxy;
use crate::body::ProxyBody;
use crate::headers::{self, ClientAddress, ProxyHeaders, Upgrade};
use crate::links::{LinkRewriter, is_html};
use crate::outgoing_request::OutgoingRequest;
use crate::request_body::RequestBody;
use crate::request_target;
use crate::transport::{BackendResponse, Permit, ResponseBody};
use crate::upgrade;
use crate::web_socket::Handshake;
use translation::Translation;

/// A request for a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionRequest<'a> {
    /// Target of the connection.
    pub dial: &'a DialTarget,
    /// Address of the client.
    pub client: &'a ClientAddress,
    /// Description of the client's request.
    pub info: &'a RequestInfo,
}

type ConnectResult = Result<Response<ProxyBody>, Box<Status>>;

impl Proxy {
    /// Dials the target and forwards the request. There is no deadline: a stream lasts until one side ends it.
    ///
    /// # Errors
    /// Returns upstream's Status if the target is unreachable or must not be dialed.
    pub async fn connect<B: Into<RequestBody>>(
        &self,
        connecting: ConnectionRequest<'_>,
        request: Request<B>,
    ) -> ConnectResult {
        let ConnectionRequest { dial, info, .. } = connecting;
        self.count_web_socket(dial, info);
        let to = headers::requested_upgrade(request.headers());
        let protocol = match (to, dial.kind) {
            (_, ConnectKind::Log) | (Upgrade::None, ConnectKind::Proxy) => None,
            (Upgrade::To(protocol), _) => Some(protocol),
            (Upgrade::None, ConnectKind::Upgrade) => {
                return Err(Box::new(Status::bad_request("Upgrade request required")));
            }
            (Upgrade::Refused(why), _) => return Err(Box::new(Status::bad_request(why))),
        };
        let (key, ca) = self.transport_key(dial).await?;
        if protocol.is_none() && lacks_trailing_slash(dial, request.method()) {
            return Ok(redirect_to_slash(&request));
        }
        let transport = self.transports.get(&self.shared, key, None, ca.as_ref());
        let transport = transport.map_err(|error| Box::new(Status::internal(error)))?;
        let permit = transport.admit().map_err(failure::busy)?;
        let target = request_target::connect_target(&dial.path, &dial.query)
            .map_err(|refusal| Box::new(Status::bad_request(refusal.to_string())))?;
        let request = request.map(Into::into);
        match protocol {
            _ if dial.kind == ConnectKind::Log => self.log(connecting, permit, target).await,
            Some(protocol) => match Translation::select(dial, &protocol, request.headers()) {
                Translation::None => {
                    Box::pin(self.connect_upgrade(connecting, permit, target, request, protocol)).await
                }
                Translation::Channels(streams) => self.command(permit, target, request, streams),
                Translation::Tunnel(spdy) => {
                    Box::pin(self.connect_tunnel(connecting, permit, target, request, spdy)).await
                }
            },
            None => self.connect_plain(connecting, permit, target, request).await,
        }
    }

    async fn connect_upgrade(
        &self,
        connecting: ConnectionRequest<'_>,
        permit: Permit,
        target: PathAndQuery,
        mut request: Request<RequestBody>,
        protocol: HeaderValue,
    ) -> ConnectResult {
        let client = request.extensions_mut().remove();
        let (host, prefix) = (host_of(&request), proxy_prefix(connecting.info));
        let uri = forwarded_uri(&prefix, target.path());
        let (parts, body) = request.into_parts();
        let proxy_headers = ProxyHeaders::for_connect(connecting.client, &uri);
        let outgoing = OutgoingRequest::with_target(target, host, parts, body, proxy_headers);
        let rate = self.shared.limits.connection_bytes_per_second;
        upgrade::upgrade(&self.shared, permit, outgoing, client, protocol, None, rate)
            .await
            .map_err(failure::of_upgrade)
    }

    /// Tunnels SPDY in the messages of a WebSocket: requests SPDY from the kubelet, with the other headers of the client.
    async fn connect_tunnel(
        &self,
        connecting: ConnectionRequest<'_>,
        permit: Permit,
        target: PathAndQuery,
        mut request: Request<RequestBody>,
        spdy: Vec<HeaderValue>,
    ) -> ConnectResult {
        let handshake = match Handshake::read(request.method(), request.headers()) {
            Ok(handshake) => handshake,
            Err(refusal) => {
                self.shared.metrics.record_tunnel(500);
                return Ok(refusal.response());
            }
        };
        let client = request.extensions_mut().remove();
        let (host, prefix) = (host_of(&request), proxy_prefix(connecting.info));
        let uri = forwarded_uri(&prefix, target.path());
        let (mut parts, _) = request.into_parts();
        translation::spdy_request(&mut parts, spdy);
        let proxy_headers = ProxyHeaders::for_connect(connecting.client, &uri);
        let outgoing = OutgoingRequest::with_target(target, host, parts, RequestBody::empty(), proxy_headers);
        self.open_tunnel(permit, outgoing, client, handshake).await
    }

    async fn connect_plain(
        &self,
        connecting: ConnectionRequest<'_>,
        permit: Permit,
        target: PathAndQuery,
        request: Request<RequestBody>,
    ) -> ConnectResult {
        let (host, prefix) = (host_of(&request), proxy_prefix(connecting.info));
        let uri = forwarded_uri(&prefix, target.path());
        let (parts, body) = request.into_parts();
        let proxy_headers = ProxyHeaders::for_connect(connecting.client, &uri);
        let mut outgoing = OutgoingRequest::with_target(target, host.clone(), parts, body, proxy_headers);
        let answer = permit.transport().send(&mut outgoing).await.map_err(failure::of_proxy)?;
        let authority = permit.transport().authority(answer.target);
        let links = LinkRewriter::new(prefix, &host, authority);
        rewrite_links(answer, permit, links)
    }
}

/// Rewrites `Location` and the links of an HTML page so that paths of the target point below the proxy's path.
fn rewrite_links(answer: BackendResponse, permit: Permit, links: LinkRewriter) -> ConnectResult {
    let BackendResponse { mut head, body, carrier, target } = answer;
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(failure::of_proxy(failure::unexpected_switch()));
    }
    headers::clean_direct_response(&mut head.headers);
    head.version = http::Version::HTTP_11;
    let body = ProxyBody::from(ResponseBody::new(body, carrier, permit, Some(target)));
    if let Some(location) = head.headers.get(LOCATION) {
        if let Some(rewritten) = links.rewrite(header_text::text(location))
            && let Ok(value) = HeaderValue::try_from(rewritten)
        {
            head.headers.insert(LOCATION, value);
        }
        return Ok(Response::from_parts(head, body));
    }
    if !is_html(head.headers.get(CONTENT_TYPE)) {
        return Ok(Response::from_parts(head, body));
    }
    let body = body.with_links(links, &mut head.headers);
    Ok(Response::from_parts(head, body))
}

/// Returns true for `.../proxy` without a path, where relative links of the target's page would resolve wrongly.
fn lacks_trailing_slash(dial: &DialTarget, method: &Method) -> bool {
    dial.kind == ConnectKind::Proxy && dial.path.is_empty() && matches!(*method, Method::GET | Method::HEAD)
}

fn redirect_to_slash<B>(request: &Request<B>) -> Response<ProxyBody> {
    let uri = request.uri();
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut response = Response::new(ProxyBody::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    // Any text that is valid in a request line is also valid in a header.
    if let Ok(location) = HeaderValue::try_from(format!("{}/{query}", uri.path())) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// Returns the URL path of the proxy itself (`/api/v1/namespaces/x/pods/p/proxy`), without the requested path below it.
fn proxy_prefix(info: &RequestInfo) -> String {
    let RequestInfo { api_prefix, api_group, api_version, namespace, resource, name, subresource, .. } = info;
    let namespaces = if namespace.is_empty() { "" } else { "namespaces" };
    let mut prefix = Vec::new();
    for part in [api_prefix, api_group, api_version, namespaces, namespace, resource, name, subresource] {
        if !part.is_empty() {
            prefix.push(b'/');
            request_target::escape_path(&mut prefix, part);
        }
    }
    String::from_utf8_lossy(&prefix).into_owned()
}

/// Returns the client's `Host`; HTTP/2 has it in the URI.
fn host_of(request: &Request<RequestBody>) -> HeaderValue {
    let host = request.headers().get(HOST).cloned();
    let authority = || HeaderValue::try_from(request.uri().authority()?.as_str()).ok();
    host.or_else(authority).unwrap_or_else(|| HeaderValue::from_static(""))
}

/// Returns the URI of the client's request, for `X-Forwarded-Uri`.
fn forwarded_uri(prefix: &str, path: &str) -> HeaderValue {
    let uri = clean_path(&format!("{prefix}{path}"));
    HeaderValue::from_bytes(uri.as_bytes()).unwrap_or_else(|_| HeaderValue::from_static("/"))
}

/// Headers of a request that the proxy itself originates.
fn internal_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(http::header::USER_AGENT, HeaderValue::from_static("portico"));
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_excludes_the_requested_path() {
        let below = [
            "",
            "/",
            "/a/b",
            "/a/",
            "//a",
            "/./a",
            "/a//b/../c",
            "/proxy/proxy",
            "//\"><script>alert(1)</script>",
        ];
        for (proxy, want) in [
            ("/api/v1/namespaces/x/pods/p/proxy", "/api/v1/namespaces/x/pods/p/proxy"),
            (
                "/api/v1/namespaces/x/services/https:s:443/proxy",
                "/api/v1/namespaces/x/services/https:s:443/proxy",
            ),
            ("/api/v1/nodes/n:10250/proxy", "/api/v1/nodes/n:10250/proxy"),
            ("/api/v1/namespaces/x/pods/a\"b<c/proxy", "/api/v1/namespaces/x/pods/a%22b%3Cc/proxy"),
        ] {
            for below in below {
                let info = RequestInfo::parse("GET", &format!("{proxy}{below}"), "").unwrap();
                assert_eq!(proxy_prefix(&info), want, "{below}");
            }
        }
    }
}
