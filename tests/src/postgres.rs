//! PostgreSQL, if it is installed: a server in a temporary folder, databases in it, and PgBouncer in front of it.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};

use crate::pki::CertPair;
use crate::report_skip;
use crate::swept_folder::SweptFolder;
use crate::wait::WAIT_LIMIT;
use crate::wire::Wire;

/// User of the programs if the test runs as root, which they refuse.
const USER: &str = "nobody";

/// A server with a temporary folder.
pub struct PostgresServer {
    programs: PathBuf,
    folder: SweptFolder,
    port: u16,
    /// Settings in addition to the common ones.
    settings: Vec<String>,
    running: Mutex<Option<RunningProgram>>,
    databases: AtomicU32,
}

/// A running program.
struct RunningProgram {
    pid: Pid,
    ended: std::sync::mpsc::Receiver<ExitStatus>,
}

impl PostgresServer {
    /// Starts a server. `None`, and a report, if PostgreSQL is not installed.
    pub fn start() -> Option<Self> {
        let server = Self::initialize(5432, &[])?;
        server.restart();
        Some(server)
    }

    /// Starts a server that also listens at [`PostgresServer::address`], with TLS and this certificate, and requires this
    /// password of its user there.
    pub fn start_with_tls(pair: &CertPair, password: &str) -> Option<Self> {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self::initialize(free, &["--auth-host=scram-sha-256"])?;
        let data = server.folder.path().join("data");
        for (name, text) in [("server.crt", &pair.cert), ("server.key", &pair.key)] {
            let path = data.join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            if rustix::process::getuid().is_root() {
                let owner = std::fs::metadata(&data).unwrap();
                std::os::unix::fs::chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
            }
        }
        let rules = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
        std::fs::write(data.join("pg_hba.conf"), rules).unwrap();
        server.settings = vec!["listen_addresses=127.0.0.1".to_owned(), "ssl=on".to_owned()];
        server.restart();
        server.psql("postgres", &format!("ALTER USER portico PASSWORD '{password}'"));
        Some(server)
    }

    /// Returns the address of a server with TLS.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Initializes the data of a server.
    fn initialize(port: u16, arguments: &[&str]) -> Option<Self> {
        let Some(programs) = programs() else {
            report_skip("PostgreSQL is not installed");
            return None;
        };
        let folder = folder();
        let data = path_text(&folder.path().join("data"));
        let mut all = vec!["-D", &data, "-U", "portico", "-A", "trust", "-E", "UTF8"];
        all.extend(arguments);
        let all: Vec<String> = all.into_iter().map(str::to_owned).collect();
        let output = command(&programs.join("initdb"), &all).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(Self::with_folder(programs, folder, port))
    }

    fn with_folder(programs: PathBuf, folder: SweptFolder, port: u16) -> Self {
        let settings = vec!["listen_addresses=".to_owned()];
        let (running, databases) = (Mutex::default(), AtomicU32::new(0));
        Self { programs, folder, port, settings, running, databases }
    }

    /// Starts a standby that replicates this server.
    pub fn start_standby(&self) -> Self {
        let folder = folder();
        let (socket, data) = (path_text(self.folder.path()), path_text(&folder.path().join("data")));
        let arguments = ["-D", &data, "-h", &socket, "-U", "portico", "-R", "-c", "fast", "-X", "stream"];
        let program = self.programs.join("pg_basebackup");
        let output = command(&program, &arguments.map(str::to_owned)).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let standby = Self::with_folder(self.programs.clone(), folder, self.port);
        standby.restart();
        standby
    }

