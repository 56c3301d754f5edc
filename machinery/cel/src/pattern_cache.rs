//! A cache of compiled regular expressions, shared by the programs of one or several languages.
//!
//! A program owns its literal patterns; computed patterns are compiled when it runs. Both kinds are looked up in the cache of the
//! program's [`Language`](crate::Language).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
pub use portico_gostd::regexp::MAX_COMPILED_BYTES;
use portico_gostd::regexp::{self as re2, Code};
use regex::Regex;

use crate::error::EvalError;
use crate::meter::Meter;

/// Compiled patterns in the cache.
///
/// Limit (Expressions, bytes): the least recently used ones are removed and compiled again when needed.
const DEFAULT_CACHED_BYTES: usize = 32 * 1024 * 1024;
/// Compiled patterns that all rules hold.
///
/// Limit (Expressions, bytes): further ones are looked up in the cache at each call.
const DEFAULT_PROGRAM_BYTES: usize = 256 * 1024 * 1024;
/// Length of the longest pattern that is cached, in bytes.
const MAX_CACHED_LENGTH: usize = 64 * 1024;
/// Sizes that compiled patterns are accounted as: the exact size is unknown, so a pattern counts as the smallest that it fits in.
const SIZES: [usize; 3] = [64 * 1024, 512 * 1024, MAX_COMPILED_BYTES];
/// Bytes of a compiled pattern that are built in one step.
const STEP_COMPILED_BYTES: usize = 64;
/// Bytes of text in which a pattern of the smallest size is searched in one step.
const STEP_SEARCHED_BYTES: usize = 10;

/// A pattern that cannot be compiled: a syntax error, or a pattern that is too large. Displayed like errors of Go's `regexp`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(Box<str>);

/// A compiled pattern with its accounted bytes.
type SizedRegex = (Arc<Regex>, usize);
type CompiledPattern = Result<SizedRegex, PatternError>;

/// Compiled regular expressions, shared by all clones of this handle.
///
/// Each new [`Language`](crate::Language) has a separate cache. Pass one cache to several languages
/// ([`Language::with_pattern_cache`](crate::Language::with_pattern_cache)) to share patterns and limits among them.
#[derive(Clone)]
pub struct PatternCache(Arc<CacheState>);

struct CacheState {
    generations: Mutex<Generations>,
    max_cached_bytes: usize,
    /// Accounted bytes of the patterns that programs own.
    program_bytes: AtomicUsize,
    max_program_bytes: usize,
}

/// Recently used patterns, and those used before them. The older generation is dropped when the recent one is full.
#[derive(Default)]
struct Generations {
    recent: HashMap<Box<str>, CompiledPattern>,
    recent_bytes: usize,
    older: HashMap<Box<str>, CompiledPattern>,
}

impl Generations {
    fn insert(&mut self, pattern: &str, compiled: &CompiledPattern, max_bytes: usize) {
        if self.recent.contains_key(pattern) {
            return;
        }
        let bytes = pattern.len() + compiled.as_ref().map_or_else(|error| error.0.len(), |(_, bytes)| *bytes);
        if self.recent_bytes + bytes > max_bytes / 2 {
            self.older = std::mem::take(&mut self.recent);
            self.recent_bytes = 0;
        }
        self.recent_bytes += bytes;
        self.recent.insert(pattern.into(), compiled.clone());
    }

    fn get(&mut self, pattern: &str, max_bytes: usize) -> Option<CompiledPattern> {
        if let Some(found) = self.recent.get(pattern) {
            return Some(found.clone());
        }
        let found = self.older.remove(pattern)?;
        self.insert(pattern, &found, max_bytes);
        Some(found)
    }
}

impl Default for PatternCache {
    fn default() -> Self {
        Self::new()
    }
}

impl PatternCache {
    /// Creates a cache of at most 32 MiB, for programs that own at most 256 MiB of patterns.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limits(DEFAULT_CACHED_BYTES, DEFAULT_PROGRAM_BYTES)
    }

    /// Creates a cache with limits in bytes of compiled patterns.
    ///
    /// - `cached_bytes`: patterns in the cache. When it is full, the least recently used ones are dropped.
    /// - `program_bytes`: literal patterns that all programs of this cache own together. Programs compiled beyond it look their
    ///   patterns up in the cache each time they run.
    #[must_use]
    pub fn with_limits(cached_bytes: usize, program_bytes: usize) -> Self {
        Self(Arc::new(CacheState {
            generations: Mutex::default(),
            max_cached_bytes: cached_bytes,
            program_bytes: AtomicUsize::new(0),
            max_program_bytes: program_bytes,
        }))
    }

    /// Returns a compiled pattern in RE2's syntax, from the cache if possible.
    ///
    /// # Errors
    /// The pattern has a syntax error, or its compiled form exceeds [`MAX_COMPILED_BYTES`].
    pub fn compile(&self, pattern: &str) -> Result<Arc<Regex>, PatternError> {
        self.compile_unmetered(pattern).map(|(regex, _)| regex)
    }

    /// Returns the bytes that a compiled pattern counts as. A pattern that is too large counts as [`MAX_COMPILED_BYTES`].
    ///
    /// # Errors
    /// The pattern has a syntax error.
    pub fn compiled_bytes(&self, pattern: &str) -> Result<usize, PatternError> {
        self.compile_unmetered(pattern)
            .map(|(_, bytes)| bytes)
            .or_else(|error| re2::translate(pattern).map_or(Err(error), |_| Ok(MAX_COMPILED_BYTES)))
    }

    fn compile_unmetered(&self, pattern: &str) -> CompiledPattern {
        self.compile_within(pattern, &|_| Ok(())).map_err(|error| PatternError(error.to_string().into()))
    }

    /// Returns a compiled pattern with its accounted bytes. `take` counts the steps of compiling it in advance.
    ///
    /// # Errors
    /// The pattern cannot be compiled; errors of `take`.
    fn compile_within(
        &self,
        pattern: &str,
        take: &dyn Fn(usize) -> Result<(), EvalError>,
    ) -> Result<SizedRegex, EvalError> {
        let CacheState { generations, max_cached_bytes, .. } = &*self.0;
        let found = generations.lock().get(pattern, *max_cached_bytes);
        let compiled = match found {
            Some(found) => found,
            None => {
                let compiled = compile(pattern, take)?;
                if pattern.len() <= MAX_CACHED_LENGTH {
                    generations.lock().insert(pattern, &compiled, *max_cached_bytes);
                }
                compiled
            }
        };
        compiled.map_err(|error| EvalError::new(String::from(error.0)))
    }

    /// True if a pattern compiles. If the meter cannot pay for compiling it, only its syntax is checked.
    pub(crate) fn is_pattern(&self, pattern: &str, meter: &Meter) -> bool {
        self.compile_metered(pattern, meter).is_ok()
    }

    /// Returns a compiled pattern, or `None` if the meter cannot pay for it.
    fn compile_metered(&self, pattern: &str, meter: &Meter) -> Result<Option<SizedRegex>, String> {
        match self.compile_within(pattern, &|steps| meter.take(steps)) {
            Err(EvalError::Budget) => check_syntax(pattern).map(|()| None),
            compiled => compiled.map(Some).map_err(|error| error.to_string()),
        }
    }
}

