//! Kubeconfig files. Untrusted input: parsing never panics.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};

use super::connection::{Connection, Credentials};

/// Error: a kubeconfig cannot be read or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KubeconfigError {
    /// The kubeconfig, or a file that it references, cannot be read.
    #[error("{}: {}", path.display(), portico_gostd::os::error_text(source))]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Underlying error.
        source: std::io::Error,
    },
    /// The file is not YAML, or a field has the wrong type.
    #[error("not a kubeconfig: {0}")]
    Syntax(String),
    /// A referenced entry does not exist.
    #[error("kubeconfig has no {kind} named {}", portico_gostd::strconv::quote(name))]
    Missing {
        /// Kind of the entry: `context`, `cluster` or `user`.
        kind: &'static str,
        /// Name of the entry.
        name: String,
    },
    /// A `...-data` field is not base64.
    #[error("kubeconfig field {0} is not base64")]
    Base64(&'static str),
    /// The user has credentials of an unsupported kind.
    #[error("kubeconfig user {} uses {method}, which is not supported", portico_gostd::strconv::quote(user))]
    Unsupported {
        /// Name of the user.
        user: String,
        /// Kind of the credentials: `exec` or `auth-provider`.
        method: &'static str,
    },
    /// The cluster has an unsupported field.
    #[error(
        "kubeconfig cluster {} uses {field}, which is not supported",
        portico_gostd::strconv::quote(cluster)
    )]
    UnsupportedCluster {
        /// Name of the cluster.
        cluster: String,
        /// Name of the field.
        field: &'static str,
    },
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct File {
    #[serde(deserialize_with = "empty_if_null")]
    pub(super) current_context: String,
    #[serde(deserialize_with = "empty_if_null")]
    pub(super) contexts: Vec<NamedEntry>,
    #[serde(deserialize_with = "empty_if_null")]
    clusters: Vec<NamedEntry>,
    #[serde(deserialize_with = "empty_if_null")]
    pub(super) users: Vec<NamedEntry>,
}

/// Deserializes `null` as an empty value, as Go programs do.
fn empty_if_null<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Entry of any of the three lists.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct NamedEntry {
    #[serde(deserialize_with = "empty_if_null")]
    pub(super) name: String,
    #[serde(deserialize_with = "empty_if_null")]
    pub(super) context: Context,
    #[serde(deserialize_with = "empty_if_null")]
    pub(super) cluster: Cluster,
    #[serde(deserialize_with = "empty_if_null")]
    pub(super) user: User,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Context {
    #[serde(deserialize_with = "empty_if_null")]
    cluster: String,
    #[serde(deserialize_with = "empty_if_null")]
    pub(super) user: String,
    #[serde(deserialize_with = "empty_if_null")]
    namespace: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct Cluster {
    #[serde(deserialize_with = "empty_if_null")]
    pub(super) server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    pub(super) tls_server_name: Option<String>,
    pub(super) insecure_skip_tls_verify: Option<bool>,
    pub(super) proxy_url: Option<String>,
    extensions: Vec<Extension>,
}

/// Portico's extension of a cluster.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Extension {
    name: String,
    extension: StoreExtension,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "kebab-case")]
struct StoreExtension {
    store_id: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct User {
    pub(super) client_certificate: Option<PathBuf>,
    pub(super) client_certificate_data: Option<String>,
    pub(super) client_key: Option<PathBuf>,
    pub(super) client_key_data: Option<String>,
    pub(super) token: Option<String>,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: Option<PathBuf>,
    pub(super) username: Option<String>,
    pub(super) password: Option<String>,
    #[serde(rename = "as")]
    pub(super) impersonate: Option<String>,
    #[serde(rename = "as-uid")]
    pub(super) impersonate_uid: Option<String>,
    #[serde(rename = "as-groups")]
    pub(super) impersonate_groups: Option<Vec<String>>,
    #[serde(rename = "as-user-extra")]
    pub(super) impersonate_extra: Option<BTreeMap<String, Vec<String>>>,
    pub(super) exec: Option<BTreeMap<String, serde::de::IgnoredAny>>,
    pub(super) auth_provider: Option<BTreeMap<String, serde::de::IgnoredAny>>,
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, KubeconfigError> {
    std::fs::read(path).map_err(|source| KubeconfigError::Read { path: path.to_owned(), source })
}

/// Formats a YAML error as one line, without an excerpt.
fn syntax(error: &serde_saphyr::Error) -> String {
    let location = error.location().map(|at| format!(" at line {}, column {}", at.line(), at.column()));
    format!("malformed{}", location.unwrap_or_default())
}

/// Returns the content of `<field>-data`, or of the file in `<field>`.
fn data_or_file(
    field: &'static str,
    data: Option<&String>,
    file: Option<&PathBuf>,
) -> Result<Option<Vec<u8>>, KubeconfigError> {
    match (data, file) {
        (Some(data), _) => STANDARD.decode(data.trim()).map(Some).map_err(|_| KubeconfigError::Base64(field)),
        (None, Some(file)) => read(file).map(Some),
        (None, None) => Ok(None),
    }
}

fn find_entry<'f>(
    list: &'f [NamedEntry],
    kind: &'static str,
    name: &str,
) -> Result<&'f NamedEntry, KubeconfigError> {
    list.iter()
        .find(|n| n.name == name)
        .ok_or_else(|| KubeconfigError::Missing { kind, name: name.to_owned() })
}

