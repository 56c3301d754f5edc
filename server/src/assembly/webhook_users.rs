//! Credentials for calls of webhooks: the users of a kubeconfig, each named after the host for which it is used.

use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue};
use portico_kit::certs::FileWatch;
use portico_kit::tasks::TaskSet;
use portico_kit::tls::CertPair;
use portico_proto::client::{KubeconfigUser, KubeconfigUsers, Source};
use portico_registry::{Credential, WebhookUser, WebhookUsers};

use super::error::StartError;

/// Name of a user that is used for every host.
const ANY_HOST: &str = "*";

/// Reads the users of a kubeconfig; files that it names are reloaded when they change. Returns no users without a file.
///
/// # Errors
/// [`StartError::WebhookUsers`] names the file, and the user if the error is in one.
pub(super) fn read(file: Option<&Path>, tasks: &TaskSet) -> Result<WebhookUsers, StartError> {
    let Some(file) = file else { return Ok(WebhookUsers::default()) };
    let (users, current) = users(file, tasks)?;
    Ok(WebhookUsers::new(users, current.as_deref()))
}

/// Reads the user of the current context, which is used for every host. Returns no users if the file does not name one.
///
/// # Errors
/// See [`read`].
pub(super) fn read_current(file: &Path, tasks: &TaskSet) -> Result<WebhookUsers, StartError> {
    let (users, current) = users(file, tasks)?;
    let current = users.into_iter().find(|(name, _)| Some(name) == current.as_ref());
    Ok(WebhookUsers::new(current.map(|(_, user)| (ANY_HOST.to_owned(), user)), None))
}

type NamedUser = (String, WebhookUser);

/// Reads the users of a file, and the name of the user of the current context.
fn users(file: &Path, tasks: &TaskSet) -> Result<(Vec<NamedUser>, Option<String>), StartError> {
    let failed = |reason: String| StartError::WebhookUsers { file: file.to_owned(), reason };
    let KubeconfigUsers { users, current } =
        KubeconfigUsers::read(file).map_err(|error| failed(error.to_string()))?;
    let mut read = Vec::with_capacity(users.len());
    for user in users {
        let name = user.name.clone();
        let credentials =
            self::user(user, tasks).map_err(|reason| failed(format!("user {name:?}: {reason}")))?;
        read.push((name, credentials));
    }
    Ok((read, current))
}

fn user(user: KubeconfigUser, tasks: &TaskSet) -> Result<WebhookUser, String> {
    let certificate = user.certificate.map(|(cert, key)| certificate(cert, key, tasks)).transpose()?;
    let authorization = match (user.token, user.basic) {
        (Some(token), _) => Some(bearer(token, tasks)?),
        (None, Some((name, password))) => {
            let value = format!("Basic {}", STANDARD.encode(format!("{name}:{password}")));
            Some(Credential::Fixed(Arc::new(sensitive_header(&value)?)))
        }
        (None, None) => None,
    };
    let impersonate = user.impersonate.iter().map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("{name:?} is not a valid header name"));
        Ok((name?, sensitive_header(value)?))
    });
    Ok(WebhookUser { certificate, authorization, impersonate: impersonate.collect::<Result<_, String>>()? })
}

fn certificate(cert: Source, key: Source, tasks: &TaskSet) -> Result<Credential<CertPair>, String> {
    if let (Source::File(cert), Source::File(key)) = (&cert, &key) {
        let watch = FileWatch::cert_pair("webhook-client-cert", cert.clone(), key.clone());
        let watch = watch.map_err(|error| error.to_string())?;
        watch.watch(tasks, "webhook-client-cert");
        return Ok(Credential::Watched(watch));
    }
    let pem = |source: Source| match source {
        Source::Data(data) => Ok(data),
        Source::File(file) => read_file(&file),
    };
    let pair = CertPair::from_pem("webhook-client-cert", &pem(cert)?, &pem(key)?);
    Ok(Credential::Fixed(Arc::new(pair.map_err(|error| error.to_string())?)))
}

fn bearer(token: Source, tasks: &TaskSet) -> Result<Credential<HeaderValue>, String> {
    match token {
        Source::Data(token) => Ok(Credential::Fixed(Arc::new(bearer_header(&token)?))),
        Source::File(file) => {
            let parse = |files: &[Vec<u8>]| bearer_header(files.first().map_or(&[], Vec::as_slice));
            let watch = FileWatch::new(vec![file], parse).map_err(|error| error.to_string())?;
            watch.watch(tasks, "webhook-token");
            Ok(Credential::Watched(watch))
        }
    }
}

fn bearer_header(token: &[u8]) -> Result<HeaderValue, String> {
    sensitive_header(&format!("Bearer {}", String::from_utf8_lossy(token).trim()))
}

/// Creates a header value that logs do not show.
fn sensitive_header(value: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(value).map_err(|_| "invalid header value".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

fn read_file(file: &Path) -> Result<Vec<u8>, String> {
    portico_kit::config_file::read(file)
        .map_err(|error| format!("{}: {}", file.display(), portico_gostd::os::error_text(&error)))
}
