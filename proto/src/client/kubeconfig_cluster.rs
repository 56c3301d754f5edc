//! Cluster of the current context of a kubeconfig, for webhooks. Untrusted input: parsing never panics.

use std::path::Path;

use super::kubeconfig::{File, KubeconfigError};

/// Address and trusted certificates of a server.
#[doc(hidden)]
#[derive(Debug, Default, PartialEq, Eq)]
pub struct KubeconfigCluster {
    /// URL; empty if the file has none.
    pub server: String,
    /// Trusted root certificates, in PEM. `None` means those of the system.
    pub ca_pem: Option<Vec<u8>>,
    /// Name in the server's certificate, if it differs from the host.
    pub server_name: Option<String>,
}

impl KubeconfigCluster {
    /// Reads a kubeconfig. Relative paths are resolved against its folder.
    ///
    /// # Errors
    /// [`KubeconfigError`] names the file, entry or field.
    pub fn read(path: &Path) -> Result<Self, KubeconfigError> {
        Self::from_file(&File::read(path)?)
    }

    /// Parses a kubeconfig. Relative paths are resolved against `folder`.
    ///
    /// # Errors
    /// [`KubeconfigError`] names the entry or field.
    pub fn parse(bytes: &[u8], folder: &Path) -> Result<Self, KubeconfigError> {
        Self::from_file(&File::parse(bytes, folder)?)
    }

    fn from_file(file: &File) -> Result<Self, KubeconfigError> {
        let (_, named) = file.context(None)?;
        let cluster = &named.cluster;
        let unsupported =
            match (cluster.insecure_skip_tls_verify, cluster.proxy_url.as_deref().unwrap_or_default()) {
                (Some(true), _) => Some("insecure-skip-tls-verify"),
                (_, "") => None,
                _ => Some("proxy-url"),
            };
        if let Some(field) = unsupported {
            return Err(KubeconfigError::UnsupportedCluster { cluster: named.name.clone(), field });
        }
        let server_name = cluster.tls_server_name.clone().filter(|name| !name.is_empty());
        Ok(Self { server: cluster.server.clone(), ca_pem: cluster.ca_pem()?, server_name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(cluster: &str) -> Result<KubeconfigCluster, String> {
        let text = format!(
            "current-context: c\ncontexts: [{{name: c, context: {{cluster: k}}}}]\nclusters: [{{name: k, cluster: {{{cluster}}}}}]"
        );
        KubeconfigCluster::parse(text.as_bytes(), Path::new("/etc/images")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_server_is_that_of_the_current_context() {
        let cluster =
            parse("server: 'https://a.example.com/p', certificate-authority-data: Zm9v, tls-server-name: b");
        let expected = KubeconfigCluster {
            server: "https://a.example.com/p".to_owned(),
            ca_pem: Some(b"foo".to_vec()),
            server_name: Some("b".to_owned()),
        };
        assert_eq!(cluster, Ok(expected));
        assert_eq!(parse("insecure-skip-tls-verify: false, proxy-url: ''"), Ok(KubeconfigCluster::default()));
    }

    #[test]
    fn errors_name_unsupported_and_missing_fields() {
        for (cluster, error) in [
            (
                "insecure-skip-tls-verify: true",
                "kubeconfig cluster \"k\" uses insecure-skip-tls-verify, which is not supported",
            ),
            ("proxy-url: 'http://proxy'", "kubeconfig cluster \"k\" uses proxy-url, which is not supported"),
            ("certificate-authority: ca.crt", "/etc/images/ca.crt: no such file or directory"),
        ] {
            assert_eq!(parse(cluster), Err(error.to_owned()));
        }
        let empty = KubeconfigCluster::parse(b"kind: Config", Path::new(".")).unwrap_err();
        assert_eq!(empty.to_string(), "kubeconfig has no context named \"\"");
    }
}
