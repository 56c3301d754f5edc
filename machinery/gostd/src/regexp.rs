//! Regular expressions in RE2's syntax, as Go's `regexp` parses them.
//!
//! A pattern is parsed by RE2's rules, with Go's error messages, and translated to the syntax of the `regex` crate. Syntax that
//! only the `regex` crate has is refused or taken literally. Matching takes time linear in the length of the text.
//!
//! ```
//! use portico_gostd::regexp::{Code, compile};
//!
//! assert!(compile(r"^[a-z]+\d$").unwrap().is_match("abc1"));
//! assert_eq!(compile("(?=a)").unwrap_err().code, Code::Perl);
//! ```

mod class;
mod error;
mod escape;
mod flags;
mod parse;

pub use error::{Code, Error, MAX_DEPTH};

use regex::{Regex, RegexBuilder};

/// Compiled size of one pattern.
///
/// Limit (Definitions and schemas, bytes): the definition is rejected; `matches` in a rule fails.
pub const MAX_COMPILED_BYTES: usize = 4 * 1024 * 1024;
/// Maximum size of the cache for matching, in bytes.
pub const MAX_CACHE_BYTES: usize = 512 * 1024;

/// Compiles a pattern.
///
/// # Errors
/// The pattern has a syntax error, or its compiled form exceeds [`MAX_COMPILED_BYTES`].
pub fn compile(text: &str) -> Result<Regex, Error> {
    compile_within(text, MAX_COMPILED_BYTES)
}

/// Compiles a pattern with a limit on the size of the compiled form, in bytes.
///
/// # Errors
/// The pattern has a syntax error, or its compiled form exceeds the limit ([`Code::Size`]).
pub fn compile_within(text: &str, bytes: usize) -> Result<Regex, Error> {
    RegexBuilder::new(&translate(text)?)
        .size_limit(bytes)
        .dfa_size_limit(MAX_CACHE_BYTES)
        .build()
        // All other errors of the engine are limits.
        .map_err(|_| Error::new(Code::Size, text))
}

