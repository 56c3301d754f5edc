//! Regular expressions, compiled and remembered: rules match the same few patterns again and again.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use portico_machinery::re2::{self, Code, MAX_COMPILED_BYTES};
use regex::Regex;

/// Most bytes of compiled patterns that are kept; when there are more, all are forgotten.
const MOST_KEPT: usize = 32 * 1024 * 1024;
/// Longest pattern that is kept.
const LONGEST_KEPT: usize = 4_096;
/// How large a compiled pattern is, nobody tells: it counts as the least of these that it fits in.
const SIZES: [usize; 3] = [64 * 1024, 512 * 1024, MAX_COMPILED_BYTES];

/// What is kept, and the bytes that it counts as.
#[derive(Default)]
struct Kept {
    patterns: HashMap<Box<str>, Arc<Regex>>,
    bytes: usize,
}

static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

impl Kept {
    fn keep(&mut self, pattern: &str, made: &Arc<Regex>, bytes: usize) {
        if self.bytes + bytes > MOST_KEPT {
            *self = Self::default();
        }
        if self.patterns.insert(pattern.into(), Arc::clone(made)).is_none() {
            self.bytes += bytes;
        }
    }
}

/// A compiled pattern, made or remembered.
///
/// # Errors
/// What is wrong with the pattern: its syntax, or its size.
pub fn compile(pattern: &str) -> Result<Arc<Regex>, String> {
    if let Some(found) = KEPT.lock().patterns.get(pattern) {
        return Ok(found.clone());
    }
    let (made, bytes) = sized(pattern).map_err(|error| error.to_string())?;
    let made = Arc::new(made);
    if pattern.len() <= LONGEST_KEPT {
        KEPT.lock().keep(pattern, &made, bytes);
    }
    Ok(made)
}

/// A pattern, and the bytes that it counts as.
fn sized(pattern: &str) -> Result<(Regex, usize), re2::Error> {
    let [smaller @ .., largest] = SIZES;
    for bytes in smaller {
        match re2::compile_within(pattern, bytes) {
            Err(error) if error.code == Code::Size => {}
            made => return made.map(|made| (made, bytes)),
        }
    }
    re2::compile_within(pattern, largest).map(|made| (made, largest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_remembered() {
        let first = compile("^a+$").unwrap();
        assert!(first.is_match("aa") && compile("(a").is_err());
        assert!(compile(&format!("(a{})", "|b".repeat(LONGEST_KEPT))).is_ok(), "too long to be kept");
    }

    #[test]
    fn large_patterns_leave_room_for_few() {
        let (small, large) = (sized("^a+$").unwrap(), sized(r"\pL{20}").unwrap());
        assert_eq!((small.1, large.1), (SIZES[0], MAX_COMPILED_BYTES));
        let (mut kept, large) = (Kept::default(), Arc::new(large.0));
        for number in 0..100 {
            kept.keep(&number.to_string(), &large, MAX_COMPILED_BYTES);
            assert!(kept.bytes <= MOST_KEPT && kept.patterns.len() <= MOST_KEPT / MAX_COMPILED_BYTES);
        }
        kept.keep("99", &large, 1);
        assert_eq!(kept.bytes, kept.patterns.len() * MAX_COMPILED_BYTES, "none counts twice");
    }
}
