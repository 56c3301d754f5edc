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
struct Files {
    name: &'static str,
    files: &'static [&'static str],
    make: fn(&Path) -> Result<(), StartError>,
}

/// Synchronizes the certificate folder with the store, before the files are read.
///
/// # Errors
/// [`StartError::SharedFile`] if the folder has other files than the store.
pub(super) async fn agree(store: &dyn Store, settings: &ServerSettings) -> Result<(), StartError> {
    let internal = Files {
        name: "internal-ca",
        files: &["internal-ca.crt", "internal-ca.key"],
        make: |dir| Ok(Authority::load_or_create(dir, "internal-ca", INTERNAL_CA).map(drop)?),
    };
    let front_proxy = Files {
        name: front_proxy::CA,
        files: &["front-proxy-ca.crt", "front-proxy-ca.key"],
        make: |dir| Ok(front_proxy::make_ca(dir)?),
    };
    let signs =
        Files { name: signing::OWN, files: &["signing-ca.crt", "signing-ca.key"], make: signing::make_own };
    let tokens = Files { name: "service-account", files: &[tokens::OWN_KEY], make: tokens::make_own };
    let wanted = [
        (true, internal),
        (settings.own_front_proxy, front_proxy),
        (signing::has_own(settings), signs),
        (tokens::has_own(settings), tokens),
    ];
    for (_, files) in wanted.into_iter().filter(|(wanted, _)| *wanted) {
        agree_on(store, &settings.cert_dir, &files).await?;
    }
    Ok(())
}

async fn agree_on(store: &dyn Store, dir: &Path, files: &Files) -> Result<(), StartError> {
    let failed = |reason: String| StartError::SharedFiles { name: files.name, reason };
    let key = Key::new(&resource(), "", files.name);
    let mut may_replace = false;
    loop {
        let there = store.snapshot(key.resource()).await.map_err(|error| failed(error.to_string()))?;
        if let Some(record) = there.get(&key) {
            let object = Object::from_json(record.value.json()).map_err(|error| failed(error.to_string()))?;
            return take(&object, dir, files, may_replace);
        }
        // Another process may write its files to the store first; new files may then be replaced.
        may_replace = !files.files.iter().any(|file| dir.join(file).exists());
        (files.make)(dir)?;
        let value = value(dir, files)?;
        match store.commit(vec![Txn::create(key.clone(), value)]).await.pop() {
            Some(Err(TxnError::Exists { .. })) => {}
            Some(Err(error)) => return Err(failed(error.to_string())),
            _ => return Ok(()),
        }
    }
}

/// Writes the files of the store to the folder.
fn take(object: &Object, dir: &Path, files: &Files, may_replace: bool) -> Result<(), StartError> {
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
        atomic_file::private_dir(dir).map_err(data_dir)?;
        let mode = if file.ends_with(".crt") { atomic_file::PUBLIC } else { atomic_file::PRIVATE };
        atomic_file::write(&path, content.as_bytes(), mode).map_err(data_dir)?;
    }
    Ok(())
}

/// Encodes the files as an object of the store.
fn value(dir: &Path, files: &Files) -> Result<Value, StartError> {
    let mut object = Object::new(&GroupVersion::new("portico.dev", "v1").kind("SharedFiles"));
    object.set(&["metadata", "name"], files.name);
    for file in files.files {
        let path = dir.join(file);
        let content = std::fs::read_to_string(&path);
        let content = content.map_err(|source| StartError::DataDir { path, source })?;
        object.set(&["data", file], content);
    }
    Value::of_metadata(&resource(), object.to_json())
        .map_err(|error| StartError::SharedFiles { name: files.name, reason: error.0 })
}

fn resource() -> Resource {
    let (resource, group) = SHARED_FILES;
    Resource::new(group, resource)
}
