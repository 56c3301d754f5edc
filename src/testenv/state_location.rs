//! Location of state, which the program `kube-apiserver` requests from the program `etcd` over plain HTTP. A real etcd does not
//! serve the path of the request.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use serde::{Deserialize, Serialize};

/// HTTP path of the request.
pub(super) const PATH: &str = "/portico/testenv";

/// Timeout of each step of the request: the server is on this machine and responds from memory.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum size of the response in bytes: a path and the HTTP header.
const MAX_RESPONSE: u64 = 16 * 1024;

/// Response of the program `etcd`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StateLocation {
    /// Folder for the state of servers.
    pub(super) folder: PathBuf,
    /// True if servers may acknowledge writes without waiting for the disk.
    pub(super) unsafe_no_fsync: bool,
}

/// Requests the location from the etcd at `url`. Returns `None` if it is a real etcd or does not respond.
pub(super) fn request_location(url: &str) -> Option<StateLocation> {
    let uri: Uri = url.parse().ok()?;
    if uri.scheme_str() != Some("http") {
        return None;
    }
    let response = http_get(uri.host()?, uri.port_u16()?).ok()?;
    let (head, body) = response.split_once("\r\n\r\n")?;
    let is_ok = head.split(' ').nth(1) == Some("200");
    is_ok.then(|| serde_json::from_str(body).ok()).flatten()
}

fn http_get(host: &str, port: u16) -> io::Result<String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let mut last_error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (bare, port).to_socket_addrs()? {
        let mut stream = match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => stream,
            Err(error) => {
                last_error = error;
                continue;
            }
        };
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        write!(stream, "GET {PATH} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n")?;
        let mut response = String::new();
        stream.take(MAX_RESPONSE).read_to_string(&mut response)?;
        return Ok(response);
    }
    Err(last_error)
}