/// Translates a pattern to the syntax of the `regex` crate, without compiling it.
///
/// # Errors
/// The pattern has a syntax error.
pub fn translate(text: &str) -> Result<String, Error> {
    parse::Parser::new(text).parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_match_as_in_re2() {
        for (expression, text, matches) in [
            (r"^[a-z]+$", "abc", true),
            (r"^\d+$", "٣", false),
            (r"^\w$", "é", false),
            (r"^\W$", "é", true),
            (r"^\s$", "\u{b}", false),
            (r"[[]", "[", true),
            (r"[]a]", "]", true),
            (r"[^]a]", "]", false),
            (r"[a&&b]", "&", true),
            (r"[a-c--b]", "-", true),
            (r"[~~]", "~", true),
            (r"[[:alpha:]]+", "1", false),
            (r"[[:^alpha:]]+", "1", true),
            (r"[\D]", "1", false),
            (r"^[\d\s]+$", "1 2", true),
            (r"^[^\d]$", "1", false),
            (r"^\Qa.b\E$", "axb", false),
            (r"^\Q*", "*", true),
            (r"\bfoo\b", "a foo b", true),
            (r"\bfoo\b", "éfoo", true),
            (r"(?i)ABC", "abc", true),
            (r"(?i:A)b", "aB", false),
            (r"(?i)a(?-i)b", "AB", false),
            (r"(?m)^b$", "a\nb\nc", true),
            (r"^b$", "a\nb\nc", false),
            (r"a.b", "a\nb", false),
            (r"(?s)a.b", "a\nb", true),
            (r"(?P<1st>a)(?<n>b)", "ab", true),
            (r"a{,2}", "a{,2}", true),
            (r"a{2", "a{2", true),
            (r"x#y z", "x#y z", true),
            (r"\x41\x{1F600}\101", "A\u{1f600}A", true),
            (r"\a\f\t\v\_\-", "\u{7}\u{c}\t\u{b}_-", true),
            (r"\p{Greek}\pL\P{^Lu}\p{Any}", "αaAx", true),
            (r"^\p{lu}$", "A", true),
            (r"[\pN-]", "-", true),
            (r"(|a)*", "", true),
            (r"^*$", "", true),
            (r"\x{D800}|a", "a", true),
            (r"a\z", "a", true),
        ] {
            assert_eq!(compile(expression).unwrap().is_match(text), matches, "{expression} on {text:?}");
        }
    }

    #[test]
    fn a_malformed_expression_is_refused() {
        for (expression, want) in [
            ("[", "missing closing ]: `[`"),
            ("x[a", "missing closing ]: `[a`"),
            ("[]", "missing closing ]: `[]`"),
            ("[a-", "missing closing ]: `[a-`"),
            ("(a", "missing closing ): `(a`"),
            ("x(a|b", "missing closing ): `x(a|b`"),
            ("a)b", "unexpected ): `a)b`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("a|*b", "missing argument to repetition operator: `*`"),
            ("(+?)", "missing argument to repetition operator: `+?`"),
            ("{1}", "missing argument to repetition operator: `{1}`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a+?*b", "invalid nested repetition operator: `+?*`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            ("a{1,99999999999}", "invalid repeat count: `{1,99999999999}`"),
            ("(a{100}){11}", "invalid repeat count: `{11}`"),
            ("((a{10}b){10}|c){11}", "invalid repeat count: `{11}`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
            (r"\p{Alphabetic}", r"invalid character class range: `\p{Alphabetic}`"),
            (r"\pX", r"invalid character class range: `\pX`"),
            (r"[\p{Greek", r"invalid character class range: `\p{Greek`"),
            (r"\8", r"invalid escape sequence: `\8`"),
            (r"\1", r"invalid escape sequence: `\1`"),
            (r"\y", r"invalid escape sequence: `\y`"),
            (r"\C", r"invalid escape sequence: `\C`"),
            (r"\Z", r"invalid escape sequence: `\Z`"),
            (r"\é", r"invalid escape sequence: `\é`"),
            (r"[\b]", r"invalid escape sequence: `\b`"),
            (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
            (r"\xg0", r"invalid escape sequence: `\xg0`"),
            (r"\", "trailing backslash at end of expression: ``"),
            (r"[\", "trailing backslash at end of expression: ``"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
            ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
            ("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`"),
            ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
            ("(?", "invalid or unsupported Perl syntax: `(?`"),
            ("(?<=a)", "invalid named capture: `(?<=a)`"),
            ("(?P<n", "invalid named capture: `(?P<n`"),
            ("(?P<a b>x)", "invalid named capture: `(?P<a b>`"),
            ("(?P=n)", "invalid or unsupported Perl syntax: `(?P`"),
        ] {
            let error = translate(expression).unwrap_err().to_string();
            assert_eq!(error, format!("error parsing regexp: {want}"), "{expression}");
        }
    }

    #[test]
    fn too_large_expressions_are_rejected() {
        for bomb in [r"\pL{1000}", r"((\pL|\pN|\pS){30}){30}"] {
            assert_eq!(compile(bomb).unwrap_err().code, Code::Size, "{bomb}");
        }
        let deep = format!("{}a{}", "(".repeat(1000), ")".repeat(1000));
        assert_eq!(translate(&deep).unwrap_err().code, Code::Depth);
        for fine in [r"^[^/]{1,1000}$", r"^\S{1,512}$", r"([a-z0-9]([-a-z0-9]*[a-z0-9])?\.){1,60}"] {
            assert!(compile(fine).is_ok(), "{fine}");
        }
    }

    proptest::proptest! {
        #[test]
        fn translated_patterns_compile(text in "[\\\\\\[\\]{}()^$.a-c0-9?*+&~:PpQE|é<>-]{0,24}") {
            if let Ok(translated) = translate(&text) {
                // The size is the only possible error.
                if let Err(error) = Regex::new(&translated) {
                    proptest::prop_assert!(matches!(error, regex::Error::CompiledTooBig(_)), "{text}: {translated}: {error}");
                }
            }
        }
    }
}
