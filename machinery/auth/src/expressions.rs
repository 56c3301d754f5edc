//! CEL language of the expressions in authentication and authorization configurations.

use std::sync::{Arc, LazyLock};

use portico_cel::kubernetes::STORED_EXPRESSIONS;
use portico_cel::{Language, PatternCache};

const MIB: usize = 1024 * 1024;

/// Returns the language, whose programs share one cache of regular expressions.
pub(crate) fn language() -> &'static Arc<Language> {
    static LANGUAGE: LazyLock<Arc<Language>> = LazyLock::new(|| {
        let patterns = PatternCache::with_limits(4 * MIB, 8 * MIB);
        Arc::new(Language::of_release(STORED_EXPRESSIONS).with_pattern_cache(patterns))
    });
    &LANGUAGE
}
