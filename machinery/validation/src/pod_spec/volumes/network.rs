//! Validation of volumes of storage systems, mostly of required fields.

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, names};

use super::holder::Holder;
use super::iscsi::{iscsi, lun};
use super::quobyte::quobyte;
use crate::Errors;
use crate::{checks, paths, values};

/// Required fields, in upstream's order.
const REQUIRED: [(&str, &[&str]); 17] = [
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("gitRepo", &["repository"]),
    ("nfs", &["server", "path"]),
    ("glusterfs", &["endpoints", "path"]),
    ("rbd", &["monitors", "image"]),
    ("cinder", &["volumeID"]),
    ("cephfs", &["monitors"]),
    ("flexVolume", &["driver"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("storageos", &["volumeName"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("csi", &["driver"]),
];
const DRIVER_MAX: usize = 63;

/// Validates a source of one of these types.
pub fn source(kind: &str, here: &Cursor<'_>, holder: Holder<'_>, errors: &mut Errors) {
    let base = base(kind, here);
    let required = REQUIRED.iter().find(|(known, _)| *known == kind).map_or(&[][..], |(_, fields)| fields);
    for field in required {
        let at = here.field(field);
        if at.opt_str().map_or_else(|| at.is_empty(), str::is_empty) {
            errors.push(Error::required(&base.child(field), ""));
        }
    }
    match kind {
        "gcePersistentDisk" | "awsElasticBlockStore" => partition(here, &base, errors),
        "nfs" => {
            let path = here.field("path").str();
            // An empty path is reported twice, as validateNFSVolumeSource does.
            if !path.starts_with('/') {
                errors.push(Error::invalid(&base.child("path"), path, "must be an absolute path"));
            }
        }
        "gitRepo" => {
            let directory = here.field("directory");
            paths::relative(&directory, &directory.path(), errors);
        }
        "iscsi" => iscsi(here, holder, errors),
        "fc" => fibre_channel(here, errors),
        "csi" => csi(here, errors),
        "azureDisk" => azure_disk(here, errors),
        "flocker" => flocker(here, errors),
        "quobyte" => quobyte(here, errors),
        "cinder" => secret_ref(&here.field("secretRef"), holder, errors),
        "storageos" => storage_os(here, holder, errors),
        "flexVolume" => reserved_options(&here.field("options"), errors),
        "glusterfs" => endpoints_namespace(&here.field("endpointsNamespace"), errors),
        "azureFile" => {
            let namespace = here.field("secretNamespace");
            if namespace.is_present() {
                checks::not_empty(&namespace, errors);
            }
        }
        _ => {}
    }
}

/// Validates a reference to a Secret; a persistent volume also contains the Secret's namespace.
fn secret_ref(secret: &Cursor<'_>, holder: Holder<'_>, errors: &mut Errors) {
    if !secret.is_present() {
        return;
    }
    checks::not_empty(&secret.field("name"), errors);
    if matches!(holder, Holder::PersistentVolume(_)) {
        checks::not_empty(&secret.field("namespace"), errors);
    }
}

fn storage_os(here: &Cursor<'_>, holder: Holder<'_>, errors: &mut Errors) {
    checks::optional(&here.field("volumeName"), values::label, errors);
    checks::optional(&here.field("volumeNamespace"), values::label, errors);
    secret_ref(&here.field("secretRef"), holder, errors);
}

/// Requires that options of a FlexVolume do not use upstream's domains.
fn reserved_options(options: &Cursor<'_>, errors: &mut Errors) {
    for (key, _) in options.entries() {
        let domain = key.split_once('/').map_or(key, |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let text = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(Error::invalid(&options.path().key(key), key, text));
        }
    }
}

fn endpoints_namespace(namespace: &Cursor<'_>, errors: &mut Errors) {
    match namespace.opt_str() {
        None => {}
        Some("") => errors
            .push(namespace.invalid("if the endpointnamespace is set, it must be a valid namespace name")),
        Some(_) => checks::matches_rule(namespace, values::label, errors),
    }
}

/// Returns the path of a source in errors. Upstream's errors contain another name for `gcePersistentDisk`.
fn base(kind: &str, here: &Cursor<'_>) -> Path {
    let path = here.path();
    if kind != "gcePersistentDisk" {
        return path;
    }
    let parent = path.as_str().strip_suffix("gcePersistentDisk").unwrap_or_default();
    Path::new(format!("{parent}persistentDisk"))
}

fn partition(here: &Cursor<'_>, base: &Path, errors: &mut Errors) {
    let number = here.field("partition").i64().unwrap_or(0);
    if !(0..=255).contains(&number) {
        errors.push(Error::invalid(&base.child("partition"), number, "must be between 1 and 255, inclusive"));
    }
}

fn fibre_channel(here: &Cursor<'_>, errors: &mut Errors) {
    let (names, ids) = (here.field("targetWWNs"), here.field("wwids"));
    if names.is_empty() {
        if ids.is_empty() {
            errors.push(names.required("must specify either targetWWNs or wwids, but not both"));
        }
        return;
    }
    if !ids.is_empty() {
        errors.push(names.invalid("targetWWNs and wwids can not be specified simultaneously"));
    }
    if here.field("lun").is_present() {
        lun(here, errors);
    } else {
        errors.push(here.field("lun").required("lun is required if targetWWNs is specified"));
    }
}

fn csi(here: &Cursor<'_>, errors: &mut Errors) {
    csi_driver(&here.field("driver"), errors);
    let secret = here.field("nodePublishSecretRef");
    let name = secret.field("name");
    if secret.is_present() && checks::not_empty(&name, errors) {
        // An invalid name is reported at a field that does not exist, as upstream does.
        let diagnostics = names::dns1123_subdomain(name.str());
        errors.extend(names::to_field_errors(&here.path().child("name"), name.str(), diagnostics));
    }
}

/// Validates the name of a CSI driver, if it is present. The caller requires its presence.
pub fn csi_driver(driver: &Cursor<'_>, errors: &mut Errors) {
    let name = driver.str();
    if name.is_empty() {
        return;
    }
    if name.len() > DRIVER_MAX {
        errors.push(Error::too_long(&driver.path(), DRIVER_MAX));
    }
    let diagnostics = names::dns1123_subdomain(&name.to_lowercase());
    errors.extend(diagnostics.iter().map(|m| Error::invalid(&driver.path(), name, m)));
}

fn azure_disk(here: &Cursor<'_>, errors: &mut Errors) {
    checks::one_of(&here.field("cachingMode"), &["None", "ReadOnly", "ReadWrite"], errors);
    let kind = here.field("kind");
    checks::one_of(&kind, &["Dedicated", "Managed", "Shared"], errors);
    let uri = here.field("diskURI");
    if kind.str() == "Managed" && !uri.str().starts_with("/subscriptions/") {
        errors.push(Error::not_supported(&uri.path(), uri.str(), &[
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ]));
    }
    if kind.is_present() && kind.str() != "Managed" && !uri.str().starts_with("https://") {
        errors.push(Error::not_supported(
            &uri.path(),
            uri.str(),
            &["https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"],
        ));
    }
}

fn flocker(here: &Cursor<'_>, errors: &mut Errors) {
    let (name, uuid) = (here.field("datasetName"), here.field("datasetUUID"));
    match (name.str().is_empty(), uuid.str().is_empty()) {
        (true, true) => errors.push(here.required("one of datasetName and datasetUUID is required")),
        (false, false) => {
            let text = "datasetName and datasetUUID can not be specified simultaneously";
            errors.push(Error::invalid(&here.path(), "resource", text));
        }
        _ => {}
    }
    if name.str().contains('/') {
        errors.push(name.invalid("must not contain '/'"));
    }
}
