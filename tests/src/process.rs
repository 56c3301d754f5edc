//! Processes of the system: start, wait until ready, signal, restart on the same data folder.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use serde_json::Value;
use tempfile::TempDir;

use crate::binary::{binary, repository};
use crate::wait::{WAIT_LIMIT, eventually};

/// Users of every process that the harness starts: token, name, uid, groups.
const TOKENS: &str = "admin-token,admin,uid-admin,\"system:masters\"\n\
    alice-token,alice,uid-alice,\"dev\"\n\
    bob-token,bob,uid-bob,\"dev,ops\"\n\
    carol-token,carol,uid-carol\n";

/// Settings of a process to start.
#[derive(Clone, Default)]
pub struct Launch {
    /// Another program than the one under test.
    program: Option<PathBuf>,
    role: Option<&'static str>,
    folder: Option<(Arc<TempDir>, PathBuf)>,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

impl Launch {
    /// All-in-one in a temporary folder.
    pub fn new() -> Self {
        Self::default()
    }

    /// A control service.
    pub fn server() -> Self {
        Self { role: Some("server"), ..Self::default() }
    }

    /// A facade of this control service.
    pub fn facade(server: &Portico) -> Self {
        Self::facade_with_kubeconfig(&server.data().join("facade.kubeconfig"))
    }

    /// A facade with this kubeconfig.
    pub fn facade_with_kubeconfig(kubeconfig: &Path) -> Self {
        Self { role: Some("facade"), ..Self::default() }
            .arg("--control-kubeconfig")
            .arg(&kubeconfig.to_string_lossy())
    }

    /// A facade of several control services of one database, the first one preferred.
    pub fn facade_of_all(servers: &[&Portico]) -> Self {
        let (first, others) = servers.split_first().expect("at least one server is given");
        others.iter().fold(Self::facade(first), |launch, server| {
            let kubeconfig = server.data().join("facade.kubeconfig");
            launch.arg("--control-kubeconfig").arg(&kubeconfig.to_string_lossy())
        })
    }

    /// Uses another build of the program.
    pub fn program_path(mut self, program: &Path) -> Self {
        self.program = Some(program.to_owned());
        self
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(ToString::to_string));
        self
    }

    /// Adds an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Uses the data folder of another process, which should have ended.
    pub fn with_data_of(mut self, other: &Portico) -> Self {
        self.folder = other.launch.folder.clone();
        self
    }

    /// Returns the folder before the start, so that files can be created there.
    pub fn prepare_folder(mut self) -> (Self, PathBuf) {
        let folder = self.folder().to_owned();
        (self, folder)
    }

    fn folder(&mut self) -> &Path {
        let (_, path) = self.folder.get_or_insert_with(|| {
            let folder = tempfile::Builder::new().prefix("portico-test-").tempdir().unwrap();
            let path = folder.path().to_owned();
            std::fs::write(path.join("tokens.csv"), TOKENS).unwrap();
            (Arc::new(folder), path)
        });
        path
    }

    /// Returns the command line, with ports 0 by default.
    pub fn command(&mut self) -> Command {
        let folder = self.folder().to_owned();
        let mut command = Command::new(self.program.as_deref().unwrap_or_else(|| binary()));
        command.current_dir(&folder).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.args(self.role);
        for (flag, value) in [
            ("--data-dir", folder.join("data").to_string_lossy().into_owned()),
            ("--addresses-file", folder.join("addresses.json").to_string_lossy().into_owned()),
            ("--token-auth-file", folder.join("tokens.csv").to_string_lossy().into_owned()),
            ("--secure-port", "0".to_owned()),
            ("--control-address", "127.0.0.1:0".to_owned()),
        ] {
            let set = self.args.iter().any(|arg| arg == flag || arg.starts_with(&format!("{flag}=")));
            let variable = format!("PORTICO_{}", flag[2..].to_uppercase().replace('-', "_"));
            if !set && !self.env.iter().any(|(name, _)| *name == variable) {
                command.arg(flag).arg(value);
            }
        }
        command.args(&self.args).envs(self.env.iter().map(|(n, v)| (n, v)));
        command.stdin(Stdio::null());
        command
    }

