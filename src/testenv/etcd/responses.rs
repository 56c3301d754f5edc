//! HTTP server for health checks: reads one request per connection, and selects the response by the request's path.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::testenv::state_location::{PATH, StateLocation};

/// Timeout of a request and its response.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a request's header, in bytes.
const MAX_HEADER: u64 = 16 * 1024;

/// Response of a healthy etcd to `/health`.
const HEALTHY: &str = r#"{"health":"true","reason":""}"#;

/// Responses to all requests.
pub(super) struct Responses {
    location: String,
}

impl Responses {
    /// Creates responses that report `location`.
    pub(super) fn new(location: &StateLocation) -> Self {
        // Encoding cannot fail: the flags refuse paths that are not UTF-8.
        Self { location: serde_json::to_string(location).unwrap_or_default() }
    }

    /// Reads a request, sends the response, and closes the connection.
    pub(super) async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        timeout(TIMEOUT, self.exchange(&mut stream)).await?
    }

    async fn exchange(&self, stream: &mut TcpStream) -> io::Result<()> {
        let (read, mut write) = stream.split();
        let mut reader = BufReader::new(read.take(MAX_HEADER));
        let mut request = String::new();
        reader.read_line(&mut request).await?;
        let mut line = String::new();
        // Unread data would reset the connection when it is closed, and the response would be lost.
        while reader.read_line(&mut line).await? > 0 && !line.trim_end().is_empty() {
            line.clear();
        }
        let (code, reason, body) = self.response(request.split(' ').nth(1).unwrap_or_default());
        let length = body.len();
        let kind = if body.starts_with('{') { "application/json" } else { "text/plain; charset=utf-8" };
        let head = format!(
            "HTTP/1.1 {code} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        let body = if request.starts_with("HEAD ") { "" } else { body };
        write.write_all(format!("{head}{body}").as_bytes()).await?;
        write.shutdown().await
    }

    fn response(&self, target: &str) -> (u16, &'static str, &str) {
        match target.split_once('?').map_or(target, |(path, _)| path) {
            "/health" => (200, "OK", HEALTHY),
            "/livez" | "/readyz" => (200, "OK", "ok\n"),
            "/version" => (200, "OK", VERSION),
            PATH => (200, "OK", &self.location),
            _ => (404, "Not Found", "404 page not found\n"),
        }
    }
}

/// Response to `/version`: the version of the etcd that this program replaces.
const VERSION: &str = r#"{"etcdserver":"3.6.8","etcdcluster":"3.6.0"}"#;
