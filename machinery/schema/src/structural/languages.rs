//! CEL languages of validation rules, and the cache of regular expressions that rules and `pattern` share.

use std::sync::{Arc, LazyLock};

use portico_cel::kubernetes::{NEW_EXPRESSIONS, STORED_EXPRESSIONS};
use portico_cel::{Language, PatternCache};

const MIB: usize = 1024 * 1024;

static PATTERNS: LazyLock<PatternCache> = LazyLock::new(|| PatternCache::with_limits(32 * MIB, 192 * MIB));
static NEW: LazyLock<Arc<Language>> = LazyLock::new(|| of_release(NEW_EXPRESSIONS));
static STORED: LazyLock<Arc<Language>> = LazyLock::new(|| of_release(STORED_EXPRESSIONS));

fn of_release(minor: u16) -> Arc<Language> {
    Arc::new(Language::of_release(minor).with_pattern_cache(PATTERNS.clone()))
}

/// Returns the cache of compiled patterns.
pub(super) fn patterns() -> &'static PatternCache {
    &PATTERNS
}

/// Returns the language of rules in a new or changed definition.
pub(super) fn new_expressions() -> &'static Arc<Language> {
    &NEW
}

/// Returns the language of stored rules.
pub(super) fn stored_expressions() -> &'static Arc<Language> {
    &STORED
}