impl File {
    /// Returns the connection of a context, by default the current one.
    fn connection(&self, context: Option<&str>) -> Result<Connection, KubeconfigError> {
        let (context, cluster) = self.context(context)?;
        let cluster = &cluster.cluster;
        let named_user = find_entry(&self.users, "user", &context.context.user)?;
        let mut connection = Connection::new(cluster.server.clone());
        connection.server_name.clone_from(&cluster.tls_server_name);
        connection.ca_pem = cluster.ca_pem()?;
        connection.credentials = credentials(named_user)?;
        connection.store_id = cluster.store_id().map(ToOwned::to_owned);
        Ok(connection)
    }

    /// Returns the connection of the current context, then those of all other contexts whose cluster has the same store.
    fn connections(&self) -> Result<Vec<Connection>, KubeconfigError> {
        let mut connections = vec![self.connection(None)?];
        let (_, cluster) = self.context(None)?;
        let Some(store) = cluster.cluster.store_id() else { return Ok(connections) };
        for context in self.contexts.iter().filter(|context| context.name != self.current_context) {
            let (_, cluster) = self.context(Some(&context.name))?;
            if cluster.cluster.store_id() == Some(store) {
                connections.push(self.connection(Some(&context.name))?);
            }
        }
        Ok(connections)
    }

    /// Parses the YAML. Relative paths are resolved against `folder`.
    pub(super) fn parse(bytes: &[u8], folder: &Path) -> Result<Self, KubeconfigError> {
        let text = std::str::from_utf8(bytes)
            .map_err(|e| KubeconfigError::Syntax(format!("byte {} is not UTF-8", e.valid_up_to())))?;
        let mut file: Self = serde_saphyr::from_str(text).map_err(|e| KubeconfigError::Syntax(syntax(&e)))?;
        let clusters = file.clusters.iter_mut().map(|named| &mut named.cluster.certificate_authority);
        let users = file
            .users
            .iter_mut()
            .map(|named| &mut named.user)
            .flat_map(|user| [&mut user.client_certificate, &mut user.client_key, &mut user.token_file]);
        for path in clusters.chain(users).flatten() {
            *path = folder.join(&*path);
        }
        Ok(file)
    }

    /// Reads a file. Errors contain its name.
    pub(super) fn read(path: &Path) -> Result<Self, KubeconfigError> {
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        Self::parse(&read(path)?, folder).map_err(|error| match error {
            KubeconfigError::Syntax(reason) => {
                KubeconfigError::Syntax(format!("{}: {reason}", path.display()))
            }
            error => error,
        })
    }

    /// Adds the entries of another file whose names are not used yet.
    fn merge(&mut self, other: Self) {
        if self.current_context.is_empty() {
            self.current_context = other.current_context;
        }
        for (entries, other_entries) in [
            (&mut self.contexts, other.contexts),
            (&mut self.clusters, other.clusters),
            (&mut self.users, other.users),
        ] {
            let existing_count = entries.len();
            for named in other_entries {
                if !entries[..existing_count].iter().any(|entry| entry.name == named.name) {
                    entries.push(named);
                }
            }
        }
    }

    /// Returns the named context, by default the current one, and its cluster.
    pub(super) fn context(&self, name: Option<&str>) -> Result<(&NamedEntry, &NamedEntry), KubeconfigError> {
        let context = find_entry(&self.contexts, "context", name.unwrap_or(&self.current_context))?;
        Ok((context, find_entry(&self.clusters, "cluster", &context.context.cluster)?))
    }
}

