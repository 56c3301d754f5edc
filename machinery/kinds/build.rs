//! Converts the data files from YAML, which is easy to edit, to one JSON text, which the server loads much faster at each start.
//! The JSON is compressed to a tenth of its size. Entries of `copies` are expanded: each is a version with the types of
//! another version.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=data");
    let mut files: Vec<PathBuf> =
        fs::read_dir("data")?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    files.sort();
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut kinds = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "yaml")) {
        let mut document = read(file)?;
        if file.file_name().is_some_and(|name| name == "groups.yaml") {
            fs::write(out.join("groups.json"), document.to_string())?;
        } else {
            expand_copies(&mut document)?;
            kinds.push(document);
        }
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(Value::Array(kinds).to_string().as_bytes())?;
    fs::write(out.join("kinds.deflate"), encoder.finish()?)?;
    Ok(())
}

/// Replaces `copies` by the kinds and types that they describe.
fn expand_copies(document: &mut Value) -> Result<(), Box<dyn Error>> {
    let copies = document.as_object_mut().and_then(|file| file.remove("copies"));
    for copy in copies.as_ref().and_then(Value::as_array).into_iter().flatten() {
        let text = |key: &str| copy[key].as_str().ok_or_else(|| format!("a copy needs {key}: {copy}"));
        let (version, source_version) = (text("version")?, text("of")?);
        let is_copied = |kind: &Value| {
            let is_listed =
                copy["resources"].as_array().is_some_and(|names| names.contains(&kind["resource"]));
            kind["version"] == *source_version && is_listed
        };
        let kinds: Vec<Value> = document["kinds"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|kind| is_copied(kind))
            .cloned()
            .collect();
        for kind in kinds {
            copy_kind(document, kind, (version, source_version), copy)?;
        }
    }
    Ok(())
}

fn copy_kind(
    document: &mut Value,
    mut kind: Value,
    (version, source_version): (&str, &str),
    copy: &Value,
) -> Result<(), Box<dyn Error>> {
    let full_name = kind["type"].as_str().ok_or("a kind needs a type")?.to_owned();
    let (package, name) = full_name.rsplit_once('.').ok_or("a type needs a package")?;
    let new_package =
        package.strip_suffix(source_version).ok_or("a package ends with its version")?.to_owned() + version;
    kind["version"] = version.into();
    kind["type"] = format!("{new_package}.{name}").into();
    kind["off"] = true.into();
    // The lifecycle of the original version does not apply to the copy.
    for member in ["introduced", "deprecated", "removed", "replacement"] {
        kind[member] = copy[member].clone();
    }
    if kind["storageVersion"].is_null() {
        kind["storageVersion"] = source_version.into();
    }
    document["kinds"].as_array_mut().ok_or("kinds are a list")?.push(kind);
    let mut pending = vec![name.to_owned(), format!("{name}List")];
    let mut done = BTreeSet::new();
    while let Some(short) = pending.pop().filter(|short| !short.is_empty()) {
        let description = document["types"][package][&short].clone();
        if description.is_null() || !done.insert(short.clone()) {
            continue;
        }
        let fields = description["fields"].as_object().into_iter().flatten();
        let types = fields.filter_map(|(_, field)| field["type"].as_str());
        pending.extend(types.map(|ty| ty.trim_start_matches(['[', ']', '{', '}']).to_owned()));
        let renamed =
            description.to_string().replace(&format!("/{source_version}/"), &format!("/{version}/"));
        document["types"][&new_package][&short] = serde_json::from_str(&renamed)?;
    }
    Ok(())
}

fn read(file: &Path) -> Result<serde_json::Value, Box<dyn Error>> {
    let text = fs::read_to_string(file)?;
    serde_saphyr::from_str(&text).map_err(|error| format!("{}: {error}", file.display()).into())
}
