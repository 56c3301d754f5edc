//! Portico as users run it: the release binary, on free ports.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use portico_proto::client::{Client, Connection};
use serde::Deserialize;

use crate::https::Endpoint;
use crate::process::{Process, wait_until};
use crate::{BenchContext, Failure};

/// Timeout of a call of the gRPC client.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A running process.
pub(crate) struct Portico {
    /// The process.
    pub(crate) process: Process,
    addresses: Addresses,
    folder: PathBuf,
    data: PathBuf,
}

#[derive(Deserialize)]
struct Addresses {
    https: Option<SocketAddr>,
    grpc: Option<SocketAddr>,
}

impl Portico {
    /// Starts all-in-one and waits until it is ready.
    pub(crate) async fn start(setting: &BenchContext) -> Result<Self, Failure> {
        Self::start_role(setting, &[]).await
    }

    /// Starts all-in-one with these flags and waits until it is ready.
    pub(crate) async fn with(setting: &BenchContext, flags: &[&str]) -> Result<Self, Failure> {
        Self::start_role(setting, flags).await
    }

    /// Starts all-in-one of the baseline build and waits until it is ready; `None` without `--baseline`.
    pub(crate) async fn baseline(setting: &BenchContext) -> Result<Option<Self>, Failure> {
        let Some(binary) = &setting.options.baseline else { return Ok(None) };
        Self::start_role_of(binary, setting, &[]).await.map(Some)
    }

    /// Starts a control service and waits until it is ready.
    pub(crate) async fn server(setting: &BenchContext) -> Result<Self, Failure> {
        Self::start_role(setting, &["server"]).await
    }

    /// Starts a facade of this control service and waits until it is ready.
    pub(crate) async fn facade(setting: &BenchContext, server: &Self) -> Result<Self, Failure> {
        let kubeconfig = server.data.join("facade.kubeconfig");
        Self::start_role(setting, &["facade", "--control-kubeconfig", &kubeconfig.to_string_lossy()]).await
    }

    /// Starts a facade on a fixed port and waits until it is ready.
    pub(crate) async fn facade_on(setting: &BenchContext, server: &Self, port: u16) -> Result<Self, Failure> {
        let (kubeconfig, port) = (server.data.join("facade.kubeconfig"), port.to_string());
        let role = ["facade", "--control-kubeconfig", &kubeconfig.to_string_lossy(), "--secure-port", &port];
        Self::run(&binary()?, setting, setting.new_folder("portico-")?, &role).await
    }

    /// Starts all-in-one on the folder of an ended process ([`Self::end`]); also returns the milliseconds until it was ready.
    pub(crate) async fn restart(
        setting: &BenchContext,
        folder: PathBuf,
        flags: &[&str],
    ) -> Result<(Self, f64), Failure> {
        let start = Instant::now();
        let portico = Self::run(&binary()?, setting, folder, flags).await?;
        Ok((portico, start.elapsed().as_secs_f64() * 1e3))
    }

    async fn start_role(setting: &BenchContext, role: &[&str]) -> Result<Self, Failure> {
        Self::start_role_of(&binary()?, setting, role).await
    }

    async fn start_role_of(binary: &Path, setting: &BenchContext, role: &[&str]) -> Result<Self, Failure> {
        Self::run(binary, setting, setting.new_folder("portico-")?, role).await
    }

    async fn run(
        binary: &Path,
        setting: &BenchContext,
        folder: PathBuf,
        role: &[&str],
    ) -> Result<Self, Failure> {
        let data = folder.join("data");
        let file = folder.join("addresses.json");
        // A killed process leaves its file.
        if file.exists() {
            std::fs::remove_file(&file)?;
        }
        let mut command = command_of(binary, &data);
        command.args(role).arg("--addresses-file").arg(&file);
        command.args(["--control-address", "127.0.0.1:0"]);
        if !role.contains(&"--secure-port") {
            command.args(["--secure-port", "0"]);
        }
        command.args(setting.certificates.flags());
        let mut process = Process::start(&mut command, &folder.join("log"))?;
        let addresses = wait_until("portico is ready", async || {
            process.check_alive()?;
            let text = std::fs::read(&file).ok();
            Ok(text.map(|text| serde_json::from_slice(&text)).transpose()?)
        })
        .await?;
        Ok(Self { process, addresses, folder, data })
    }

    /// Ends the process, and returns the folder that contains its data folder `data`.
    pub(crate) fn end(self) -> PathBuf {
        self.folder
    }

    /// Returns the facade's endpoint with the admin's certificate.
    pub(crate) fn endpoint(&self, setting: &BenchContext) -> Result<Endpoint, Failure> {
        let address = self.addresses.https.ok_or("this process has no facade")?;
        Ok(Endpoint { address, name: "localhost", tls: setting.certificates.client_tls()? })
    }

    /// Opens a new connection to the control service, as the admin.
    pub(crate) fn control(&self) -> Result<Client, Failure> {
        if self.addresses.grpc.is_none() {
            return Err("this process has no control service".into());
        }
        let kubeconfig = self.data.join("admin.kubeconfig");
        let connection = Connection::from_kubeconfig(&kubeconfig, Some("control"))?;
        Ok(Client::connect(&connection.with_deadline(CALL_TIMEOUT))?)
    }
}

/// Returns a command of the binary with this data folder, without Portico settings of the environment.
pub(crate) fn command(data: &Path) -> Result<Command, Failure> {
    Ok(command_of(&binary()?, data))
}

/// Returns a command as [`command`] does, for any binary.
pub(crate) fn command_of(binary: &Path, data: &Path) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PORTICO_")) {
        command.env_remove(name);
    }
    command.env("PORTICO_DATA_DIR", data);
    command
}

/// Returns the path of the binary: `PORTICO_BIN`, or `portico` in the folder of this program.
pub(crate) fn binary() -> Result<PathBuf, Failure> {
    let beside = || std::env::current_exe().map(|program| program.with_file_name("portico"));
    let path = std::env::var_os("PORTICO_BIN").map_or_else(beside, |path| Ok(path.into()))?;
    if path.is_file() {
        return Ok(path);
    }
    Err(format!("{} is missing: cargo build --release -p portico, or set PORTICO_BIN", path.display()).into())
}
