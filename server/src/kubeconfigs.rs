//! Kubeconfigs that the server writes: `admin.kubeconfig` for users, `facade.kubeconfig` for facades. Mode 0600.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_kit::atomic_file;
use portico_kit::pki::PemPair;
use serde::Serialize;

/// Addresses of facade and control service, and the CAs to trust.
pub struct Addresses {
    /// `https://host:port` of the facade; `None` if it is not known yet.
    pub facade: Option<String>,
    /// `https://host:port` of the control service.
    pub control: String,
    /// CA of the facade's serving certificate, as PEM.
    pub facade_ca: String,
    /// Internal CA, as PEM.
    pub internal_ca: String,
    /// ID of the store. Facades do not use a saved state of another store.
    pub store_id: String,
}

/// Kubeconfig as JSON, which is valid YAML.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Kubeconfig {
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    kind: &'static str,
    current_context: &'static str,
    clusters: Vec<NamedEntry>,
    contexts: Vec<NamedEntry>,
    users: Vec<NamedEntry>,
}

#[derive(Serialize)]
struct NamedEntry {
    name: &'static str,
    #[serde(flatten)]
    entry: Entry,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Entry {
    #[serde(rename_all = "kebab-case")]
    Cluster {
        server: String,
        certificate_authority_data: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        extensions: Vec<Extension>,
    },
    Context {
        cluster: &'static str,
        user: &'static str,
    },
    #[serde(rename_all = "kebab-case")]
    User {
        client_certificate_data: String,
        client_key_data: String,
    },
}

/// Extension, a part of kubeconfigs that other clients ignore.
#[derive(Serialize)]
struct Extension {
    name: &'static str,
    extension: StoreExtension,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct StoreExtension {
    store_id: String,
}

fn cluster_entry(name: &'static str, server: &str, ca: &str) -> NamedEntry {
    let entry = Entry::Cluster {
        server: server.to_owned(),
        certificate_authority_data: STANDARD.encode(ca),
        extensions: Vec::new(),
    };
    NamedEntry { name, entry }
}

fn context(name: &'static str, user: &'static str) -> NamedEntry {
    NamedEntry { name, entry: Entry::Context { cluster: name, user } }
}

fn user(name: &'static str, pair: &PemPair) -> NamedEntry {
    let (client_certificate_data, client_key_data) =
        (STANDARD.encode(&pair.cert_pem), STANDARD.encode(&pair.key_pem));
    NamedEntry { name, entry: Entry::User { client_certificate_data, client_key_data } }
}

fn write(path: &Path, kubeconfig: &Kubeconfig) -> std::io::Result<()> {
    let mut text = serde_json::to_vec_pretty(kubeconfig)?;
    text.push(b'\n');
    atomic_file::write(path, &text, 0o600)
}

/// Writes `admin.kubeconfig`: the context `portico` is the facade, the context `control` the gRPC address.
///
/// # Errors
/// Errors of the file system.
pub fn write_admin(dir: &Path, addresses: &Addresses, admin: &PemPair) -> std::io::Result<PathBuf> {
    let path = dir.join("admin.kubeconfig");
    let control = cluster_entry("control", &addresses.control, &addresses.internal_ca);
    let facade = addresses.facade.as_ref().map(|f| cluster_entry("portico", f, &addresses.facade_ca));
    let current_context = if facade.is_some() { "portico" } else { "control" };
    let contexts = facade.iter().map(|_| context("portico", "admin")).chain([context("control", "admin")]);
    let kubeconfig = Kubeconfig {
        api_version: "v1",
        kind: "Config",
        current_context,
        contexts: contexts.collect(),
        clusters: facade.into_iter().chain([control]).collect(),
        users: vec![user("admin", admin)],
    };
    write(&path, &kubeconfig).map(|()| path)
}

/// Writes `facade.kubeconfig`: only the control service, for `portico facade --control-kubeconfig`.
///
/// # Errors
/// Errors of the file system.
pub fn write_facade(dir: &Path, addresses: &Addresses, facade: &PemPair) -> std::io::Result<PathBuf> {
    let path = dir.join("facade.kubeconfig");
    let mut control = cluster_entry("control", &addresses.control, &addresses.internal_ca);
    if let Entry::Cluster { extensions, .. } = &mut control.entry {
        let extension = StoreExtension { store_id: addresses.store_id.clone() };
        extensions.push(Extension { name: "portico", extension });
    }
    let kubeconfig = Kubeconfig {
        api_version: "v1",
        kind: "Config",
        current_context: "control",
        clusters: vec![control],
        contexts: vec![context("control", "facade")],
        users: vec![user("facade", facade)],
    };
    write(&path, &kubeconfig).map(|()| path)
}