    /// Starts the process and waits until it is ready.
    pub async fn start(self) -> Portico {
        let mut portico = self.spawn();
        portico.wait_ready().await;
        portico
    }

    /// Starts the process without waiting.
    pub fn spawn(mut self) -> Portico {
        crate::install_provider();
        let log = self.folder().join("log");
        let log = File::options().create(true).append(true).open(log).unwrap();
        let mut command = self.command();
        let child =
            command.stdout(log.try_clone().unwrap()).stderr(log).spawn().expect("the binary can be run");
        Portico { child, launch: self, https: None, grpc: None, ca: Vec::new() }
    }

    /// Runs the process to its end; returns exit code, standard output and standard error.
    pub async fn run(mut self) -> (Option<i32>, String, String) {
        let mut command = tokio::process::Command::from(self.command());
        let ends = tokio::time::timeout(WAIT_LIMIT, command.kill_on_drop(true).output());
        let output = ends.await.expect("the process exits in time").expect("the binary can be run");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }
}

/// A running process. Dropping it kills it.
pub struct Portico {
    child: Child,
    launch: Launch,
    https: Option<SocketAddr>,
    grpc: Option<SocketAddr>,
    ca: Vec<u8>,
}

impl Portico {
    /// Starts all-in-one with default settings on ports 0.
    pub async fn start() -> Self {
        Launch::new().start().await
    }

    /// Waits until the process is ready or has ended; returns true if it is ready.
    pub async fn wait_ready_or_exit(&mut self) -> bool {
        eventually("the process is ready, or ends", || {
            let is_ready = self.addresses()["pid"] == u64::from(self.child.id());
            let ended = self.child.try_wait().unwrap().is_some();
            std::future::ready(if is_ready || ended { Ok(()) } else { Err(self.log()) })
        })
        .await;
        let runs = self.is_running();
        if runs {
            self.wait_ready().await;
        }
        runs
    }

    /// Returns the content of the addresses file, if it exists.
    fn addresses(&self) -> Value {
        let read = std::fs::read(self.addresses_file());
        read.ok().map(|bytes| serde_json::from_slice(&bytes).unwrap()).unwrap_or_default()
    }

