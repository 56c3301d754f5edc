//! The names of envtest's programs.

use std::ffi::OsStr;
use std::path::Path;

/// Program of envtest that this program replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// Serves the API.
    ApiServer,
    /// Reports where state is stored.
    Etcd,
    /// Reports that kubectl is missing.
    Kubectl,
    /// setup-envtest, as Makefiles of kubebuilder call it.
    SetupEnvtest,
}

/// The name of setup-envtest's file, which Makefiles give a version: `setup-envtest-release-0.23`.
pub(super) const SETUP_ENVTEST: &str = "setup-envtest";

impl Name {
    /// The names of files in a folder that KUBEBUILDER_ASSETS names.
    pub(super) const ALL: [(Self, &'static str); 3] =
        [(Self::ApiServer, "kube-apiserver"), (Self::Etcd, "etcd"), (Self::Kubectl, "kubectl")];

    /// The name of the file that was started, if it is one of these.
    pub(crate) fn of(program: &OsStr) -> Option<Self> {
        let file = Path::new(program).file_name()?.to_str()?;
        if file.strip_prefix(SETUP_ENVTEST).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')) {
            return Some(Self::SetupEnvtest);
        }
        Self::ALL.into_iter().find(|(_, name)| file == *name).map(|(name, _)| name)
    }
}
