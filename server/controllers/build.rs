//! Converts the bootstrap policy from YAML, the form for editing, to JSON, which is parsed at every start.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use serde_json::Value;

const FILE: &str = "data/rbac.yaml";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FILE}");
    let policy: Value =
        serde_saphyr::from_str(&fs::read_to_string(FILE)?).map_err(|error| format!("{FILE}: {error}"))?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("rbac.json"), policy.to_string())?;
    Ok(())
}
