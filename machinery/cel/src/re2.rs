//! Regular expressions. Those that are written out in a program are compiled with it and kept in it; those that are computed are
//! remembered here: rules match the same few patterns again and again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
pub use portico_gostd::regexp::MAX_COMPILED_BYTES;
use portico_gostd::regexp::{self as re2, Code};
use regex::Regex;

use crate::error::EvalError;
use crate::meter::Meter;

/// Compiled patterns in the cache.
///
/// Limit (Expressions, bytes): the least recently used ones are removed and compiled again when needed.
const MAX_KEPT: usize = 32 * 1024 * 1024;
/// Compiled patterns that all rules hold.
///
/// Limit (Expressions, bytes): further ones are looked up in the cache at each call.
const MAX_PLANNED_BYTES: usize = 256 * 1024 * 1024;
/// Longest pattern that is kept.
const MAX_KEPT_LENGTH: usize = 64 * 1024;
/// The size of a compiled pattern is not known: it counts as the least of these that it fits in.
const SIZES: [usize; 3] = [64 * 1024, 512 * 1024, MAX_COMPILED_BYTES];
/// Bytes of a compiled pattern that are made in one step.
const STEP_COMPILED_BYTES: usize = 64;
/// Bytes of text in which a pattern of the least size is searched in one step.
const STEP_SEARCHED_BYTES: usize = 10;

/// A compiled pattern and the bytes that it counts as, or what is wrong with it.
type Compiled = Result<(Arc<Regex>, usize), Box<str>>;

/// What is kept: patterns that were used lately, their bytes, and those that were before.
#[derive(Default)]
struct Kept {
    recent: HashMap<Box<str>, Compiled>,
    bytes: usize,
    older: HashMap<Box<str>, Compiled>,
}

static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

