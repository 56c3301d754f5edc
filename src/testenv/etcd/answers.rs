//! HTTP, as far as health checks go: one request a connection, answered by its path.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::testenv::kept::{Kept, PATH};

/// How long a client may take for its request and its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a request's head may be.
const LONGEST: u64 = 16 * 1024;

/// What etcd says of itself when it is well.
const HEALTHY: &str = r#"{"health":"true","reason":""}"#;

/// The answers that do not change.
pub(super) struct Answers {
    kept: String,
}

impl Answers {
    /// Those of a program that tells this.
    pub(super) fn new(kept: &Kept) -> Self {
        // Two fields always encode; a path that is not UTF-8 is refused by the flags.
        Self { kept: serde_json::to_string(kept).unwrap_or_default() }
    }

    /// Reads a request, answers it, and closes the connection.
    pub(super) async fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        timeout(PATIENCE, self.exchange(&mut stream)).await?
    }

    async fn exchange(&self, stream: &mut TcpStream) -> io::Result<()> {
        let (read, mut write) = stream.split();
        let mut reader = BufReader::new(read.take(LONGEST));
        let mut request = String::new();
        reader.read_line(&mut request).await?;
        let mut line = String::new();
        // What is not read would reset the connection at its end, and take the answer along.
        while reader.read_line(&mut line).await? > 0 && !line.trim_end().is_empty() {
            line.clear();
        }
        let (code, reason, body) = self.of(request.split(' ').nth(1).unwrap_or_default());
        let length = body.len();
        let kind = if body.starts_with('{') { "application/json" } else { "text/plain; charset=utf-8" };
        let head = format!(
            "HTTP/1.1 {code} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        let body = if request.starts_with("HEAD ") { "" } else { body };
        write.write_all(format!("{head}{body}").as_bytes()).await?;
        write.shutdown().await
    }

    fn of(&self, target: &str) -> (u16, &'static str, &str) {
        match target.split_once('?').map_or(target, |(path, _)| path) {
            "/health" => (200, "OK", HEALTHY),
            "/livez" | "/readyz" => (200, "OK", "ok\n"),
            "/version" => (200, "OK", VERSION),
            PATH => (200, "OK", &self.kept),
            _ => (404, "Not Found", "404 page not found\n"),
        }
    }
}

/// Of the etcd in whose place this stands.
const VERSION: &str = r#"{"etcdserver":"3.6.8","etcdcluster":"3.6.0"}"#;
