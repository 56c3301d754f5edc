//! Backend of ImagePolicyWebhook, as defined by the current context of a kubeconfig.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_admission::ImageBackend;
use portico_kit::pki;
use portico_kit::tasks::TaskSet;
use portico_proto::client::KubeconfigCluster;
use portico_registry::ClientConfig;

use super::error::StartError;
use super::webhook_users;

/// Reads a kubeconfig and the files that it names. The backend is not called.
///
/// # Errors
/// [`StartError::WebhookUsers`] names the file.
pub(super) fn read(file: &Path, tasks: &TaskSet) -> Result<ImageBackend, StartError> {
    let config = config(file).map_err(|reason| StartError::WebhookUsers { file: file.to_owned(), reason })?;
    Ok(ImageBackend::new(&config, webhook_users::read_current(file, tasks)?))
}

/// Returns the client configuration of the current context.
///
/// # Errors
/// The context does not define a usable cluster.
pub(super) fn config(file: &Path) -> Result<ClientConfig, String> {
    let cluster = KubeconfigCluster::read(file).map_err(|error| error.to_string())?;
    if cluster.server.is_empty() {
        return Err("invalid configuration: no configuration has been provided".to_owned());
    }
    let ca = cluster.ca_pem.unwrap_or_default();
    if !ca.is_empty() {
        pki::parse_certs("certificate-authority", &ca).map_err(|error| error.to_string())?;
    }
    let config = ClientConfig {
        url: Some(cluster.server),
        ca_bundle: STANDARD.encode(ca),
        server_name: cluster.server_name,
        ..ClientConfig::default()
    };
    config.check()?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(cluster: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("images.kubeconfig");
        let text = format!(
            "current-context: c\ncontexts: [{{name: c, context: {{cluster: k}}}}]\nclusters: [{{name: k, cluster: {{{cluster}}}}}]"
        );
        std::fs::write(&file, text).unwrap();
        config(&file).expect_err(cluster)
    }

    #[test]
    fn an_unusable_backend_is_refused_at_startup() {
        for (cluster, expected) in [
            ("", "no configuration has been provided"),
            ("server: 'http://a/b'", "is not an https URL"),
            ("server: 'https://a/b', certificate-authority-data: Zm9v", "certificate-authority"),
            ("server: 'https://a/b', insecure-skip-tls-verify: true", "insecure-skip-tls-verify"),
        ] {
            let refused = refusal(cluster);
            assert!(refused.contains(expected), "{cluster}: {refused}");
        }
    }
}
