//! Validation of volumes with files from other sources: ConfigMaps, Secrets, fields of the pod, tokens, and projections of these.

use std::collections::HashSet;

use portico_machinery::Cursor;
use portico_machinery::field::{Error, Path};

use crate::Errors;
use crate::pod_spec::env;
use crate::{checks, paths};

const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
/// Fields of a pod that a file may contain.
const FILE_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

fn mode(at: &Cursor<'_>, path: &Path, errors: &mut Errors) {
    if let Some(number) = at.i64().filter(|number| !(0..=0o777).contains(number)) {
        errors.push(Error::invalid(path, number, MODE));
    }
}

/// Requires a path below the volume that does not start with `..`.
fn file_path(at: &Cursor<'_>, path: &Path, errors: &mut Errors) {
    if at.str().is_empty() {
        errors.push(Error::required(path, ""));
        return;
    }
    paths::relative(at, path, errors);
    if at.str().starts_with("..") && !at.str().starts_with("../") {
        errors.push(Error::invalid(path, at.str(), "must not start with '..'"));
    }
}

/// Validates a Secret or ConfigMap volume; `name` is the field with the name of the object.
pub(super) fn secret_or_config_map(source: &Cursor<'_>, name: &str, errors: &mut Errors) {
    checks::not_empty(&source.field(name), errors);
    let default = source.field("defaultMode");
    mode(&default, &default.path(), errors);
    source.field("items").items().for_each(|file| item(&file, errors));
}

/// Validates a key and the path of its file.
fn item(item: &Cursor<'_>, errors: &mut Errors) {
    checks::not_empty(&item.field("key"), errors);
    let path = item.field("path");
    file_path(&path, &path.path(), errors);
    mode(&item.field("mode"), &item.path().child("mode"), errors);
}

/// Validates a downward API volume. Errors of items have the path of the source, without an index.
pub(super) fn downward(source: &Cursor<'_>, errors: &mut Errors) {
    let default = source.field("defaultMode");
    mode(&default, &default.path(), errors);
    source.field("items").items().for_each(|item| downward_file(&item, &source.path(), errors));
}

fn downward_file(item: &Cursor<'_>, base: &Path, errors: &mut Errors) {
    file_path(&item.field("path"), &base.child("path"), errors);
    let (field, resource) = (item.field("fieldRef"), item.field("resourceFieldRef"));
    let mut item_errors = Errors::new();
    if field.is_present() {
        env::field_ref(&field, &FILE_FIELDS, &mut item_errors);
    } else if resource.is_present() {
        env::resource_field_ref(&resource, true, &mut item_errors);
    } else {
        errors.push(Error::required(base, "one of fieldRef and resourceFieldRef is required"));
    }
    let item_path = item.path();
    for mut error in item_errors {
        let rest = error.path.as_str().strip_prefix(item_path.as_str()).unwrap_or_default().to_owned();
        error.path = Path::new(format!("{base}{rest}"));
        errors.push(error);
    }
    if field.is_present() && resource.is_present() {
        let text = "fieldRef and resourceFieldRef can not be specified simultaneously";
        errors.push(Error::invalid(base, "resource", text));
    }
    mode(&item.field("mode"), &base.child("mode"), errors);
}

/// Validates a projected volume: several sources in one directory.
pub(super) fn projected(source: &Cursor<'_>, errors: &mut Errors) {
    let default = source.field("defaultMode");
    mode(&default, &default.path(), errors);
    let mut paths = HashSet::new();
    for part in source.field("sources").items() {
        let mut count = 0;
        for kind in ["secret", "configMap", "downwardAPI", "serviceAccountToken"] {
            let source_part = part.field(kind);
            if source_part.is_present() {
                count += 1;
                projection(kind, &source_part, source, &mut paths, errors);
            }
        }
        if count > 1 {
            errors.push(part.forbidden("may not specify more than 1 volume type per source"));
        }
    }
}

fn projection<'a>(
    kind: &str,
    source_part: &Cursor<'a>,
    source: &Cursor<'_>,
    paths: &mut HashSet<&'a str>,
    errors: &mut Errors,
) {
    let mut reserve = |path: &'a str, display_path: &str, errors: &mut Errors| {
        if !insert_unique(paths, path) {
            errors.push(Error::invalid(&source.path(), display_path, "conflicting duplicate paths"));
        }
    };
    match kind {
        // The path of a token may be that of another file.
        "serviceAccountToken" => token(source_part, &source.path(), errors),
        "downwardAPI" => {
            for item in source_part.field("items").items() {
                downward_file(&item, &source_part.path(), errors);
                let path = item.field("path").str();
                reserve(path, path, errors);
            }
        }
        _ => {
            let name = source_part.field("name");
            checks::not_empty(&name, errors);
            for file in source_part.field("items").items() {
                item(&file, errors);
                reserve(file.field("path").str(), name.str(), errors);
            }
        }
    }
}

fn token(token: &Cursor<'_>, base: &Path, errors: &mut Errors) {
    let expiration = token.field("expirationSeconds");
    match expiration.i64() {
        Some(seconds) if seconds < 600 => {
            errors.push(expiration.invalid("may not specify a duration less than 10 minutes"));
        }
        Some(seconds) if seconds > 1 << 32 => {
            errors.push(expiration.invalid("may not specify a duration larger than 2^32 seconds"));
        }
        _ => {}
    }
    file_path(&token.field("path"), &base.child("path"), errors);
}

/// Records a name. Returns false if it was recorded before; an empty name always returns true.
pub(super) fn insert_unique<'a>(seen: &mut HashSet<&'a str>, name: &'a str) -> bool {
    name.is_empty() || seen.insert(name)
}
