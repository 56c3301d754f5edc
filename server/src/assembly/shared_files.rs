//! Keys that the control services of one database share: the internal CA, the CA of the front proxy, the CA that signs
//! certificate requests, and the key of service account tokens. The first control service creates them and writes them to the
//! store; the others read them there. Each control service has them as files in its certificate folder.
//!
//! The keys are not served over the API. They are encrypted at rest if Secrets are.

use std::io;
use std::path::Path;

use portico_kit::atomic_file;
use portico_kit::pki::{Authority, INTERNAL_CA};
use portico_machinery::{GroupVersion, Object};
use portico_store::{Key, Resource, Store, Txn, TxnError, Value};

use super::error::StartError;
use super::signing;
use super::tokens;
use crate::encryption::SHARED_FILES;
use crate::front_proxy;
use crate::settings::ServerSettings;

/// Files that belong together, with the name of their object.
struct FileSet {
    name: &'static str,
    files: &'static [&'static str],
    create: fn(&Path) -> Result<(), StartError>,
}

/// Synchronizes the certificate folder with the store, before the files are read.
///
/// # Errors
/// [`StartError::SharedFile`] if the folder has other files than the store.
pub(super) async fn synchronize(store: &dyn Store, settings: &ServerSettings) -> Result<(), StartError> {
    let internal = FileSet {
        name: "internal-ca",
        files: &["internal-ca.crt", "internal-ca.key"],
        create: |dir| Ok(Authority::load_or_create(dir, "internal-ca", INTERNAL_CA).map(drop)?),
    };
    let front_proxy = FileSet {
        name: front_proxy::CA,
        files: &["front-proxy-ca.crt", "front-proxy-ca.key"],
        create: |dir| Ok(front_proxy::create_ca(dir)?),
    };
    let signs = FileSet {
        name: signing::OWN_CA,
        files: &["signing-ca.crt", "signing-ca.key"],
        create: signing::create_own_ca,
    };
    let tokens =
        FileSet { name: "service-account", files: &[tokens::OWN_KEY], create: tokens::create_own_key };
    let file_sets = [
        (true, internal),
        (settings.own_front_proxy, front_proxy),
        (signing::has_own_ca(settings), signs),
        (tokens::has_own_key(settings), tokens),
    ];
    for (_, files) in file_sets.into_iter().filter(|(is_needed, _)| *is_needed) {
        synchronize_set(store, &settings.cert_dir, &files).await?;
    }
    Ok(())
}

async fn synchronize_set(store: &dyn Store, dir: &Path, files: &FileSet) -> Result<(), StartError> {
    let failed = |reason: String| StartError::SharedFiles { name: files.name, reason };
    let key = Key::new(&resource(), "", files.name);
    let mut may_replace = false;
    loop {
        let snapshot = store.snapshot(key.resource()).await.map_err(|error| failed(error.to_string()))?;
        if let Some(record) = snapshot.get(&key) {
            let object = Object::from_json(record.value.json()).map_err(|error| failed(error.to_string()))?;
            return write_to_folder(&object, dir, files, may_replace);
        }
        // Another process may write its files to the store first; new files may then be replaced.
        may_replace = !files.files.iter().any(|file| dir.join(file).exists());
        (files.create)(dir)?;
        let value = encode(dir, files)?;
        match store.commit(vec![Txn::create(key.clone(), value)]).await.pop() {
            Some(Err(TxnError::Exists { .. })) => {}
            Some(Err(error)) => return Err(failed(error.to_string())),
            _ => return Ok(()),
        }
    }
}

/// Writes the files of the store to the folder.
fn write_to_folder(
    object: &Object,
    dir: &Path,
    files: &FileSet,
    may_replace: bool,
) -> Result<(), StartError> {
    for file in files.files {
        let (path, content) = (dir.join(file), object.at(&["data", file]).str().to_owned());
        let data_dir = |source| StartError::DataDir { path: path.clone(), source };
        match std::fs::read(&path) {
            Ok(found) if found == content.as_bytes() => continue,
            Ok(_) if !may_replace => return Err(StartError::SharedFile { path }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(data_dir(error)),
        }
        atomic_file::create_private_dir(dir).map_err(data_dir)?;
        let mode = if file.ends_with(".crt") { atomic_file::PUBLIC_MODE } else { atomic_file::PRIVATE_MODE };
        atomic_file::write(&path, content.as_bytes(), mode).map_err(data_dir)?;
    }
    Ok(())
}

/// Encodes the files as an object of the store.
fn encode(dir: &Path, files: &FileSet) -> Result<Value, StartError> {
    let mut object = Object::new(&GroupVersion::new("portico.dev", "v1").kind("SharedFiles"));
    object.set(&["metadata", "name"], files.name);
    for file in files.files {
        let path = dir.join(file);
        let content = std::fs::read_to_string(&path);
        let content = content.map_err(|source| StartError::DataDir { path, source })?;
        object.set(&["data", file], content);
    }
    Value::from_metadata(&resource(), object.to_json())
        .map_err(|error| StartError::SharedFiles { name: files.name, reason: error.0 })
}

fn resource() -> Resource {
    let (resource, group) = SHARED_FILES;
    Resource::new(group, resource)
}
