//! `--kubeconfig`, `--data-dir` and `KUBECONFIG` of client commands.

use std::path::{Path, PathBuf};

use portico_proto::client::{Kubeconfig, KubeconfigError};

/// Name of the kubeconfig that a control service writes into its data folder.
pub(crate) const ADMIN_KUBECONFIG: &str = "admin.kubeconfig";
/// Kubeconfig if no flag or variable names one.
const DEFAULT: &str = "portico-data/admin.kubeconfig";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct KubeconfigFlag {
    /// Kubeconfig of the server [default: files of KUBECONFIG, else portico-data/admin.kubeconfig]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Data folder of the server, whose DIR/admin.kubeconfig is used
    #[arg(long, value_name = "DIR", conflicts_with = "kubeconfig")]
    data_dir: Option<PathBuf>,
}

impl KubeconfigFlag {
    /// Reads the kubeconfig.
    ///
    /// # Errors
    /// [`KubeconfigError`] names the file.
    pub(crate) fn read(&self) -> Result<Kubeconfig, KubeconfigError> {
        match (&self.kubeconfig, &self.data_dir) {
            (Some(file), _) => Kubeconfig::read(file),
            (None, Some(folder)) => Kubeconfig::read(&folder.join(ADMIN_KUBECONFIG)),
            (None, None) => Kubeconfig::from_env()?.map_or_else(|| Kubeconfig::read(Path::new(DEFAULT)), Ok),
        }
    }
}