    /// Returns the shared server of this process, for tests that do not stop it.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<PostgresServer>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    /// Starts the server on its present data.
    pub fn restart(&self) {
        let mut settings = vec![
            format!("unix_socket_directories={}", path_text(self.folder.path())),
            format!("port={}", self.port),
            "max_connections=400".to_owned(),
        ];
        settings.extend(self.settings.clone());
        let mut arguments = vec!["-D".to_owned(), path_text(&self.folder.path().join("data"))];
        arguments.extend(settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]));
        *self.running.lock() = Some(stay(&self.programs.join("postgres"), arguments));
        let deadline = Instant::now() + WAIT_LIMIT;
        let socket = path_text(self.folder.path());
        while !Command::new(self.programs.join("pg_isready"))
            .args(["-q", "-h", &socket, "-p", &self.port.to_string()])
            .status()
            .unwrap()
            .success()
        {
            assert!(Instant::now() < deadline, "the server did not become ready");
        }
    }

    /// Ends the server abruptly, as a power loss would; it has to recover.
    pub fn kill(&self) {
        let Some(running) = self.running.lock().take() else { return };
        kill_process(running.pid, Signal::QUIT).unwrap();
        running.ended.recv_timeout(WAIT_LIMIT).unwrap();
    }

    /// Creates a database; returns its name.
    pub fn create_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// Runs a statement; returns its output.
    pub fn psql(&self, database: &str, statement: &str) -> String {
        let (program, socket) = (self.programs.join("psql"), path_text(self.folder.path()));
        let port = self.port.to_string();
        let arguments =
            ["-X", "-A", "-t", "-h", &socket, "-p", &port, "-U", "portico", "-d", database, "-c", statement];
        let done = Command::new(program).args(arguments).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    /// Ends every connection to a database.
    pub fn terminate_connections(&self, database: &str) {
        let statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        self.psql(database, statement);
    }

    /// Returns the URL of a database.
    pub fn url(&self, database: &str) -> String {
        url(self.folder.path(), database)
    }

    /// Starts a wire to this server that can be stalled; see [`Wire`].
    pub async fn wire(&self) -> Wire {
        Wire::start(&self.socket()).await
    }

    /// Returns the path of the socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join(format!(".s.PGSQL.{}", self.port))
    }

    /// Returns the URL of a database of the shared server behind PgBouncer in transaction mode. `None`, and a report, if
    /// PgBouncer is not installed.
    pub fn pooled_url(database: &str) -> Option<String> {
        static POOLER: OnceLock<Option<SweptFolder>> = OnceLock::new();
        let pooler = POOLER.get_or_init(|| Self::shared().and_then(Self::start_pooler));
        pooler.as_ref().map(|folder| url(folder.path(), database))
    }

    fn start_pooler(&self) -> Option<SweptFolder> {
        let program = Path::new("/usr/sbin/pgbouncer");
        if !program.exists() {
            report_skip("PgBouncer is not installed");
            return None;
        }
        let folder = folder();
        let configuration = format!(
            "[databases]\n* = host={} user=portico\n[pgbouncer]\npool_mode = transaction\nauth_type = any\nlisten_port = 5432\n\
             unix_socket_dir = {}\ndefault_pool_size = 3\nmax_client_conn = 1000\n",
            path_text(self.folder.path()),
            path_text(folder.path())
        );
        let file = folder.path().join("pgbouncer.ini");
        std::fs::write(&file, configuration).unwrap();
        drop(stay(program, vec!["-q".to_owned(), path_text(&file)]));
        let (deadline, socket) = (Instant::now() + WAIT_LIMIT, folder.path().join(".s.PGSQL.5432"));
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(Instant::now() < deadline, "the pooler did not become ready");
            std::thread::yield_now();
        }
        Some(folder)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the folder of PostgreSQL's programs: the value of `PORTICO_POSTGRES`, or the newest installed version.
fn programs() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PORTICO_POSTGRES") {
        return Some(named.into());
    }
    let installed = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<PathBuf> = installed.map(|entry| entry.unwrap().path().join("bin")).collect();
    found.retain(|folder| folder.join("initdb").exists());
    found.sort();
    found.pop()
}

/// Creates a folder that the user of the programs may write to.
fn folder() -> SweptFolder {
    SweptFolder::new("portico-postgres-").unwrap()
}

fn url(socket: &Path, database: &str) -> String {
    format!("postgres://portico@{}/{database}", path_text(socket).replace('/', "%2F"))
}

/// Runs a program until it ends, at the latest with this process.
fn stay(program: &Path, arguments: Vec<String>) -> RunningProgram {
    let (started, pid) = std::sync::mpsc::channel();
    let (ending, ended) = std::sync::mpsc::channel();
    let mut command = command(program, &arguments);
    command.stderr(Stdio::null());
    // The program ends with the thread that started it, which therefore waits for it.
    std::thread::spawn(move || {
        let mut child = command.spawn().unwrap();
        started.send(Pid::from_child(&child)).unwrap();
        // Fails if the receiver is not interested in the end.
        let _unreceived = ending.send(child.wait().unwrap());
    });
    RunningProgram { pid: pid.recv().unwrap(), ended }
}

/// Returns a command with a user that the program accepts; the program ends with its parent.
fn command(program: &Path, arguments: &[String]) -> Command {
    // PostgreSQL treats SIGTERM as a request to wait for its clients, PgBouncer ends at once.
    let signal = if program.ends_with("pgbouncer") { "SIGTERM" } else { "SIGQUIT" };
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", signal]);
    if rustix::process::getuid().is_root() {
        command.args(["--reuid", USER, "--regid", "nogroup", "--clear-groups"]);
    }
    command.arg(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).current_dir("/");
    command
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}