    /// Waits for the addresses file.
    pub async fn wait_ready(&mut self) {
        let path = self.addresses_file();
        let pid = u64::from(self.child.id());
        let addresses: Value = eventually("the process is ready", || {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the process ended with {status}:\n{}", self.log());
            }
            let read = std::fs::read(&path).map_err(|e| format!("{e}; log:\n{}", self.log()));
            std::future::ready(read.and_then(|bytes| {
                let value: Value = serde_json::from_slice(&bytes).unwrap();
                if value["pid"] == pid {
                    Ok(value)
                } else {
                    Err(format!("the file of another process: {value}"))
                }
            }))
        })
        .await;
        let address =
            |key: &str| Some(addresses[key].as_str()?.trim_start_matches("https://").parse().unwrap());
        (self.https, self.grpc) = (address("https"), address("grpc"));
        self.ca = self.read_ca();
    }

    /// Returns the internal CA, which signs the serving certificates of both halves. A facade has it from its kubeconfig.
    fn read_ca(&self) -> Vec<u8> {
        let kubeconfig_flag = self.launch.args.iter().position(|a| a == "--control-kubeconfig");
        let path = kubeconfig_flag.map_or_else(
            || self.data().join("admin.kubeconfig"),
            |at| self.launch.args[at + 1].clone().into(),
        );
        let kubeconfig = kube::config::Kubeconfig::read_from(&path).expect("the kubeconfig can be read");
        let cluster = kubeconfig.clusters.into_iter().find_map(|c| c.cluster).unwrap();
        let data = cluster.certificate_authority_data.unwrap();
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).unwrap()
    }

    /// Returns the address of the facade.
    pub fn https(&self) -> SocketAddr {
        self.https.expect("this process has a facade")
    }

    /// Returns the address of the control service.
    pub fn grpc(&self) -> SocketAddr {
        self.grpc.expect("this process has a control service")
    }

    /// Returns true for each half, facade and control service, that the process serves.
    pub fn halves(&self) -> (bool, bool) {
        (self.https.is_some(), self.grpc.is_some())
    }

    /// Returns the CA of its serving certificates, as PEM.
    pub fn ca(&self) -> &[u8] {
        &self.ca
    }

    /// Returns the data folder.
    pub fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    /// Returns the folder with data, tokens and log.
    pub fn folder(&self) -> &Path {
        &self.launch.folder.as_ref().unwrap().1
    }

    /// Returns the path of the addresses file.
    pub fn addresses_file(&self) -> PathBuf {
        self.folder().join("addresses.json")
    }

    /// Returns the log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder().join("log")).unwrap_or_default()
    }

    /// Returns the process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns true if the process is running.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Returns the resident memory in KiB.
    pub fn resident_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    /// Returns the peak of the resident memory in KiB.
    pub fn peak_kib(&self) -> u64 {
        self.status_kib("VmHWM:")
    }

    fn status_kib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Kills the process (`kill -9`).
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal, without a program such as `kill`, which may be missing.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Prevents the process from opening files, sockets and pipes; returns the previous limit.
    pub fn exhaust_files(&self) -> Rlimit {
        // The standard streams have the numbers below 3.
        self.limit_files(Rlimit { current: Some(3), maximum: getrlimit(Resource::Nofile).maximum })
    }

    /// Limits the number of open files; returns the previous limit.
    pub fn limit_files(&self, limit: Rlimit) -> Rlimit {
        prlimit(Some(Pid::from_child(&self.child)), Resource::Nofile, limit).unwrap()
    }

    /// Sends SIGTERM, and waits for the end.
    pub async fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait_exit().await
    }

    /// Waits for the end.
    pub async fn wait_exit(&mut self) -> ExitStatus {
        eventually("the process ends", || {
            let ended = self.child.try_wait().unwrap().ok_or_else(|| self.log());
            std::future::ready(ended)
        })
        .await
    }

    /// Starts again on the same data folder and the same ports; the process must have ended.
    pub async fn restart(&mut self) {
        self.relaunch(self.launch.clone()).await;
    }

    /// Returns the path of the running program.
    pub fn program(&self) -> &Path {
        self.launch.program.as_deref().unwrap_or_else(|| binary())
    }

    /// Returns the same settings with another build of the program, on the same folder; the process must have ended.
    pub fn relaunch_with(&self, program: &Path) -> Launch {
        self.launch.clone().program_path(program)
    }

    /// Starts again with another build of the program, on the same data folder and the same ports.
    pub async fn restart_with(&mut self, program: &Path) {
        self.relaunch(self.relaunch_with(program)).await;
    }

    async fn relaunch(&mut self, mut launch: Launch) {
        assert!(!self.is_running(), "the process must be stopped before a restart");
        let _ = std::fs::remove_file(self.addresses_file());
        if let Some(https) = self.https {
            launch = launch.without("--secure-port").args(&["--secure-port", &https.port().to_string()]);
        }
        if let Some(grpc) = self.grpc {
            launch = launch.without("--control-address").args(&["--control-address", &grpc.to_string()]);
        }
        let mut next = launch.spawn();
        next.wait_ready().await;
        *self = next;
    }
}

impl Launch {
    fn without(mut self, flag: &str) -> Self {
        if let Some(at) = self.args.iter().position(|arg| arg == flag) {
            self.args.drain(at..=at + 1);
        }
        self
    }
}

impl Drop for Portico {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() && std::env::var_os("PORTICO_LOG").is_some() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(40).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            // Standard error of the test is what its reader checks first.
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("--- log of {:?}\n{}\n", self.launch.role.unwrap_or("portico"), tail.join("\n"))
                    .as_bytes(),
            );
        }
    }
}

/// Pauses briefly, to check the absence of an event.
pub async fn pause(time: Duration) {
    let mut ticks = tokio::time::interval(time);
    ticks.tick().await;
    ticks.tick().await;
}

/// Returns the repository's example of a flag file, for tests that need any existing file.
pub fn any_file() -> PathBuf {
    repository().join("Cargo.toml")
}