impl Kept {
    fn keep(&mut self, pattern: &str, made: &Compiled) {
        if self.recent.contains_key(pattern) {
            return;
        }
        let bytes = pattern.len() + made.as_ref().map_or_else(|error| error.len(), |(_, bytes)| *bytes);
        if self.bytes + bytes > MAX_KEPT / 2 {
            self.older = std::mem::take(&mut self.recent);
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.recent.insert(pattern.into(), made.clone());
    }

    fn get(&mut self, pattern: &str) -> Option<Compiled> {
        if let Some(found) = self.recent.get(pattern) {
            return Some(found.clone());
        }
        let found = self.older.remove(pattern)?;
        self.keep(pattern, &found);
        Some(found)
    }
}

/// A compiled pattern, made or remembered.
///
/// # Errors
/// What is wrong with the pattern: its syntax, or its size.
pub fn compile(pattern: &str) -> Result<Arc<Regex>, String> {
    kept(pattern).map(|(made, _)| made)
}

/// Returns the bytes that a compiled pattern counts as. One that is refused for its size counts as much as the largest.
///
/// # Errors
/// The syntax error of the pattern.
pub fn compiled_bytes(pattern: &str) -> Result<usize, String> {
    kept(pattern)
        .map(|(_, bytes)| bytes)
        .or_else(|why| re2::translate(pattern).map_or(Err(why), |_| Ok(MAX_COMPILED_BYTES)))
}

fn kept(pattern: &str) -> Result<(Arc<Regex>, usize), String> {
    compile_within(pattern, &|_| Ok(())).map_err(|error| error.to_string())
}

/// A compiled pattern with the bytes that it counts as. What is not remembered is made in steps that `take` counts before they
/// are taken.
///
/// # Errors
/// What is wrong with the pattern, and errors of `take`.
pub(crate) fn compile_within(
    pattern: &str,
    take: &dyn Fn(usize) -> Result<(), EvalError>,
) -> Result<(Arc<Regex>, usize), EvalError> {
    let found = KEPT.lock().get(pattern);
    let made = match found {
        Some(found) => found,
        None => {
            let made = sized(pattern, take)?;
            if pattern.len() <= MAX_KEPT_LENGTH {
                KEPT.lock().keep(pattern, &made);
            }
            made
        }
    };
    made.map_err(|error| EvalError::new(String::from(error)))
}

/// True if a pattern is one, as far as the meter pays for compiling it: beyond that only its syntax is checked.
pub(crate) fn is_pattern(pattern: &str, meter: &Meter) -> bool {
    compile_metered(pattern, meter).is_ok()
}

/// A compiled pattern; None when the meter cannot pay for it.
fn compile_metered(pattern: &str, meter: &Meter) -> Result<Option<(Arc<Regex>, usize)>, String> {
    match compile_within(pattern, &|steps| meter.take(steps)) {
        Err(EvalError::Budget) => translated(pattern),
        made => made.map(Some).map_err(|error| error.to_string()),
    }
}

/// Checks the syntax of a pattern alone.
fn translated<T>(pattern: &str) -> Result<Option<T>, String> {
    re2::translate(pattern).map(|_| None).map_err(|error| error.to_string())
}

/// Steps of searching a text of this length for a pattern that counts as so many bytes.
pub(crate) fn search_steps(text: usize, compiled: usize) -> usize {
    (text / STEP_SEARCHED_BYTES).saturating_mul(compiled / SIZES[0])
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
    /// Compiles a pattern for a program; None when all programs keep enough already, or the meter cannot pay for it: only its syntax
    /// is checked then.
    ///
    /// # Errors
    /// What is wrong with the pattern: its syntax, or its size.
    pub(crate) fn compile(pattern: &str, meter: &Meter) -> Result<Option<Self>, String> {
        if PLANNED_BYTES.load(Ordering::Relaxed) >= MAX_PLANNED_BYTES {
            return translated(pattern);
        }
        let Some((regex, bytes)) = compile_metered(pattern, meter)? else { return Ok(None) };
        let planned = Self { regex, bytes };
        // Counted first: what is not kept is given back when it is dropped.
        let before = PLANNED_BYTES.fetch_add(bytes, Ordering::Relaxed);
        Ok((before + bytes <= MAX_PLANNED_BYTES).then_some(planned))
    }

    /// The pattern, and the bytes that it counts as.
    pub(crate) fn get(&self) -> (Arc<Regex>, usize) {
        (Arc::clone(&self.regex), self.bytes)
    }
}

impl Drop for Planned {
    fn drop(&mut self) {
        PLANNED_BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A pattern, tried in one size after the other.
fn sized(pattern: &str, take: &dyn Fn(usize) -> Result<(), EvalError>) -> Result<Compiled, EvalError> {
    take(pattern.len())?;
    let mut refused = None;
    for bytes in SIZES {
        take(bytes / STEP_COMPILED_BYTES)?;
        match re2::compile_within(pattern, bytes) {
            Ok(made) => return Ok(Ok((Arc::new(made), bytes))),
            Err(error) if error.code == Code::Size => refused = Some(error),
            Err(error) => return Ok(Err(error.to_string().into())),
        }
    }
    Ok(Err(refused.map(|error| error.to_string()).unwrap_or_default().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_remembered_also_those_that_are_refused() {
        let first = compile("^a+$").unwrap();
        assert!(first.is_match("aa") && compile("(a").is_err());
        assert!(compile(&format!("(a{})", "|b".repeat(MAX_KEPT_LENGTH))).is_ok(), "too long to be kept");
        let nothing = |_| Err(EvalError::Budget);
        for refused in ["(b", r"((\pL|\pN){30}){30}"] {
            let why = compile(refused).unwrap_err();
            assert_eq!(compile_within(refused, &nothing).unwrap_err().to_string(), why);
        }
        assert!(matches!(compile_within("^not yet$", &nothing), Err(EvalError::Budget)));
    }

    #[test]
    fn making_a_pattern_takes_as_many_steps_as_it_has_parts() {
        let steps = |pattern: &str| {
            let taken = std::cell::Cell::new(0);
            let count = |steps| {
                taken.set(taken.get() + steps);
                Ok(())
            };
            sized(pattern, &count).unwrap().is_ok().then(|| taken.get())
        };
        assert!(steps("^[a-z]+$").unwrap() < 2_000);
        assert!(steps(r"\pL{20}").unwrap() > MAX_COMPILED_BYTES / STEP_COMPILED_BYTES);
    }

    #[test]
    fn programs_give_back_what_they_kept() {
        let before = PLANNED_BYTES.load(Ordering::Relaxed);
        let planned = Planned::compile("^given back$", &Meter::of_compilation()).unwrap().unwrap();
        assert!(planned.get().0.is_match("given back"));
        drop(planned);
        assert!(PLANNED_BYTES.load(Ordering::Relaxed) <= before + SIZES[0]);
        assert!(Planned::compile("(a", &Meter::of_compilation()).is_err());
    }

    #[test]
    fn patterns_that_a_meter_cannot_pay_for_are_only_read() {
        let meter = Meter::new(20_000);
        let large = |number: usize| Planned::compile(&format!(r"((\pL|\pN){{30}}){{30}}{number}"), &meter);
        let refused = (0..100).filter(|number| large(*number).is_err()).count();
        assert!((1..5).contains(&refused), "{refused}");
        assert!(matches!(Planned::compile("^small$", &meter), Ok(None)));
        assert!(Planned::compile("(a", &meter).is_err(), "its syntax is still checked");
    }

    #[test]
    fn large_patterns_leave_room_for_few_and_those_in_use_stay() {
        let sized = |pattern: &str| sized(pattern, &|_| Ok(())).unwrap().unwrap();
        let (small, large) = (sized("^a+$"), sized(r"\pL{20}"));
        assert_eq!((small.1, large.1), (SIZES[0], MAX_COMPILED_BYTES));
        let mut kept = Kept::default();
        kept.keep("^a+$", &Ok(small));
        for number in 0..100 {
            kept.keep(&number.to_string(), &Ok(large.clone()));
            assert!(kept.bytes <= MAX_KEPT / 2);
            assert!(kept.recent.len() + kept.older.len() <= MAX_KEPT / MAX_COMPILED_BYTES + 2);
            assert!(kept.get("^a+$").is_some(), "it is in use");
        }
        assert!(kept.get("0").is_none());
        let before = kept.bytes;
        kept.keep("99", &Ok(large));
        assert_eq!(kept.bytes, before, "none counts twice");
    }
}
