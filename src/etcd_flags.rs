//! Flags that select an etcd, shared by servers and data commands.

use std::path::{Path, PathBuf};

use clap::Args;
use portico_server::EtcdSettings;

/// URL scheme of an etcd without TLS.
const PLAIN: &str = "etcd://";
/// URL scheme of an etcd with TLS.
const TLS: &str = "etcds://";

/// Flags that select an etcd and the keys in it.
#[derive(Args, Clone, Debug)]
pub(crate) struct EtcdFlags {
    /// URLs of an etcd cluster (3.5.13 or newer) to use as the store, separated by commas.
    ///
    /// Data is stored in the format of kube-apiserver, so kube-apiservers can use the same cluster. If a member fails,
    /// another member is used.
    #[arg(
        long,
        value_name = "URL,...",
        value_delimiter = ',',
        env = "PORTICO_ETCD_SERVERS",
        hide_env_values = true
    )]
    pub(crate) etcd_servers: Vec<String>,
    /// Prefix of all keys in etcd.
    #[arg(long, value_name = "PREFIX", default_value = "/registry", env = "PORTICO_ETCD_PREFIX")]
    pub(crate) etcd_prefix: String,
    #[command(flatten)]
    pub(crate) files: EtcdFiles,
}

/// Certificates for connections to etcd.
#[derive(Args, Clone, Debug)]
pub(crate) struct EtcdFiles {
    /// CA certificates that verify etcd's certificates (PEM); by default, the system's CA certificates are used.
    #[arg(long, value_name = "FILE", env = "PORTICO_ETCD_CAFILE")]
    pub(crate) etcd_cafile: Option<PathBuf>,
    /// Client certificate for etcd (PEM).
    ///
    /// Requires --etcd-keyfile.
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile", env = "PORTICO_ETCD_CERTFILE")]
    pub(crate) etcd_certfile: Option<PathBuf>,
    /// Private key of --etcd-certfile (PEM).
    #[arg(long, value_name = "FILE", requires = "etcd_certfile", env = "PORTICO_ETCD_KEYFILE")]
    pub(crate) etcd_keyfile: Option<PathBuf>,
}

impl EtcdFlags {
    /// Checks the URLs of the etcd members.
    ///
    /// # Errors
    /// Returns an error if a URL contains a user, a password or a parameter. The message does not repeat the URL.
    pub(crate) fn check(&self) -> Result<(), String> {
        check_members(self.etcd_servers.iter().map(String::as_str))
    }

    /// Returns the settings of the etcd if the flags select an etcd. `read` reads the file that a flag names.
    ///
    /// # Errors
    /// Returns the errors of `read`.
    pub(crate) fn settings<E>(
        &self,
        read: impl Fn(&'static str, &Path) -> Result<Vec<u8>, E>,
    ) -> Result<Option<EtcdSettings>, E> {
        if self.etcd_servers.is_empty() {
            return Ok(None);
        }
        let mut settings = EtcdSettings::new(self.etcd_servers.clone());
        settings.prefix.clone_from(&self.etcd_prefix);
        self.files.add_to(settings, read).map(Some)
    }
}

impl EtcdFiles {
    /// Adds the content of the TLS files to the settings.
    ///
    /// # Errors
    /// Returns the errors of `read`.
    pub(crate) fn add_to<E>(
        &self,
        mut settings: EtcdSettings,
        read: impl Fn(&'static str, &Path) -> Result<Vec<u8>, E>,
    ) -> Result<EtcdSettings, E> {
        let read = |flag, path: &Option<PathBuf>| path.as_deref().map(|path| read(flag, path)).transpose();
        settings.ca = read("--etcd-cafile", &self.etcd_cafile)?;
        let certificate = read("--etcd-certfile", &self.etcd_certfile)?;
        settings.identity = certificate.zip(read("--etcd-keyfile", &self.etcd_keyfile)?);
        Ok(settings)
    }
}

/// Parses an etcd URL: `etcd://HOST:PORT,HOST:PORT/PREFIX`, or `etcds://` for TLS. Returns `None` for URLs of other schemes.
///
/// # Errors
/// Returns an error if the URL is invalid.
pub(crate) fn from_url(url: &str) -> Result<Option<EtcdSettings>, String> {
    let (scheme, rest) = match (url.strip_prefix(PLAIN), url.strip_prefix(TLS)) {
        (Some(rest), _) => ("http", rest),
        (_, Some(rest)) => ("https", rest),
        _ => return Ok(None),
    };
    let (members, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if members.is_empty() || members.split(',').any(str::is_empty) {
        return Err("a member of etcd is missing: etcd://HOST:PORT,HOST:PORT/PREFIX".to_owned());
    }
    check_members(rest.split(','))?;
    let members = members.split(',').map(|member| format!("{scheme}://{member}"));
    let mut settings = EtcdSettings::new(members.collect());
    if !prefix.is_empty() {
        settings.prefix = format!("/{prefix}");
    }
    Ok(Some(settings))
}

/// Rejects users, passwords and parameters: they have no effect and would appear in logs.
fn check_members<'m>(mut members: impl Iterator<Item = &'m str>) -> Result<(), String> {
    if members.any(|member| member.contains(['@', '?'])) {
        let message =
            "etcd URLs cannot contain a user, password or parameter; use --etcd-certfile and --etcd-keyfile";
        return Err(message.to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_url_of_etcd_is_refused_and_not_repeated() {
        for url in ["etcd://u:s3cret@a:1", "etcd://a:1,u:s3cret@b:2/p", "etcds://a:1/p?password=s3cret"] {
            let error = from_url(url).unwrap_err();
            assert!(
                error.contains("cannot contain a user, password or parameter") && !error.contains("s3cret"),
                "{url}: {error}"
            );
        }
    }

    #[test]
    fn an_etcd_is_found_by_its_url() {
        let settings = from_url("etcd://10.0.0.1:2379,10.0.0.2:2379/registry/a").unwrap().unwrap();
        assert_eq!(settings.endpoints, ["http://10.0.0.1:2379", "http://10.0.0.2:2379"]);
        assert_eq!(settings.prefix, "/registry/a");
        let settings = from_url("etcds://etcd.example.com:2379").unwrap().unwrap();
        assert_eq!(
            (&*settings.endpoints[0], &*settings.prefix),
            ("https://etcd.example.com:2379", "/registry")
        );
        for invalid in ["etcd://", "etcd:///registry", "etcd://a:1,,b:2"] {
            assert!(from_url(invalid).unwrap_err().contains("a member of etcd is missing"), "{invalid}");
        }
        assert!(from_url("postgres://a/b").unwrap().is_none());
    }
}
