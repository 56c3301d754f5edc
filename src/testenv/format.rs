//! Formats the path of a folder of programs for shells, files of environment variables and people.

use std::path::Path;

use crate::shell;

/// Environment variable that envtest reads.
const VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// Returns the served version of Kubernetes, such as `1.36.3`.
pub(super) fn version() -> String {
    let version = portico_facade::VersionInfo::default().git_version;
    // The build metadata after the plus is the version of Portico.
    version.split('+').next().unwrap_or_default().trim_start_matches('v').to_owned()
}

/// Returns the path of the folder.
pub(super) fn path(dir: &Path) -> String {
    dir.display().to_string()
}

/// Returns `export KUBEBUILDER_ASSETS=...`, quoted for a POSIX shell.
pub(super) fn shell(dir: &Path) -> String {
    format!("export {VARIABLE}={}", shell::quote(&path(dir)))
}

/// Returns `KUBEBUILDER_ASSETS=...` without quotes, for a file of environment variables.
pub(super) fn variable(dir: &Path) -> String {
    format!("{VARIABLE}={}", path(dir))
}

/// Returns version, platform and path in the overview format of setup-envtest.
pub(super) fn overview(dir: &Path) -> String {
    let (os, arch) = (std::env::consts::OS, go_architecture());
    format!("Version: {}\nOS/Arch: {os}/{arch}\nPath: {}", version(), path(dir))
}

/// Returns Go's name of the processor architecture.
pub(super) fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_any_folder() {
        assert_eq!(shell(Path::new("/a b/it's")), r#"export KUBEBUILDER_ASSETS='/a b/it'"'"'s'"#);
        assert_eq!(variable(Path::new("/a b")), "KUBEBUILDER_ASSETS=/a b");
    }
}
