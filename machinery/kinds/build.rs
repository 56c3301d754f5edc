//! Turns the data files from YAML, which people edit, into one JSON text, which loads in a fraction of the time: the
//! server reads it at every start.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=data");
    let mut files: Vec<PathBuf> =
        fs::read_dir("data")?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    files.sort();
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut kinds = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "yaml")) {
        let document = read(file)?;
        if file.file_name().is_some_and(|name| name == "groups.yaml") {
            fs::write(out.join("groups.json"), document.to_string())?;
        } else {
            kinds.push(document);
        }
    }
    fs::write(out.join("kinds.json"), serde_json::Value::Array(kinds).to_string())?;
    Ok(())
}

fn read(file: &Path) -> Result<serde_json::Value, Box<dyn Error>> {
    let text = fs::read_to_string(file)?;
    serde_saphyr::from_str(&text).map_err(|error| format!("{}: {error}", file.display()).into())
}
