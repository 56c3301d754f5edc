//! What client verbs share: how their command line is read, and where their control service is.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use portico_proto::client::{Client, ConnectError, Connection, KubeconfigError};
use tonic::{Code, Status};

/// Where the control service is.
#[derive(Debug, clap::Args)]
pub(crate) struct ControlService {
    /// The kubeconfig of an administrator of the control service.
    #[arg(long, default_value = "portico-data/admin.kubeconfig", env = "KUBECONFIG")]
    kubeconfig: PathBuf,
    /// Its context.
    #[arg(long, default_value = "control")]
    context: String,
}

/// Why there is no client of the control service.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoClient {
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl ControlService {
    /// A client, whose calls may take so long.
    ///
    /// # Errors
    /// [`NoClient`].
    pub(crate) fn client(&self, deadline: Duration) -> Result<Client, NoClient> {
        let connection = Connection::from_kubeconfig(&self.kubeconfig, Some(&self.context))?;
        Ok(Client::connect(&connection.with_deadline(deadline))?)
    }
}

/// Why a call was refused. A control service of an earlier release than this program has no words for what it does not know.
pub(crate) fn refusal(status: &Status) -> String {
    if status.code() == Code::Unimplemented {
        return "it does not know this call: it is of an earlier release than this portico".to_owned();
    }
    status.message().to_owned()
}

/// Reads a command line.
///
/// # Errors
/// How the command ends: well where help was asked for, which is printed, else with this code.
pub(crate) fn parse<C: Parser>(
    arguments: impl Iterator<Item = OsString>,
    unreadable: u8,
) -> Result<C, ExitCode> {
    C::try_parse_from(arguments).map_err(|error| {
        // Nowhere is left to say that nothing can be said.
        let _ = error.print();
        ExitCode::from(if error.use_stderr() { unreadable } else { 0 })
    })
}
