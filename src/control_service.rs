//! What client verbs share: how their command line is read, and where their control service is.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use portico_kit::url_password::without_secrets;
use portico_proto::client::{Client, ConnectError, Kubeconfig, KubeconfigError};
use tonic::{Code, Status};

use crate::kubeconfig_flag::KubeconfigFlag;

/// The context of kubeconfigs that the control service writes.
const CONTROL: &str = "control";

/// Where the control service is.
#[derive(Debug, clap::Args)]
pub(crate) struct ControlService {
    #[command(flatten)]
    kubeconfig: KubeconfigFlag,
    /// Its context; control, if none is named.
    #[arg(long)]
    context: Option<String>,
    /// Read once: it may be a pipe.
    #[arg(skip)]
    read: OnceCell<Kubeconfig>,
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
        let connection = self.file()?.connection(Some(self.context.as_deref().unwrap_or(CONTROL)))?;
        Ok(Client::connect(&connection.with_deadline(deadline))?)
    }

    /// The namespace that the context names. Where none is asked for it is that of `control`, or of the current context of the same
    /// user: that is the facade's, where `kubectl config set-context --current` writes it.
    ///
    /// # Errors
    /// [`NoClient::Kubeconfig`].
    pub(crate) fn namespace(&self) -> Result<Option<&str>, NoClient> {
        let file = self.file()?;
        Ok(match &self.context {
            Some(context) => file.namespace(context),
            None => file.namespace(CONTROL).or_else(|| file.current_namespace_beside(CONTROL)),
        })
    }

    fn file(&self) -> Result<&Kubeconfig, KubeconfigError> {
        if let Some(file) = self.read.get() {
            return Ok(file);
        }
        let file = self.kubeconfig.read()?;
        Ok(self.read.get_or_init(|| file))
    }
}

/// Why a call was refused. A control service of an earlier release than this program has no words for what it does not know; what
/// it knows and does not allow comes with details.
pub(crate) fn refusal(status: &Status) -> String {
    if status.code() == Code::Unimplemented && status.details().is_empty() {
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
    C::try_parse_from(arguments).map_err(|error| unparsed(error, unreadable))
}

/// Says why arguments were not taken; how the process ends.
pub(crate) fn unparsed(mut error: clap::Error, unreadable: u8) -> ExitCode {
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) {
        let shown = without_secrets(value);
        error.insert(ContextKind::InvalidValue, ContextValue::String(shown));
    }
    // Nowhere is left to say that nothing can be said.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { unreadable } else { 0 })
}
