//! Regular expressions, compiled and remembered: rules match the same few patterns again and again.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use portico_machinery::re2;
use regex::Regex;

/// Most patterns that are kept; when there are more, all are forgotten.
const MOST_KEPT: usize = 256;
/// Longest pattern that is kept.
const LONGEST_KEPT: usize = 4_096;

static KEPT: LazyLock<Mutex<HashMap<Box<str>, Arc<Regex>>>> = LazyLock::new(Mutex::default);

/// A compiled pattern, made or remembered.
///
/// # Errors
/// What is wrong with the pattern: its syntax, or its size.
pub fn compile(pattern: &str) -> Result<Arc<Regex>, String> {
    if let Some(found) = KEPT.lock().get(pattern) {
        return Ok(found.clone());
    }
    let made = re2::compile(pattern).map(Arc::new).map_err(|error| error.to_string())?;
    if pattern.len() <= LONGEST_KEPT {
        let mut kept = KEPT.lock();
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(pattern.into(), made.clone());
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_remembered_as_long_as_there_is_room() {
        let first = compile("^a+$").unwrap();
        assert!(first.is_match("aa") && compile("(a").is_err());
        for number in 0..=MOST_KEPT {
            compile(&format!("a{number}")).unwrap();
        }
        assert!(KEPT.lock().len() <= MOST_KEPT);
    }
}
