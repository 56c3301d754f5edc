//! Starts a server for a test and stops it with the test.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

use crate::Error;
use crate::fault::{Fault, SetFault};
use crate::requests::{FAULTS, IgnoredResponse, send};

/// Arguments of every server.
const ARGUMENTS: [&str; 8] =
    ["run", "--ephemeral", "--test-faults", "--exit-with-stdin", "--ready-format", "json", "-v", "error"];

/// Timeout for the start. Generous, because test machines can be busy.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Settings of a server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    program: Option<PathBuf>,
    arguments: Vec<String>,
}

/// The line that the server prints when it is ready.
#[derive(Deserialize)]
struct ReadyMessage {
    url: String,
    kubeconfig: PathBuf,
    certs: PathBuf,
}

/// A running server. It stops, and its data are removed, when this is dropped or the test process ends.
pub struct TestServer {
    /// Holds the server's standard input open.
    _child: Child,
    /// Kept open, so that the server can write to its standard output.
    _output: BufReader<ChildStdout>,
    ready: ReadyMessage,
    client: kube::Client,
}

impl Options {
    /// Runs this program instead of `PORTICO_BIN` or the `portico` on the `PATH`.
    #[must_use]
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Adds a flag of Portico, such as `--controllers=-garbage-collector-controller`.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Starts the server and waits until it is ready. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// Returns an [`Error`] if the server does not become ready.
    pub async fn start(self) -> Result<TestServer, Error> {
        let program = self.program.or_else(|| std::env::var_os("PORTICO_BIN").map(PathBuf::from));
        let program = program.unwrap_or_else(|| PathBuf::from("portico"));
        let mut command = Command::new(&program);
        command.args(ARGUMENTS).args(self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|source| Error::Program { program: program.display().to_string(), source })?;
        let output = child
            .stdout
            .take()
            .ok_or_else(|| Error::NotReady("standard output is not available".to_owned()))?;
        let mut output = BufReader::new(output);
        let ready = read_ready_message(&mut output).await?;
        let kubeconfig = Kubeconfig::read_from(&ready.kubeconfig)?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let client = kube::Client::try_from(config)?;
        Ok(TestServer { _child: child, _output: output, ready, client })
    }
}

async fn read_ready_message(output: &mut BufReader<ChildStdout>) -> Result<ReadyMessage, Error> {
    let mut line = String::new();
    match tokio::time::timeout(START_TIMEOUT, output.read_line(&mut line)).await {
        Err(_) => Err(Error::NotReady(format!("no output within {} s", START_TIMEOUT.as_secs()))),
        Ok(Err(error)) => Err(Error::NotReady(error.to_string())),
        Ok(Ok(0)) => Err(Error::NotReady("the server exited, see its standard error".to_owned())),
        Ok(Ok(_)) => {
            serde_json::from_str(&line).map_err(|error| Error::NotReady(format!("{line:?}: {error}")))
        }
    }
}

impl TestServer {
    /// Starts a server with default settings and waits until it is ready. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// Returns an [`Error`] if the server does not become ready.
    pub async fn start() -> Result<Self, Error> {
        Options::default().start().await
    }

    /// Settings for a server that is not started with defaults.
    #[must_use]
    pub fn options() -> Options {
        Options::default()
    }

    /// Client with an administrator's credentials.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// Path of an administrator's kubeconfig, for other programs.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.ready.kubeconfig
    }

    /// URL of the server: `https://HOST:PORT`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.ready.url
    }

    /// Folder with `internal-ca.crt`, `admin.crt` and `admin.key`.
    #[must_use]
    pub fn certs(&self) -> &Path {
        &self.ready.certs
    }

    /// Sets a fault. It stays until its number of times is reached or it is removed.
    ///
    /// # Errors
    /// Returns [`Error::Client`] with the server's message if the fault is invalid.
    pub async fn fault(&self, fault: Fault) -> Result<SetFault, Error> {
        let body = serde_json::to_vec(&fault)?;
        let listed = send(&self.client, "POST", FAULTS, body).await?;
        Ok(SetFault::new(self.client(), &listed))
    }

    /// Removes all faults.
    ///
    /// # Errors
    /// Returns [`Error::Client`] if the request fails.
    pub async fn clear_faults(&self) -> Result<(), Error> {
        let _: IgnoredResponse = send(&self.client, "DELETE", FAULTS, Vec::new()).await?;
        Ok(())
    }
}
