//! Inputs that guided runs (`.ci/fuzz`) have found useful: a file in `kept` for each target, one input in base64 per line.

use std::io::ErrorKind;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Returns the folder of the files.
pub fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/kept"))
}

/// Returns the inputs of a target; empty if there is no file.
pub fn inputs(target: &str) -> Vec<Vec<u8>> {
    let path = folder().join(target);
    match std::fs::read_to_string(&path) {
        Ok(lines) => lines.lines().map(|line| STANDARD.decode(line).expect("lines are base64")).collect(),
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => panic!("{}: {error}", path.display()),
    }
}
