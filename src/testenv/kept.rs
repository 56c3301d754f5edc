//! What the program that is called `etcd` tells the one that is called `kube-apiserver`: that it is not an etcd, and where it
//! would keep state. One asks, over plain HTTP; a real etcd does not know the path.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use serde::{Deserialize, Serialize};

/// Where it is asked.
pub(super) const PATH: &str = "/portico/testenv";

/// How long each step of asking may take. It is on this machine, and answers from memory.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long an answer may be: a path, and what HTTP says besides.
const LONGEST: u64 = 16 * 1024;

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kept {
    /// The folder in which servers of it keep their state.
    pub(super) folder: PathBuf,
    /// Whether they need not wait for the disk.
    pub(super) unsafe_no_fsync: bool,
}

/// What is at this URL of an etcd: none if it is anything but ours, or nobody.
pub(super) fn ask(url: &str) -> Option<Kept> {
    let uri: Uri = url.parse().ok()?;
    if uri.scheme_str() != Some("http") {
        return None;
    }
    let answer = get(uri.host()?, uri.port_u16()?).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let is_ok = head.split(' ').nth(1) == Some("200");
    is_ok.then(|| serde_json::from_str(body).ok()).flatten()
}

fn get(host: &str, port: u16) -> io::Result<String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let mut refused = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (bare, port).to_socket_addrs()? {
        let mut stream = match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => stream,
            Err(error) => {
                refused = error;
                continue;
            }
        };
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        write!(stream, "GET {PATH} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(LONGEST).read_to_string(&mut answer)?;
        return Ok(answer);
    }
    Err(refused)
}
