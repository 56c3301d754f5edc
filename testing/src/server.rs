//! A server of a test's own: started, waited for, and ended with the test.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

use crate::Error;
use crate::asking::{Anything, FAULTS, ask};
use crate::fault::{Fault, SetFault};

/// What every server is started with.
const ARGUMENTS: [&str; 8] =
    ["run", "--ephemeral", "--test-faults", "--exit-with-stdin", "--ready-format", "json", "-v", "error"];

/// How long a start may take: far beyond what it takes, for machines that builds keep busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a server is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    program: Option<PathBuf>,
    arguments: Vec<String>,
}

/// What a server says when it is ready.
#[derive(Deserialize)]
struct Ready {
    url: String,
    kubeconfig: PathBuf,
    certs: PathBuf,
}

/// A running server. It ends, and its data go, when this is dropped or the process of the test ends.
pub struct TestServer {
    /// Its standard input is open as long as this is.
    _child: Child,
    /// Closed, nobody would read what the server says later.
    _output: BufReader<ChildStdout>,
    ready: Ready,
    client: kube::Client,
}

impl Options {
    /// This program, rather than `PORTICO_BIN` or the one on the `PATH`.
    #[must_use]
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// With this flag of Portico, too, such as `--controllers=-garbage-collector-controller`.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Starts it, and waits until it serves. Must run inside a tokio runtime.
    ///
    /// # Errors
    /// [`Error`]
    pub async fn start(self) -> Result<TestServer, Error> {
        let program = self.program.or_else(|| std::env::var_os("PORTICO_BIN").map(PathBuf::from));
        let program = program.unwrap_or_else(|| PathBuf::from("portico"));
        let mut command = Command::new(&program);
        command.args(ARGUMENTS).args(self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|source| Error::Program { program: program.display().to_string(), source })?;
        let output = child.stdout.take().ok_or_else(|| Error::NotReady("it has no output".to_owned()))?;
        let mut output = BufReader::new(output);
        let ready = ready(&mut output).await?;
        let kubeconfig = Kubeconfig::read_from(&ready.kubeconfig)?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let client = kube::Client::try_from(config)?;
        Ok(TestServer { _child: child, _output: output, ready, client })
    }
}

async fn ready(output: &mut BufReader<ChildStdout>) -> Result<Ready, Error> {
    let mut line = String::new();
    match tokio::time::timeout(PATIENCE, output.read_line(&mut line)).await {
        Err(_) => Err(Error::NotReady(format!("not within {PATIENCE:?}"))),
        Ok(Err(error)) => Err(Error::NotReady(error.to_string())),
        Ok(Ok(0)) => Err(Error::NotReady("it has ended, and says why on standard error".to_owned())),
        Ok(Ok(_)) => {
            serde_json::from_str(&line).map_err(|error| Error::NotReady(format!("{line:?}: {error}")))
        }
    }
}

impl TestServer {
    /// Starts one, and waits until it serves. Must run inside a tokio runtime.
    ///
    /// # Errors
    /// [`Error`]
    pub async fn start() -> Result<Self, Error> {
        Options::default().start().await
    }

    /// To start one otherwise.
    #[must_use]
    pub fn options() -> Options {
        Options::default()
    }

    /// A client of an administrator.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// The administrator's kubeconfig, for other programs.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.ready.kubeconfig
    }

    /// `https://HOST:PORT`
    #[must_use]
    pub fn url(&self) -> &str {
        &self.ready.url
    }

    /// The folder of `internal-ca.crt`, `admin.crt` and `admin.key`.
    #[must_use]
    pub fn certs(&self) -> &Path {
        &self.ready.certs
    }

    /// Lets a fault happen from now on, until it was as often as it says, or is removed.
    ///
    /// # Errors
    /// [`Error::Client`], with the server's words, for a fault that makes no sense.
    pub async fn fault(&self, fault: Fault) -> Result<SetFault, Error> {
        let body = serde_json::to_vec(&fault)?;
        let listed = ask(&self.client, "POST", FAULTS, body).await?;
        Ok(SetFault::of(self.client(), &listed))
    }

    /// Removes all faults.
    ///
    /// # Errors
    /// [`Error::Client`]
    pub async fn clear_faults(&self) -> Result<(), Error> {
        let _: Anything = ask(&self.client, "DELETE", FAULTS, Vec::new()).await?;
        Ok(())
    }
}
