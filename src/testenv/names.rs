//! Names of the programs that envtest starts.

use std::ffi::OsStr;
use std::path::Path;

/// Program of envtest that this program replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// `kube-apiserver`, which serves the API.
    ApiServer,
    /// `etcd`, which reports where to store state.
    Etcd,
    /// `kubectl`, which reports that kubectl is missing.
    Kubectl,
    /// `setup-envtest`, which Makefiles of kubebuilder call.
    SetupEnvtest,
}

/// File name of setup-envtest, to which Makefiles append a version: `setup-envtest-release-0.23`.
pub(super) const SETUP_ENVTEST: &str = "setup-envtest";

impl Name {
    /// Programs in a folder that KUBEBUILDER_ASSETS names, with their file names.
    pub(super) const ALL: [(Self, &'static str); 3] =
        [(Self::ApiServer, "kube-apiserver"), (Self::Etcd, "etcd"), (Self::Kubectl, "kubectl")];

    /// Returns the program with the file name of `program`, if known.
    pub(crate) fn from_program(program: &OsStr) -> Option<Self> {
        let file = Path::new(program).file_name()?.to_str()?;
        if file.strip_prefix(SETUP_ENVTEST).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')) {
            return Some(Self::SetupEnvtest);
        }
        Self::ALL.into_iter().find(|(_, name)| file == *name).map(|(name, _)| name)
    }
}
