//! `--kubeconfig` and `KUBECONFIG` of what is a client.

use std::path::{Path, PathBuf};

use portico_proto::client::{Kubeconfig, KubeconfigError};

/// Where nothing else is said.
const DEFAULT: &str = "portico-data/admin.kubeconfig";

/// Which kubeconfig.
#[derive(Debug, clap::Args)]
pub(crate) struct KubeconfigFlag {
    /// A kubeconfig; without it those that KUBECONFIG names, as kubectl reads them, or portico-data/admin.kubeconfig.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

impl KubeconfigFlag {
    /// Reads it.
    ///
    /// # Errors
    /// [`KubeconfigError`] names the file.
    pub(crate) fn read(&self) -> Result<Kubeconfig, KubeconfigError> {
        match &self.kubeconfig {
            Some(file) => Kubeconfig::read(file),
            None => Kubeconfig::from_env()?.map_or_else(|| Kubeconfig::read(Path::new(DEFAULT)), Ok),
        }
    }
}