impl Cluster {
    /// Returns the store ID of the cluster, if the file contains it.
    fn store_id(&self) -> Option<&str> {
        let extension = self.extensions.iter().find(|extension| extension.name == "portico");
        extension.and_then(|extension| extension.extension.store_id.as_deref())
    }

    /// Returns the trusted root certificates, in PEM.
    pub(super) fn ca_pem(&self) -> Result<Option<Vec<u8>>, KubeconfigError> {
        let (data, file) = (&self.certificate_authority_data, &self.certificate_authority);
        data_or_file("certificate-authority-data", data.as_ref(), file.as_ref())
    }
}

fn credentials(named: &NamedEntry) -> Result<Credentials, KubeconfigError> {
    let user = &named.user;
    if user.exec.is_some() {
        return Err(KubeconfigError::Unsupported { user: named.name.clone(), method: "exec" });
    }
    let (cert_data, cert) = (user.client_certificate_data.as_ref(), user.client_certificate.as_ref());
    let cert = data_or_file("client-certificate-data", cert_data, cert)?;
    let key = data_or_file("client-key-data", user.client_key_data.as_ref(), user.client_key.as_ref())?;
    match (cert, key, &user.token, &user.token_file) {
        (Some(cert_pem), Some(key_pem), ..) => Ok(Credentials::Certificate { cert_pem, key_pem }),
        (_, _, Some(token), _) => Ok(Credentials::Token(token.clone())),
        (_, _, None, Some(path)) => {
            let token = read(path)?;
            Ok(Credentials::Token(String::from_utf8_lossy(&token).trim().to_owned()))
        }
        _ => Ok(Credentials::None),
    }
}

/// Parsed kubeconfig.
pub struct Kubeconfig {
    file: File,
}

impl std::fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kubeconfig").finish_non_exhaustive()
    }
}

impl Kubeconfig {
    /// Reads a kubeconfig file.
    ///
    /// # Errors
    /// [`KubeconfigError`] names the file.
    pub fn read(path: &Path) -> Result<Self, KubeconfigError> {
        Ok(Self { file: File::read(path)? })
    }

    /// Reads the files in the environment variable `KUBECONFIG`, a list like `PATH`, as kubectl does. Returns `None` if the
    /// variable is unset or empty.
    ///
    /// # Errors
    /// See [`Kubeconfig::read_all`].
    pub fn from_env() -> Result<Option<Self>, KubeconfigError> {
        let names = std::env::var_os("KUBECONFIG").unwrap_or_default();
        let mut paths = std::env::split_paths(&names).filter(|path| !path.as_os_str().is_empty()).peekable();
        if paths.peek().is_none() {
            return Ok(None);
        }
        Self::read_all(paths).map(Some)
    }

    /// Reads and merges several files. The first entry of a name and the first current context win. Missing files are skipped
    /// unless all are missing. Relative paths are resolved against the folder of the file that contains them.
    ///
    /// # Errors
    /// A file cannot be read or parsed, or all files are missing.
    pub fn read_all(paths: impl IntoIterator<Item = PathBuf>) -> Result<Self, KubeconfigError> {
        let (mut merged, mut missing) = (None::<File>, None);
        for path in paths {
            match (File::read(&path), &mut merged) {
                (Ok(file), Some(merged)) => merged.merge(file),
                (Ok(file), None) => merged = Some(file),
                (Err(KubeconfigError::Read { path: named, source }), _)
                    if named == path && source.kind() == std::io::ErrorKind::NotFound =>
                {
                    missing.get_or_insert(KubeconfigError::Read { path, source });
                }
                (Err(error), _) => return Err(error),
            }
        }
        match (merged, missing) {
            (None, Some(missing)) => Err(missing),
            (merged, _) => Ok(Self { file: merged.unwrap_or_default() }),
        }
    }

    /// Returns the connection of a context, by default the current one.
    ///
    /// # Errors
    /// [`KubeconfigError`] names the file, entry or field.
    pub fn connection(&self, context: Option<&str>) -> Result<Connection, KubeconfigError> {
        self.file.connection(context)
    }