impl fmt::Debug for PatternCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let generations = self.0.generations.lock();
        f.debug_struct("PatternCache")
            .field("patterns", &(generations.recent.len() + generations.older.len()))
            .field("program_bytes", &self.0.program_bytes)
            .finish_non_exhaustive()
    }
}

/// The pattern of a call of `matches`, `find` or `findAll`.
#[derive(Debug)]
pub(crate) enum CallPattern {
    /// A literal pattern, owned by the program.
    Owned(OwnedPattern),
    /// Any other pattern, looked up when the call runs.
    Cached(PatternCache),
}

impl CallPattern {
    /// Compiles a literal pattern for a program. The pattern stays [`CallPattern::Cached`] if the programs of the cache own too
    /// much already, or the meter cannot pay for it; then only its syntax is checked.
    ///
    /// # Errors
    /// The pattern cannot be compiled.
    pub(crate) fn literal(cache: &PatternCache, pattern: &str, meter: &Meter) -> Result<Self, String> {
        let owned = OwnedPattern::compile(cache, pattern, meter)?;
        Ok(owned.map_or_else(|| Self::Cached(cache.clone()), Self::Owned))
    }

    /// Returns the compiled pattern with its accounted bytes.
    ///
    /// # Errors
    /// The pattern cannot be compiled; errors of `take`.
    pub(crate) fn compiled_pattern(
        &self,
        pattern: &str,
        take: &dyn Fn(usize) -> Result<(), EvalError>,
    ) -> Result<SizedRegex, EvalError> {
        match self {
            Self::Owned(owned) => Ok((Arc::clone(&owned.regex), owned.bytes)),
            Self::Cached(cache) => cache.compile_within(pattern, take),
        }
    }
}

/// A compiled pattern that a program owns. Its bytes are released when it is dropped.
#[derive(Debug)]
pub(crate) struct OwnedPattern {
    regex: Arc<Regex>,
    bytes: usize,
    cache: PatternCache,
}

impl OwnedPattern {
    fn compile(cache: &PatternCache, pattern: &str, meter: &Meter) -> Result<Option<Self>, String> {
        let CacheState { program_bytes, max_program_bytes, .. } = &*cache.0;
        if program_bytes.load(Ordering::Relaxed) >= *max_program_bytes {
            return check_syntax(pattern).map(|()| None);
        }
        let Some((regex, bytes)) = cache.compile_metered(pattern, meter)? else { return Ok(None) };
        let owned = Self { regex, bytes, cache: cache.clone() };
        // Counted first: dropping a pattern that exceeds the limit releases its bytes.
        let before = program_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok((before + bytes <= *max_program_bytes).then_some(owned))
    }
}

impl Drop for OwnedPattern {
    fn drop(&mut self) {
        self.cache.0.program_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Returns the steps of searching a text of this length for a pattern of these accounted bytes.
pub(crate) fn search_steps(text: usize, compiled: usize) -> usize {
    (text / STEP_SEARCHED_BYTES).saturating_mul(compiled / SIZES[0])
}

fn check_syntax(pattern: &str) -> Result<(), String> {
    re2::translate(pattern).map(|_| ()).map_err(|error| error.to_string())
}

/// Compiles a pattern without a cache, with each size limit in turn.
///
/// # Errors
/// Errors of `take`.
pub(crate) fn compile(
    pattern: &str,
    take: &dyn Fn(usize) -> Result<(), EvalError>,
) -> Result<CompiledPattern, EvalError> {
    take(pattern.len())?;
    let mut refused = None;
    for bytes in SIZES {
        take(bytes / STEP_COMPILED_BYTES)?;
        match re2::compile_within(pattern, bytes) {
            Ok(regex) => return Ok(Ok((Arc::new(regex), bytes))),
            Err(error) if error.code == Code::Size => refused = Some(error),
            Err(error) => return Ok(Err(PatternError(error.to_string().into()))),
        }
    }
    let refused = refused.map(|error| error.to_string()).unwrap_or_default();
    Ok(Err(PatternError(refused.into())))
}

#[cfg(test)]
mod tests;
