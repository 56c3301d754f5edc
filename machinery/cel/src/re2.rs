//! Regular expressions in RE2's syntax, bounded in size, matched in linear time.
//!
//! Compiled ones are kept in a bounded table, since rules match the same few patterns again and again.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};

/// Most bytes that a compiled pattern may take.
const LARGEST: usize = 1024 * 1024;
/// Most bytes of its lazily built tables.
const LARGEST_TABLE: usize = 512 * 1024;
/// Most patterns that are kept; when there are more, all are forgotten.
const MOST_KEPT: usize = 256;
/// Longest pattern that is kept.
const LONGEST_KEPT: usize = 4_096;
/// Most repetitions that RE2 allows.
const MOST_REPETITIONS: u32 = 1_000;

static KEPT: LazyLock<Mutex<HashMap<Box<str>, Arc<Regex>>>> = LazyLock::new(Mutex::default);

/// A compiled pattern, made or remembered.
///
/// # Errors
/// What is wrong with the pattern: its syntax, or its size.
pub fn compile(pattern: &str) -> Result<Arc<Regex>, String> {
    if let Some(found) = KEPT.lock().get(pattern) {
        return Ok(found.clone());
    }
    let made = RegexBuilder::new(&translate(pattern)?)
        .size_limit(LARGEST)
        .dfa_size_limit(LARGEST_TABLE)
        .build()
        .map(Arc::new)
        .map_err(|error| format!("error parsing regexp: {}", reason(&error)))?;
    if pattern.len() <= LONGEST_KEPT {
        let mut kept = KEPT.lock();
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(pattern.into(), made.clone());
    }
    Ok(made)
}

fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "expression too large".to_owned(),
        other => {
            other.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        }
    }
}

/// RE2's syntax in the words of the engine: classes are of ASCII, brackets inside of classes mean themselves, and what
/// only the engine knows is refused.
fn translate(pattern: &str) -> Result<String, String> {
    let mut translated = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    let mut class = false;
    while let Some(character) = rest.chars().next() {
        let taken = if character == '\\' {
            escape(rest, class, &mut translated)?
        } else if class {
            class = in_class(rest, &mut translated);
            if rest.starts_with("[:") {
                rest.find(":]").map_or(1, |end| end + 2)
            } else {
                character.len_utf8()
            }
        } else if character == '[' {
            class = true;
            open_class(rest, &mut translated)
        } else {
            if character == '{' {
                check_repetitions(rest)?;
            }
            if rest.starts_with("(?x") || rest.starts_with("(?u") || rest.starts_with("(?R") {
                return Err(format!(
                    "error parsing regexp: invalid or unsupported Perl syntax: `{}`",
                    &rest[..3]
                ));
            }
            translated.push(character);
            character.len_utf8()
        };
        rest = &rest[taken..];
    }
    Ok(translated)
}

/// The start of a class: a bracket directly behind it means itself.
fn open_class(rest: &str, translated: &mut String) -> usize {
    let start = if rest.starts_with("[^") { "[^" } else { "[" };
    translated.push_str(start);
    if rest[start.len()..].starts_with(']') {
        translated.push_str("\\]");
        return start.len() + 1;
    }
    start.len()
}

/// One character inside of a class; says whether the class goes on.
fn in_class(rest: &str, translated: &mut String) -> bool {
    if rest.starts_with("[:")
        && let Some(end) = rest.find(":]")
    {
        translated.push_str(&rest[..end + 2]);
        return true;
    }
    let Some(character) = rest.chars().next() else { return false };
    if matches!(character, '[' | '&' | '~') {
        translated.push('\\');
    }
    translated.push(character);
    character != ']'
}

/// An escape; says how long it is.
fn escape(rest: &str, class: bool, translated: &mut String) -> Result<usize, String> {
    let Some(letter) = rest[1..].chars().next() else {
        return Err("error parsing regexp: trailing backslash at end of expression: ``".to_owned());
    };
    if letter == 'Q' && !class {
        let literal = &rest[2..];
        let end = literal.find("\\E").unwrap_or(literal.len());
        translated.push_str(&regex::escape(&literal[..end]));
        return Ok((2 + end + 2).min(rest.len()));
    }
    let ascii = match letter {
        'd' if class => "0-9",
        's' if class => "\\t\\n\\x0c\\r ",
        'w' if class => "0-9A-Za-z_",
        'd' => "[0-9]",
        's' => "[\\t\\n\\x0c\\r ]",
        'w' => "[0-9A-Za-z_]",
        'D' => "[^0-9]",
        'S' => "[^\\t\\n\\x0c\\r ]",
        'W' => "[^0-9A-Za-z_]",
        // The engine has no ASCII form of `\B` for text; the Unicode one differs only beside letters beyond ASCII.
        'b' if !class && !rest[2..].starts_with('{') => "(?-u:\\b)",
        'C' | 'u' | 'U' | '<' | '>' | 'Z' => {
            return Err(format!("error parsing regexp: invalid escape sequence: `\\{letter}`"));
        }
        _ => "",
    };
    if ascii.is_empty() {
        translated.push('\\');
        translated.push(letter);
    } else {
        translated.push_str(ascii);
    }
    Ok(1 + letter.len_utf8())
}

/// RE2 refuses more than a thousand repetitions.
fn check_repetitions(rest: &str) -> Result<(), String> {
    let Some(end) = rest.find('}') else { return Ok(()) };
    let too_many =
        rest[1..end].split(',').any(|count| count.parse::<u32>().is_ok_and(|count| count > MOST_REPETITIONS));
    if too_many {
        return Err(format!("error parsing regexp: invalid repeat count: `{}`", &rest[..=end]));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_re2_means() {
        let cases = [
            (r"^[a-z]+$", "abc", true),
            (r"^\d+$", "٣", false),
            (r"^\w$", "é", false),
            (r"[[]", "[", true),
            (r"[]a]", "]", true),
            (r"[a&&b]", "&", true),
            (r"[[:alpha:]]+", "1", false),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"\bfoo\b", "a foo b", true),
            (r"(?i)ABC", "abc", true),
            (r"^[\d\s]+$", "1 2", true),
            (r"^[^\d]$", "1", false),
        ];
        for (pattern, text, matches) in cases {
            assert_eq!(compile(pattern).unwrap().is_match(text), matches, "{pattern} on {text}");
        }
    }

    #[test]
    fn what_re2_does_not_know_or_bound_is_refused() {
        for pattern in
            [r"(?=a)", r"(a", r"a{1001}", r"\C", r"(((a{100}){100}){100})", r"[z-a]", "\\", r"(?x)a", r"\1"]
        {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_pattern_makes_it_panic(pattern in "[\\\\\\[\\]{}()^$.a-c0-9?*+&~:QE|-]{0,24}") {
            let _ = compile(&pattern);
        }
    }
}