    /// Returns the namespace of a context. `None` if the context has no namespace or does not exist.
    #[must_use]
    pub fn namespace(&self, context: &str) -> Option<&str> {
        let namespace = self.find_context(context)?.namespace.as_str();
        (!namespace.is_empty()).then_some(namespace)
    }

    /// Returns the namespace of the current context if it has the same user as a given context.
    #[doc(hidden)]
    #[must_use]
    pub fn current_namespace_for_same_user(&self, context: &str) -> Option<&str> {
        let current = self.file.current_context.as_str();
        if self.find_context(current)?.user != self.find_context(context)?.user {
            return None;
        }
        self.namespace(current)
    }

    fn find_context(&self, context: &str) -> Option<&Context> {
        self.file.contexts.iter().find(|named| named.name == context).map(|named| &named.context)
    }
}

impl Connection {
    /// Reads the connection of a context of a kubeconfig, by default the current one. Kubeconfigs that Portico writes have the
    /// context `control` for its gRPC address.
    ///
    /// # Errors
    /// [`KubeconfigError`] names the file, entry or field.
    pub fn from_kubeconfig(path: &Path, context: Option<&str>) -> Result<Self, KubeconfigError> {
        File::read(path)?.connection(context)
    }

    /// Reads the connections of all control services of a store: the one of the current context, then those of other contexts
    /// with the same store, in the order of the file. (Clusters have the field `store-id` in the extension `portico`.)
    ///
    /// # Errors
    /// [`KubeconfigError`] names the file, entry or field.
    pub fn all_from_kubeconfig(path: &Path) -> Result<Vec<Self>, KubeconfigError> {
        File::read(path)?.connections()
    }

