//! Validation of volume mounts and block devices of containers.

use std::collections::{HashMap, HashSet};

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use super::container_context::ContainerContext;
use crate::Errors;
use crate::{checks, paths};

const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
const RECURSIVE: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];

/// Validates `volumeMounts`, then `volumeDevices` of a container.
pub(super) fn validate(container: &Cursor<'_>, context: &ContainerContext<'_, '_>, errors: &mut Errors) {
    let (mounts, devices) = (container.field("volumeMounts"), container.field("volumeDevices"));
    let (device_names, device_paths) = names_and_paths(&devices, "devicePath");
    let mut paths = HashSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.field("name"), mount.field("mountPath"));
        checks::not_empty(&name, errors);
        if !context.volumes.has(name.str()) {
            errors.push(name.not_found());
        }
        checks::not_empty(&path, errors);
        if !paths.insert(path.str()) {
            errors.push(path.invalid("must be unique"));
        }
        if device_names.contains(name.str()) {
            errors.push(name.invalid("must not already exist in volumeDevices"));
        }
        if device_paths.contains(path.str()) {
            errors.push(path.invalid("must not already exist as a path in volumeDevices"));
        }
        sub_paths(&mount, &mounts, errors);
        propagation(&mount, &mounts, container, errors);
        read_only(&mount, &mounts, errors);
    }
    validate_devices(&mounts, &devices, context, errors);
}

/// Returns the names in a list and their paths; for a duplicate name, only the last path.
fn names_and_paths<'a>(list: &Cursor<'a>, path: &'static str) -> (HashSet<&'a str>, HashSet<&'a str>) {
    let paths: HashMap<&str, &str> =
        list.items().map(|item| (item.field("name").str(), item.field(path).str())).collect();
    (paths.keys().copied().collect(), paths.into_values().collect())
}

/// Validates `subPath` and `subPathExpr`. Like upstream, reports invalid paths at the list, without an index.
fn sub_paths(mount: &Cursor<'_>, mounts: &Cursor<'_>, errors: &mut Errors) {
    let (plain, expanded) = (mount.field("subPath"), mount.field("subPathExpr"));
    if !plain.str().is_empty() {
        paths::relative(&plain, &mounts.path().child("subPath"), errors);
    }
    if !expanded.str().is_empty() {
        let path = mounts.path().child("subPathExpr");
        if !plain.str().is_empty() {
            errors.push(expanded.invalid("subPathExpr and subPath are mutually exclusive"));
        }
        paths::relative(&expanded, &path, errors);
    }
}

/// Validates `mountPropagation`. Like upstream, reports errors at the list, without an index.
fn propagation(mount: &Cursor<'_>, mounts: &Cursor<'_>, container: &Cursor<'_>, errors: &mut Errors) {
    let propagation = mount.field("mountPropagation");
    let path = mounts.path().child("mountPropagation");
    if propagation.is_present() && !PROPAGATIONS.contains(&propagation.str()) {
        errors.push(Error::not_supported(&path, propagation.str(), &PROPAGATIONS));
    }
    let privileged = container.field("securityContext").field("privileged").bool();
    if propagation.str() == "Bidirectional" && !privileged {
        let text = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(Error::forbidden(&path, text));
    }
}

/// Validates `recursiveReadOnly`. Like upstream, reports errors at the list, without an index.
fn read_only(mount: &Cursor<'_>, mounts: &Cursor<'_>, errors: &mut Errors) {
    let recursive = mount.field("recursiveReadOnly");
    let path = mounts.path().child("recursiveReadOnly");
    if recursive.is_present() && !RECURSIVE.contains(&recursive.str()) {
        errors.push(Error::not_supported(&path, recursive.str(), &RECURSIVE));
    }
    if matches!(recursive.str(), "Enabled" | "IfPossible") {
        if !mount.field("readOnly").bool() {
            errors.push(Error::forbidden(&path, "may only be specified when readOnly is true"));
        }
        if !matches!(mount.field("mountPropagation").str(), "" | "None") {
            let text = "may only be specified when mountPropagation is None or not specified";
            errors.push(Error::forbidden(&path, text));
        }
    }
}

fn validate_devices(
    mounts: &Cursor<'_>,
    devices: &Cursor<'_>,
    context: &ContainerContext<'_, '_>,
    errors: &mut Errors,
) {
    let (mounted, mount_paths) = names_and_paths(mounts, "mountPath");
    let (mut names, mut paths) = (HashSet::new(), HashSet::new());
    for device in devices.items() {
        let (name, path) = (device.field("name"), device.field("devicePath"));
        checks::not_empty(&name, errors);
        if names.contains(name.str()) {
            errors.push(name.invalid("must be unique"));
        }
        match context.volumes.get(name.str()) {
            None => errors.push(name.not_found()),
            Some(volume)
                if !volume.field("persistentVolumeClaim").is_present()
                    && !volume.field("ephemeral").is_present() =>
            {
                errors.push(name.invalid(
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
                ));
            }
            Some(_) => {}
        }
        if path.str().is_empty() {
            errors.push(path.required(""));
        }
        if paths.contains(path.str()) {
            errors.push(path.invalid("must be unique"));
        }
        if path.str().split('/').any(|part| part == "..") {
            errors.push(path.invalid("can not contain backsteps ('..')"));
        } else {
            paths.insert(path.str());
        }
        if !name.str().is_empty() {
            names.insert(name.str());
        }
        if mounted.contains(name.str()) {
            errors.push(name.invalid("must not already exist in volumeMounts"));
        }
        if mount_paths.contains(path.str()) {
            errors.push(path.invalid("must not already exist as a path in volumeMounts"));
        }
    }
}
