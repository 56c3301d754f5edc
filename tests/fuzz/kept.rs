//! Inputs that guided runs (`.ci/fuzz`) have found worth keeping: a file of `kept` for each target, an input in base64 on each line.

use std::io::ErrorKind;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Where the files stand.
pub fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/kept"))
}

/// Those of a target; none where nothing was kept.
pub fn inputs(target: &str) -> Vec<Vec<u8>> {
    let path = folder().join(target);
    match std::fs::read_to_string(&path) {
        Ok(lines) => lines.lines().map(|line| STANDARD.decode(line).expect("lines are base64")).collect(),
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => panic!("{}: {error}", path.display()),
    }
}