    /// Parses the connection of a context, like [`Connection::from_kubeconfig`]. Relative paths are resolved against the
    /// working directory.
    ///
    /// # Errors
    /// [`KubeconfigError`] names the entry or field.
    pub fn from_kubeconfig_bytes(bytes: &[u8], context: Option<&str>) -> Result<Self, KubeconfigError> {
        File::parse(bytes, Path::new("."))?.connection(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
apiVersion: v1
kind: Config
current-context: portico
contexts:
- {name: portico, context: {cluster: facade, user: admin}}
- {name: control, context: {cluster: control, user: admin}}
clusters:
- {name: facade, cluster: {server: 'https://127.0.0.1:6443', certificate-authority-data: Zm9v}}
- {name: control, cluster: {server: 'https://127.0.0.1:6444', certificate-authority-data: Zm9v,
    extensions: [{name: other, extension: {x: [1]}}, {name: portico, extension: {store-id: abc}}]}}
users:
- {name: admin, user: {client-certificate-data: Yg==, client-key-data: Yw==}}
";

    #[test]
    fn the_context_chooses_server_and_credentials() {
        let connection = Connection::from_kubeconfig_bytes(FILE.as_bytes(), Some("control")).unwrap();
        assert_eq!(connection.server, "https://127.0.0.1:6444");
        assert_eq!(connection.ca_pem.as_deref(), Some(&b"foo"[..]));
        assert!(matches!(connection.credentials, Credentials::Certificate { .. }));
        assert_eq!(connection.store_id.as_deref(), Some("abc"));
        let current = Connection::from_kubeconfig_bytes(FILE.as_bytes(), None).unwrap();
        assert_eq!(current.server, "https://127.0.0.1:6443");
    }

    #[test]
    fn connections_of_the_same_store_are_read_and_no_others() {
        let named = |context: &str, server: &str, store: &str| {
            let cluster = format!(
                "{{name: {context}, cluster: {{server: 'https://{server}', extensions: [{{name: portico, extension: {{store-id: {store}}}}}]}}}}"
            );
            (format!("{{name: {context}, context: {{cluster: {context}, user: facade}}}}"), cluster)
        };
        let parts = [named("a", "a:1", "s"), named("b", "b:1", "s"), named("c", "c:1", "t")];
        let list =
            |select: fn(&(String, String)) -> &str| parts.iter().map(select).collect::<Vec<_>>().join(", ");
        let text = format!(
            "current-context: b\ncontexts: [{}]\nclusters: [{}]\nusers: [{{name: facade}}]",
            list(|part| &part.0),
            list(|part| &part.1)
        );
        let all = File::parse(text.as_bytes(), Path::new(".")).unwrap().connections().unwrap();
        let servers: Vec<_> = all.iter().map(|connection| connection.server.as_str()).collect();
        assert_eq!(servers, ["https://b:1", "https://a:1"]);
        let one = File::parse(FILE.as_bytes(), Path::new(".")).unwrap().connections().unwrap();
        assert_eq!(one.len(), 1, "the cluster has no store ID");
    }

    #[test]
    fn null_is_empty_as_in_files_that_kubectl_writes() {
        let nulls =
            FILE.replace("users:", "preferences: null\nextensions: null\nusers:\n- {name: null, user: null}");
        let connection = Connection::from_kubeconfig_bytes(nulls.as_bytes(), None).unwrap();
        assert_eq!(connection.server, "https://127.0.0.1:6443");
        let nulls = "{current-context: null, contexts: null, clusters: null, users: null}";
        let empty = Connection::from_kubeconfig_bytes(nulls.as_bytes(), None).err().unwrap();
        assert_eq!(empty.to_string(), "kubeconfig has no context named \"\"");
    }

    #[test]
    fn the_namespace_of_the_current_context_applies_to_contexts_with_the_same_user() {
        let read = |text: &str| Kubeconfig { file: File::parse(text.as_bytes(), Path::new(".")).unwrap() };
        let current = "{cluster: facade, user: admin}";
        let file = read(&FILE.replace(current, "{cluster: facade, user: admin, namespace: demo}"));
        assert_eq!((file.namespace("portico"), file.namespace("control")), (Some("demo"), None));
        assert_eq!(file.namespace("x"), None);
        assert_eq!(file.current_namespace_for_same_user("control"), Some("demo"));
        let foreign = read(&FILE.replace(current, "{cluster: facade, user: other, namespace: demo}"));
        assert_eq!(foreign.current_namespace_for_same_user("control"), None);
    }

    #[test]
    fn the_first_of_several_files_wins_and_paths_are_relative_to_their_file() {
        let folder = std::env::temp_dir().join(format!("portico-kubeconfigs-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        };
        let entries = |server: &str| {
            format!(
                "contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nclusters: [{{name: c, cluster: {{server: '{server}', certificate-authority: ca.crt}}}}]\n"
            )
        };
        write("a/ca.crt", "of a");
        write("b/token", "of b");
        let (missing, a) = (folder.join("missing"), write("a/config", &entries("https://a:1")));
        let b = "current-context: c\nusers: [{name: u, user: {tokenFile: token}}]\n";
        let b = write("b/config", &format!("{b}{}", entries("https://b:1")));
        let broken = write("broken", "users: 5");
        let merged = Kubeconfig::read_all([missing.clone(), a.clone(), b]).unwrap().connection(None).unwrap();
        assert_eq!((&*merged.server, merged.ca_pem.as_deref()), ("https://a:1", Some(&b"of a"[..])));
        assert!(matches!(&merged.credentials, Credentials::Token(token) if token == "of b"));
        let error = |paths: &[&PathBuf]| {
            let read = Kubeconfig::read_all(paths.iter().map(|path| (*path).clone()));
            read.unwrap_err().to_string()
        };
        assert_eq!(error(&[&missing]), format!("{}: no such file or directory", missing.display()));
        let malformed = format!("not a kubeconfig: {}: malformed", broken.display());
        assert!(error(&[&a, &broken]).starts_with(&malformed));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn errors_name_the_invalid_part() {
        let missing = Connection::from_kubeconfig_bytes(FILE.as_bytes(), Some("x")).err().unwrap();
        assert_eq!(missing.to_string(), "kubeconfig has no context named \"x\"");
        let bad = FILE.replace("Yg==", "?");
        let error = Connection::from_kubeconfig_bytes(bad.as_bytes(), None).err().unwrap();
        assert_eq!(error.to_string(), "kubeconfig field client-certificate-data is not base64");
        let error_of =
            |bytes: &[u8]| Connection::from_kubeconfig_bytes(bytes, None).err().unwrap().to_string();
        assert_eq!(error_of(b"\xff"), "not a kubeconfig: byte 0 is not UTF-8");
        assert_eq!(error_of(b"users: 5"), "not a kubeconfig: malformed at line 1, column 8");
        assert!(
            error_of(b"a: [").starts_with("not a kubeconfig: malformed at line "),
            "{}",
            error_of(b"a: [")
        );
        let absent = Connection::from_kubeconfig(Path::new("/nowhere/at-all"), None).err().unwrap();
        assert_eq!(absent.to_string(), "/nowhere/at-all: no such file or directory");
    }
}
