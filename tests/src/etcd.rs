//! etcd, if it is installed: a server in a temporary folder, on free ports.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};

use crate::report_skip;
use crate::wait::WAIT_LIMIT;

/// Variable with the path of the program if it is not in PATH.
const PROGRAM: &str = "ETCD";
/// Oldest release that a store accepts.
const MIN_VERSION: (u32, u32, u32) = (3, 5, 13);

/// A server with a temporary folder.
pub struct EtcdServer {
    program: PathBuf,
    folder: tempfile::TempDir,
    flags: Vec<String>,
    over_tls: bool,
    client: u16,
    peer: u16,
    running: Mutex<Option<Child>>,
}

impl EtcdServer {
    /// Starts a server. `None`, and a report, if etcd is not installed or too old.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts a server with further flags.
    pub fn start_with(flags: &[&str]) -> Option<Self> {
        Self::start_server(flags, false)
    }

    /// Starts a server that requires TLS with client certificates of this CA.
    pub fn start_over_tls(ca: &str, cert: &str, key: &str) -> Option<Self> {
        let flags = ["--client-cert-auth", "--trusted-ca-file", ca, "--cert-file", cert, "--key-file", key];
        Self::start_server(&flags, true)
    }

    fn start_server(flags: &[&str], over_tls: bool) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::Builder::new().prefix("portico-etcd-").tempdir().unwrap();
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let (client, peer) = (free_port(), free_port());
        let running = Mutex::default();
        let server = Self { program, folder, flags, over_tls, client, peer, running };
        server.restart();
        Some(server)
    }

    /// Starts the server on its present data.
    pub fn restart(&self) {
        let (client, peer) = (self.url(), format!("http://127.0.0.1:{}", self.peer));
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "SIGKILL"]).arg(&self.program);
        command.arg("--data-dir").arg(self.folder.path().join("data"));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("default={peer}"), "--log-level", "error"]);
        let log = std::fs::File::options().create(true).append(true).open(self.log()).unwrap();
        command.args(&self.flags).stdout(Stdio::null()).stderr(log);
        *self.running.lock() = Some(command.spawn().unwrap());
        let deadline = Instant::now() + WAIT_LIMIT;
        while !self.is_ready() {
            let log = || std::fs::read_to_string(self.log()).unwrap_or_default();
            assert!(Instant::now() < deadline, "etcd did not become ready: {}", log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn is_ready(&self) -> bool {
        match self.over_tls {
            // Connections without a client certificate get no response.
            true => std::net::TcpStream::connect(("127.0.0.1", self.client)).is_ok(),
            false => self.post("kv/range", r#"{"key":"AA=="}"#).is_some(),
        }
    }

    /// Sends a request to the HTTP gateway; returns the body of a successful response.
    pub fn post(&self, path: &str, body: &str) -> Option<String> {
        post(self.client, path, body, WAIT_LIMIT)
    }

    /// Returns true if a file of the server contains these bytes.
    pub fn contains(&self, text: &str) -> bool {
        folder_contains(&self.folder.path().join("data"), text.as_bytes())
    }

    /// Ends the server abruptly, as a power loss would.
    pub fn kill(&self) {
        let Some(mut running) = self.running.lock().take() else { return };
        kill_process(Pid::from_child(&running), Signal::KILL).unwrap();
        running.wait().unwrap();
    }

    /// Saves a copy of the data, while the server does not run.
    pub fn save_copy(&self, name: &str) {
        copy(&self.folder.path().join("data"), &self.folder.path().join(name));
    }

    /// Restores a saved copy of the data, while the server does not run.
    pub fn restore_copy(&self, name: &str) {
        let data = self.folder.path().join("data");
        std::fs::remove_dir_all(&data).unwrap();
        copy(&self.folder.path().join(name), &data);
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", if self.over_tls { "https" } else { "http" }, self.client)
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn folder_contains(folder: &Path, text: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| match path.is_dir() {
        true => folder_contains(&path, text),
        false => std::fs::read(path).unwrap().windows(text.len()).any(|part| part == text),
    })
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap();
    assert!(done.success());
}

/// Sends a request to the HTTP gateway at this port; returns the body of a successful response within the time.
pub(crate) fn post(port: u16, path: &str, body: &str, within: Duration) -> Option<String> {
    use std::io::{Read as _, Write as _};
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let mut stream = std::net::TcpStream::connect_timeout(&address, within).ok()?;
    stream.set_read_timeout(Some(within)).unwrap();
    let length = body.len();
    let head = format!("POST /v3/{path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.split(' ').nth(1).filter(|code| *code == "200").map(|_| body.to_owned())
}

/// Returns the program, if it is new enough.
pub(crate) fn program() -> Option<PathBuf> {
    let found = std::env::var_os(PROGRAM).map(PathBuf::from).or_else(find_in_path);
    let Some(program) = found else {
        report_skip("etcd is not installed");
        return None;
    };
    let version_text = Command::new(&program).arg("--version").output().unwrap();
    let version_text = String::from_utf8_lossy(&version_text.stdout).into_owned();
    let version =
        version_text.lines().find_map(|line| line.strip_prefix("etcd Version: ")).unwrap_or_default();
    let mut parts = version.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let mut part = || parts.next().unwrap_or(0);
    if (part(), part(), part()) < MIN_VERSION {
        report_skip(&format!("etcd {version} is too old; the variable {PROGRAM} may name a newer one"));
        return None;
    }
    Some(program)
}

fn find_in_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("etcd")).find(|program| program.is_file())
}

/// Returns a free port: etcd does not choose one itself.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
