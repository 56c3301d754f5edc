//! Portico as a user runs it: the release binary, on ports that it picks.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use portico_proto::client::{Client, Connection};
use serde::Deserialize;

use crate::https::Endpoint;
use crate::process::{Process, until};
use crate::{Failure, Setting};

/// How long one call of the gRPC client may take.
const DEADLINE: Duration = Duration::from_secs(30);

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
    /// All in one, ready.
    pub(crate) async fn start(setting: &Setting) -> Result<Self, Failure> {
        Self::role(setting, &[]).await
    }

    /// All in one with these flags, ready.
    pub(crate) async fn with(setting: &Setting, flags: &[&str]) -> Result<Self, Failure> {
        Self::role(setting, flags).await
    }

    /// All in one of another build, ready; none without `--baseline`.
    pub(crate) async fn baseline(setting: &Setting) -> Result<Option<Self>, Failure> {
        let Some(binary) = &setting.options.baseline else { return Ok(None) };
        Self::role_of(binary, setting, &[]).await.map(Some)
    }

    /// The control service alone, ready.
    pub(crate) async fn server(setting: &Setting) -> Result<Self, Failure> {
        Self::role(setting, &["server"]).await
    }

    /// A facade of this control service, ready.
    pub(crate) async fn facade(setting: &Setting, server: &Self) -> Result<Self, Failure> {
        let kubeconfig = server.data.join("facade.kubeconfig");
        Self::role(setting, &["facade", "--control-kubeconfig", &kubeconfig.to_string_lossy()]).await
    }

    /// The same facade on a port that clients know.
    pub(crate) async fn facade_on(setting: &Setting, server: &Self, port: u16) -> Result<Self, Failure> {
        let (kubeconfig, port) = (server.data.join("facade.kubeconfig"), port.to_string());
        let role = ["facade", "--control-kubeconfig", &kubeconfig.to_string_lossy(), "--secure-port", &port];
        Self::run(&binary()?, setting, setting.fresh("portico-")?, &role).await
    }

    /// All in one on the folder of one that has ended ([`Self::end`]), ready, and how many milliseconds that took.
    pub(crate) async fn again(
        setting: &Setting,
        folder: PathBuf,
        flags: &[&str],
    ) -> Result<(Self, f64), Failure> {
        let begun = Instant::now();
        let portico = Self::run(&binary()?, setting, folder, flags).await?;
        Ok((portico, begun.elapsed().as_secs_f64() * 1e3))
    }

    async fn role(setting: &Setting, role: &[&str]) -> Result<Self, Failure> {
        Self::role_of(&binary()?, setting, role).await
    }

    async fn role_of(binary: &Path, setting: &Setting, role: &[&str]) -> Result<Self, Failure> {
        Self::run(binary, setting, setting.fresh("portico-")?, role).await
    }

    async fn run(binary: &Path, setting: &Setting, folder: PathBuf, role: &[&str]) -> Result<Self, Failure> {
        let data = folder.join("data");
        let file = folder.join("addresses.json");
        // One that was killed has left its own.
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
        let addresses = until("portico is ready", async || {
            process.alive()?;
            let text = std::fs::read(&file).ok();
            Ok(text.map(|text| serde_json::from_slice(&text)).transpose()?)
        })
        .await?;
        Ok(Self { process, addresses, folder, data })
    }

    /// Ends it, and says where its data folder `data` is.
    pub(crate) fn end(self) -> PathBuf {
        self.folder
    }

    /// The facade's endpoint, as the admin.
    pub(crate) fn endpoint(&self, setting: &Setting) -> Result<Endpoint, Failure> {
        let address = self.addresses.https.ok_or("this process has no facade")?;
        Ok(Endpoint { address, name: "localhost", tls: setting.certificates.client_tls()? })
    }

    /// A connection of its own to the control service, as the admin.
    pub(crate) fn control(&self) -> Result<Client, Failure> {
        if self.addresses.grpc.is_none() {
            return Err("this process has no control service".into());
        }
        let kubeconfig = self.data.join("admin.kubeconfig");
        let connection = Connection::from_kubeconfig(&kubeconfig, Some("control"))?;
        Ok(Client::connect(&connection.with_deadline(DEADLINE))?)
    }
}

/// The binary on a data folder, with no setting from our own environment.
pub(crate) fn command(data: &Path) -> Result<Command, Failure> {
    Ok(command_of(&binary()?, data))
}

/// See [`command`], of any binary.
pub(crate) fn command_of(binary: &Path, data: &Path) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PORTICO_")) {
        command.env_remove(name);
    }
    command.env("PORTICO_DATA_DIR", data);
    command
}

/// `PORTICO_BIN`, or `portico` beside this program: both are built into the same folder.
pub(crate) fn binary() -> Result<PathBuf, Failure> {
    let beside = || std::env::current_exe().map(|program| program.with_file_name("portico"));
    let path = std::env::var_os("PORTICO_BIN").map_or_else(beside, |path| Ok(path.into()))?;
    if path.is_file() {
        return Ok(path);
    }
    Err(format!("{} is missing: cargo build --release -p portico, or set PORTICO_BIN", path.display()).into())
}
