//! `/version`: the versions of Kubernetes and of Portico.

use portico_kit::metrics::{Desc, Registry};
use portico_machinery::effective_version::EffectiveVersion;
use serde::Serialize;

/// Content of `/version`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionInfo {
    /// `1`
    pub major: String,
    /// `36`
    pub minor: String,
    /// Version whose API is served.
    pub emulation_major: String,
    /// See `emulation_major`.
    pub emulation_minor: String,
    /// Oldest version whose clients and peers are supported.
    pub min_compatibility_major: String,
    /// See `min_compatibility_major`.
    pub min_compatibility_minor: String,
    /// `v1.36.3+portico-0.1.0`
    pub git_version: String,
    /// The commit of this build (`PORTICO_GIT_COMMIT` while it is built), empty if unknown.
    pub git_commit: String,
    /// `clean`, `dirty`, or empty (`PORTICO_GIT_TREE_STATE`).
    pub git_tree_state: String,
    /// RFC 3339, empty if unknown (`PORTICO_BUILD_DATE`).
    pub build_date: String,
    /// Version of the compiler, which is Go for upstream and Rust for Portico.
    pub go_version: String,
    /// `rustc`
    pub compiler: String,
    /// `linux/amd64`
    pub platform: String,
}

impl Default for VersionInfo {
    fn default() -> Self {
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Self {
            major: "1".to_owned(),
            minor: "36".to_owned(),
            emulation_major: "1".to_owned(),
            emulation_minor: "36".to_owned(),
            min_compatibility_major: "1".to_owned(),
            min_compatibility_minor: "35".to_owned(),
            git_version: concat!("v1.36.3+portico-", env!("CARGO_PKG_VERSION")).to_owned(),
            git_commit: option_env!("PORTICO_GIT_COMMIT").unwrap_or_default().to_owned(),
            git_tree_state: option_env!("PORTICO_GIT_TREE_STATE").unwrap_or_default().to_owned(),
            build_date: option_env!("PORTICO_BUILD_DATE").unwrap_or_default().to_owned(),
            go_version: env!("PORTICO_COMPILER").to_owned(),
            compiler: "rustc".to_owned(),
            platform: format!("{}/{arch}", std::env::consts::OS),
        }
    }
}

impl VersionInfo {
    /// Replaces the versions of the API.
    #[must_use]
    pub fn with_effective_version(self, version: EffectiveVersion) -> Self {
        let EffectiveVersion { emulation, min_compatibility } = version;
        Self {
            emulation_major: emulation.major.to_string(),
            emulation_minor: emulation.minor.to_string(),
            min_compatibility_major: min_compatibility.major.to_string(),
            min_compatibility_minor: min_compatibility.minor.to_string(),
            ..self
        }
    }

    /// Registers the metric `kubernetes_build_info`, whose value is always 1.
    pub fn register(&self, registry: &Registry) {
        let info = registry.gauge_vec(Desc::gauge(
            "kubernetes_build_info",
            &[
                "build_date",
                "compiler",
                "git_commit",
                "git_tree_state",
                "git_version",
                "go_version",
                "major",
                "minor",
                "platform",
            ],
            "[BETA] A metric with a constant '1' value labeled by major, minor, git \
             version, git commit, git tree state, build date, Go version, and compiler from \
             which Kubernetes was built, and platform on which it is running.",
        ));
        let labels: [(&'static str, String); 9] = [
            ("build_date", self.build_date.clone()),
            ("compiler", self.compiler.clone()),
            ("git_commit", self.git_commit.clone()),
            ("git_tree_state", self.git_tree_state.clone()),
            ("git_version", self.git_version.clone()),
            ("go_version", self.go_version.clone()),
            ("major", self.major.clone()),
            ("minor", self.minor.clone()),
            ("platform", self.platform.clone()),
        ];
        info.get_or_create_owned(&labels).set(1);
    }
}
