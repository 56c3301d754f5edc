//! Volumes of storage systems: mostly fields that must not be empty.

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, names};

use crate::Errors;
use crate::{checks, paths};

/// Fields that must not be empty, in upstream's order.
const REQUIRED: [(&str, &[&str]); 19] = [
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("gitRepo", &["repository"]),
    ("nfs", &["server", "path"]),
    ("glusterfs", &["endpoints", "path"]),
    ("rbd", &["monitors", "image"]),
    ("cinder", &["volumeID"]),
    ("cephfs", &["monitors"]),
    ("quobyte", &["registry", "volume"]),
    ("flexVolume", &["driver"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("storageos", &["volumeName"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("csi", &["driver"]),
    ("iscsi", &["targetPortal", "iqn"]),
];
const DRIVER_MAX: usize = 63;

/// Validates a source of one of these kinds.
pub fn source(kind: &str, here: &Cursor<'_>, errors: &mut Errors) {
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
            paths::local(&directory, &directory.path(), errors);
        }
        "iscsi" => iscsi(here, errors),
        "fc" => fibre_channel(here, errors),
        "csi" => csi(here, errors),
        "azureDisk" => azure_disk(here, errors),
        "flocker" => flocker(here, errors),
        _ => {}
    }
}

/// Upstream calls one of them otherwise.
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

fn lun(here: &Cursor<'_>, errors: &mut Errors) {
    checks::between(&here.field("lun"), 0, 255, "must be between 0 and 255, inclusive", errors);
}

fn iscsi(here: &Cursor<'_>, errors: &mut Errors) {
    let name = here.field("iqn");
    if !name.str().is_empty() && !is_iscsi_name(name.str()) {
        errors.push(name.invalid("must be valid format"));
    }
    lun(here, errors);
    let chap = here.field("chapAuthDiscovery").bool() || here.field("chapAuthSession").bool();
    let secret = here.field("secretRef");
    if chap && !secret.is_present() {
        errors.push(secret.required(""));
    }
    if secret.is_present() && secret.field("name").str().is_empty() {
        errors.push(secret.field("name").required(""));
    }
    let initiator = here.field("initiatorName");
    if let Some(text) = initiator.opt_str() {
        if !is_iscsi_name(text) {
            errors.push(initiator.invalid("must be valid format"));
        }
        if format!("{text}:{}", here.field("targetPortal").str()).len() > 64 {
            errors.push(Error::too_long(&initiator.path(), 64));
        }
    }
}

/// `iqn.YYYY-MM.reversed.domain[:rest]`, `eui.` and 16, `naa.` and 32 hexadecimal digits.
fn is_iscsi_name(name: &str) -> bool {
    let alphanumeric =
        |text: &str, length: usize| text.len() == length && text.bytes().all(|b| b.is_ascii_alphanumeric());
    if let Some(rest) = name.strip_prefix("eui.") {
        return alphanumeric(rest, 16);
    }
    if let Some(rest) = name.strip_prefix("naa.") {
        return alphanumeric(rest, 32);
    }
    let Some((date, domain)) = name.strip_prefix("iqn.").and_then(|rest| rest.split_once('.')) else {
        return false;
    };
    let digits = |text: &str, length: usize| text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
    date.split_once('-').is_some_and(|(year, month)| digits(year, 4) && digits(month, 2))
        && !domain.is_empty()
        && domain.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b':' | b'_'))
}

fn fibre_channel(here: &Cursor<'_>, errors: &mut Errors) {
    let (names, ids) = (here.field("targetWWNs"), here.field("wwids"));
    match (names.is_empty(), ids.is_empty()) {
        (true, true) => {
            errors.push(names.required("must specify either targetWWNs or wwids, but not both"));
        }
        (false, false) => {
            errors.push(names.invalid("targetWWNs and wwids can not be specified simultaneously"))
        }
        (false, true) if !here.field("lun").is_present() => {
            errors.push(here.field("lun").required("lun is required if targetWWNs is specified"));
        }
        (false, true) => lun(here, errors),
        (true, false) => {}
    }
}

fn csi(here: &Cursor<'_>, errors: &mut Errors) {
    csi_driver(&here.field("driver"), errors);
    let secret = here.field("nodePublishSecretRef");
    if secret.is_present() {
        checks::required(&secret.field("name"), names::dns1123_subdomain, errors);
    }
}

/// The name of a CSI driver; that it is there at all is validated elsewhere.
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
            "/subscriptions/{sub-id}/resourceGroups/{group-name}/providers/Microsoft.Compute/disks/{disk-id}",
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
            errors.push(here.invalid("datasetName and datasetUUID can not be specified simultaneously"));
        }
        _ => {}
    }
    if name.str().contains('/') {
        errors.push(name.invalid("must not contain '/'"));
    }
}
