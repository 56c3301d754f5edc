//! An HTTPS client that trusts one CA and uses HTTP/1.1 or HTTP/2.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use portico_kit::tls::{Alpn, ClientTls, Roots};

type Https = hyper_rustls::HttpsConnector<HttpConnector>;

#[derive(Clone)]
pub struct Client {
    pool: Pool<Https, Full<Bytes>>,
    base: String,
    token: &'static str,
}

#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }
}

impl Client {
    pub fn new(addr: SocketAddr, ca: &[u8], version: Version) -> Self {
        let alpn = if version == Version::HTTP_2 { Alpn::Http2 } else { Alpn::Http1 };
        let roots = Roots::Pem { label: "test".into(), pem: ca.to_vec().into() };
        let tls = ClientTls::builder().roots(roots).build().unwrap();
        let mut config = tls.config().as_ref().clone();
        config.alpn_protocols.clear();
        let builder = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(config).https_only();
        let connector = match alpn {
            Alpn::Http2 => builder.enable_http2().build(),
            _ => builder.enable_http1().build(),
        };
        let pool =
            Pool::builder(TokioExecutor::new()).http2_only(version == Version::HTTP_2).build(connector);
        Self { pool, base: format!("https://localhost:{}", addr.port()), token: "master" }
    }

    /// Returns a client with another bearer token; empty for anonymous.
    pub fn with_token(&self, token: &'static str) -> Self {
        Self { token, ..self.clone() }
    }

    pub async fn open(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<http::Response<Incoming>, hyper_util::client::legacy::Error> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.pool.request(request.body(Full::new(body.into())).unwrap()).await
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let (parts, body) = self.open(method, path, headers, body).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], "").await
    }
}
