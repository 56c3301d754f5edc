//! Users of a kubeconfig, for admission webhooks, which select users by host. Untrusted input: parsing never panics.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::kubeconfig::{File, KubeconfigError, NamedEntry, User};

/// Users of one kubeconfig.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct KubeconfigUsers {
    /// Users in the order of the file.
    pub users: Vec<KubeconfigUser>,
    /// Name of the user of the current context, if there is one.
    pub current: Option<String>,
}

/// Credentials of a user. Credentials in separate files are not read.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct KubeconfigUser {
    /// Name of the user's entry.
    pub name: String,
    /// Client certificate and its key.
    pub certificate: Option<(Source, Source)>,
    /// Bearer token.
    pub token: Option<Source>,
    /// User name and password of basic authentication.
    pub basic: Option<(String, String)>,
    /// `Impersonate-` headers and their values.
    pub impersonate: Vec<(String, String)>,
}

/// Location of a credential.
#[doc(hidden)]
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
    /// Inline in the kubeconfig.
    Data(Vec<u8>),
    /// Path of a file.
    File(PathBuf),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Data(_) => f.write_str("data"),
            Self::File(file) => write!(f, "{}", file.display()),
        }
    }
}

impl KubeconfigUsers {
    /// Reads a kubeconfig. Relative paths are resolved against its folder.
    ///
    /// # Errors
    /// [`KubeconfigError`] names the file, entry or field.
    pub fn read(path: &Path) -> Result<Self, KubeconfigError> {
        Self::from_file(File::read(path)?)
    }

    /// Parses a kubeconfig. Relative paths are resolved against `folder`.
    ///
    /// # Errors
    /// [`KubeconfigError`] names the entry or field.
    pub fn parse(bytes: &[u8], folder: &Path) -> Result<Self, KubeconfigError> {
        Self::from_file(File::parse(bytes, folder)?)
    }

    fn from_file(file: File) -> Result<Self, KubeconfigError> {
        let File { current_context, contexts, users, .. } = file;
        let current = contexts.into_iter().find(|context| context.name == current_context);
        let users = users.into_iter().map(user).collect::<Result<_, _>>()?;
        Ok(Self { users, current: current.map(|named| named.context.user).filter(|user| !user.is_empty()) })
    }
}

fn user(named: NamedEntry) -> Result<KubeconfigUser, KubeconfigError> {
    let NamedEntry { name, user, .. } = named;
    let unsupported =
        if user.exec.is_some() { Some("exec") } else { user.auth_provider.as_ref().map(|_| "auth-provider") };
    if let Some(method) = unsupported {
        return Err(KubeconfigError::Unsupported { user: name, method });
    }
    let impersonate = impersonate(&user);
    let certificate =
        source("client-certificate-data", user.client_certificate_data, user.client_certificate)?;
    let key = source("client-key-data", user.client_key_data, user.client_key)?;
    let token = user.token.filter(|token| !token.is_empty()).map(|token| Source::Data(token.into_bytes()));
    let token = token.or_else(|| user.token_file.map(Source::File));
    let basic = user.username.is_some() || user.password.is_some();
    let basic = basic.then(|| (user.username.unwrap_or_default(), user.password.unwrap_or_default()));
    Ok(KubeconfigUser { name, certificate: certificate.zip(key), token, basic, impersonate })
}

fn source(
    field: &'static str,
    data: Option<String>,
    file: Option<PathBuf>,
) -> Result<Option<Source>, KubeconfigError> {
    match (data, file) {
        (Some(data), _) => {
            let data = STANDARD.decode(data.trim()).map_err(|_| KubeconfigError::Base64(field))?;
            Ok(Some(Source::Data(data)))
        }
        (None, file) => Ok(file.map(Source::File)),
    }
}

fn impersonate(user: &User) -> Vec<(String, String)> {
    let header = |name: &str, value: &Option<String>| {
        value.as_ref().filter(|value| !value.is_empty()).map(|value| (name.to_owned(), value.clone()))
    };
    let groups = user.impersonate_groups.iter().flatten();
    let extra = user.impersonate_extra.iter().flatten();
    header("impersonate-user", &user.impersonate)
        .into_iter()
        .chain(header("impersonate-uid", &user.impersonate_uid))
        .chain(groups.map(|group| ("impersonate-group".to_owned(), group.clone())))
        .chain(extra.flat_map(|(key, values)| {
            values.iter().map(move |value| (format!("impersonate-extra-{key}"), value.clone()))
        }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
current-context: c
contexts: [{name: c, context: {user: '*'}}]
users:
- {name: a.n.svc, user: {client-certificate-data: Yg==, client-key: tls.key}}
- {name: 'hooks.example.com:8443', user: {tokenFile: /run/token, username: u, password: p}}
- {name: '*', user: {token: t, tokenFile: x, as: me, as-groups: [g, h], as-user-extra: {k: [v]}}}
";

    #[test]
    fn each_user_has_its_credentials() {
        let KubeconfigUsers { users, current } =
            KubeconfigUsers::parse(FILE.as_bytes(), Path::new("/etc/hooks")).unwrap();
        assert_eq!(current.as_deref(), Some("*"));
        let [certificate, file, token] = &users[..] else { panic!("{users:?}") };
        let pair = (Source::Data(b"b".to_vec()), Source::File("/etc/hooks/tls.key".into()));
        assert_eq!(certificate.certificate, Some(pair));
        assert_eq!(file.token, Some(Source::File("/run/token".into())));
        assert_eq!(file.basic, Some(("u".to_owned(), "p".to_owned())));
        assert_eq!(
            token.token,
            Some(Source::Data(b"t".to_vec())),
            "an inline token takes precedence over the file"
        );
        let headers: Vec<_> =
            token.impersonate.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let expected = [
            "impersonate-user: me",
            "impersonate-group: g",
            "impersonate-group: h",
            "impersonate-extra-k: v",
        ];
        assert_eq!(headers, expected);
    }

    #[test]
    fn errors_name_unsupported_fields_and_invalid_files() {
        let error =
            |text: &str| KubeconfigUsers::parse(text.as_bytes(), Path::new(".")).unwrap_err().to_string();
        for (user, method) in [("exec: {command: x}", "exec"), ("auth-provider: {name: x}", "auth-provider")]
        {
            let text = format!("users: [{{name: a, user: {{{user}}}}}]");
            let expected = format!("kubeconfig user \"a\" uses {method}, which is not supported");
            assert_eq!(error(&text), expected);
        }
        assert!(error("users: 5").starts_with("not a kubeconfig"));
        let bad = "users: [{name: a, user: {client-key-data: '?'}}]";
        assert_eq!(error(bad), "kubeconfig field client-key-data is not base64");
    }
}
