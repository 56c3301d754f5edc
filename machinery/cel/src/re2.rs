//! Regular expressions. Those that are written out in a program are compiled with it and kept in it; those that are computed are
//! remembered here: rules match the same few patterns again and again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
pub use portico_gostd::regexp::MAX_COMPILED_BYTES;
use portico_gostd::regexp::{self as re2, Code};
use regex::Regex;

/// Most bytes of compiled patterns that are kept; when there are more, all are forgotten.
const MAX_KEPT: usize = 32 * 1024 * 1024;
/// Most bytes of compiled patterns that all programs keep together; what is beyond is looked up here at each call.
const MAX_PLANNED_BYTES: usize = 256 * 1024 * 1024;
/// Longest pattern that is kept.
const MAX_KEPT_LENGTH: usize = 4_096;
/// The size of a compiled pattern is not known: it counts as the least of these that it fits in.
const SIZES: [usize; 3] = [64 * 1024, 512 * 1024, MAX_COMPILED_BYTES];

/// What is kept, and the bytes that it counts as.
#[derive(Default)]
struct Kept {
    patterns: HashMap<Box<str>, (Arc<Regex>, usize)>,
    bytes: usize,
}

static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

impl Kept {
    fn keep(&mut self, pattern: &str, made: &Arc<Regex>, bytes: usize) {
        if self.bytes + bytes > MAX_KEPT {
            *self = Self::default();
        }
        if self.patterns.insert(pattern.into(), (Arc::clone(made), bytes)).is_none() {
            self.bytes += bytes;
        }
    }
}

/// A compiled pattern, made or remembered.
///
/// # Errors
/// What is wrong with the pattern: its syntax, or its size.
pub fn compile(pattern: &str) -> Result<Arc<Regex>, String> {
    kept(pattern).map(|(made, _)| made)
}

/// How many bytes a compiled pattern counts as.
///
/// # Errors
/// What is wrong with the pattern: its syntax, or its size.
pub fn compiled_bytes(pattern: &str) -> Result<usize, String> {
    kept(pattern).map(|(_, bytes)| bytes)
}

fn kept(pattern: &str) -> Result<(Arc<Regex>, usize), String> {
    if let Some(found) = KEPT.lock().patterns.get(pattern) {
        return Ok(found.clone());
    }
    let (made, bytes) = sized(pattern).map_err(|error| error.to_string())?;
    let made = Arc::new(made);
    if pattern.len() <= MAX_KEPT_LENGTH {
        KEPT.lock().keep(pattern, &made, bytes);
    }
    Ok((made, bytes))
}

/// What all programs keep.
static PLANNED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A compiled pattern that a program keeps.
#[derive(Debug)]
pub(crate) struct Planned {
    regex: Arc<Regex>,
    bytes: usize,
}

impl Planned {
    /// Compiles a pattern for a program; None when all programs keep enough already.
    ///
    /// # Errors
    /// What is wrong with the pattern: its syntax, or its size.
    pub(crate) fn compile(pattern: &str) -> Result<Option<Self>, String> {
        let (regex, bytes) = kept(pattern)?;
        let planned = Self { regex, bytes };
        // Counted first: what is not kept is given back when it is dropped.
        let before = PLANNED_BYTES.fetch_add(bytes, Ordering::Relaxed);
        Ok((before + bytes <= MAX_PLANNED_BYTES).then_some(planned))
    }

    pub(crate) fn regex(&self) -> &Arc<Regex> {
        &self.regex
    }
}

impl Drop for Planned {
    fn drop(&mut self) {
        PLANNED_BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
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
        assert!(compile(&format!("(a{})", "|b".repeat(MAX_KEPT_LENGTH))).is_ok(), "too long to be kept");
    }

    #[test]
    fn programs_give_back_what_they_kept() {
        let before = PLANNED_BYTES.load(Ordering::Relaxed);
        let planned = Planned::compile("^given back$").unwrap().unwrap();
        assert!(planned.regex().is_match("given back"));
        drop(planned);
        assert!(PLANNED_BYTES.load(Ordering::Relaxed) <= before + SIZES[0]);
        assert!(Planned::compile("(a").is_err());
    }

    #[test]
    fn large_patterns_leave_room_for_few() {
        let (small, large) = (sized("^a+$").unwrap(), sized(r"\pL{20}").unwrap());
        assert_eq!((small.1, large.1), (SIZES[0], MAX_COMPILED_BYTES));
        let (mut kept, large) = (Kept::default(), Arc::new(large.0));
        for number in 0..100 {
            kept.keep(&number.to_string(), &large, MAX_COMPILED_BYTES);
            assert!(kept.bytes <= MAX_KEPT && kept.patterns.len() <= MAX_KEPT / MAX_COMPILED_BYTES);
        }
        kept.keep("99", &large, 1);
        assert_eq!(kept.bytes, kept.patterns.len() * MAX_COMPILED_BYTES, "none counts twice");
    }
}
