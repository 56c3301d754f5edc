//! Parser: translates the pattern to the syntax of the `regex` crate in one pass.

use super::error::{Code, Error, MAX_DEPTH};
use super::flags::Flags;

/// Maximum number of repetitions, also of nested repetitions.
const MAX_REPETITIONS: u64 = 1000;
/// Represents a number of repetitions that exceeds the limit.
const TOO_MANY: u64 = u64::MAX;

/// Parser with its output.
pub(super) struct Parser<'p> {
    text: &'p str,
    position: usize,
    pub(super) out: String,
    flags: Flags,
    groups: Vec<Group>,
    /// Innermost open group, or the whole pattern.
    group: Group,
    /// End of the last part in the output; flags may follow.
    end: usize,
    /// Categories and scripts in the pattern, with the engine's names.
    pub(super) properties: Vec<(String, String)>,
}

/// Open group.
#[derive(Clone, Copy, Default)]
struct Group {
    /// Flags before the group, restored at its end.
    flags: Flags,
    /// Number of nested repetitions of the last part; `None` if there is no part.
    last_repetitions: Option<u64>,
    /// Maximum of the numbers of nested repetitions of all parts.
    max_repetitions: u64,
}

impl<'p> Parser<'p> {
    pub(super) fn new(text: &'p str) -> Self {
        let out = String::with_capacity(text.len() + 16);
        Self {
            text,
            position: 0,
            out,
            flags: Flags::default(),
            groups: Vec::new(),
            group: Group::default(),
            end: 0,
            properties: Vec::new(),
        }
    }

    pub(super) fn parse(mut self) -> Result<String, Error> {
        let mut repeated: Option<usize> = None;
        while let Some(character) = self.peek() {
            let start = self.position;
            let mut repeats = false;
            match character {
                '(' => self.open()?,
                '|' => {
                    self.copy();
                    self.group.last_repetitions = None;
                }
                ')' => self.close()?,
                '^' | '$' | '.' => {
                    self.copy();
                    self.push(1);
                }
                '[' => {
                    self.class()?;
                    self.push(1);
                }
                '*' | '+' | '?' => {
                    self.position += 1;
                    self.repeat(start, repeated, 0, 0)?;
                    repeats = true;
                }
                '{' => match self.repeat_counts() {
                    Some((min, max)) => {
                        self.check_counts(start, min, max)?;
                        self.repeat(start, repeated, min, max.unwrap_or(min))?;
                        repeats = true;
                    }
                    None => self.literal_here(),
                },
                '\\' => self.escape()?,
                _ => self.literal_here(),
            }
            repeated = repeats.then_some(start);
        }
        if self.groups.is_empty() { Ok(self.out) } else { Err(self.pattern_error(Code::MissingParenthesis)) }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn rest(&self) -> &'p str {
        &self.text[self.position..]
    }

    /// Returns the text from a position to the current one.
    pub(super) fn text_since(&self, start: usize) -> &'p str {
        &self.text[start..self.position]
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn skip(&mut self, bytes: usize) {
        self.position += bytes;
    }

    /// Returns the next character, and advances.
    pub(super) fn take(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.position += character.len_utf8();
        Some(character)
    }

    /// Records that a repeatable part was written.
    fn push(&mut self, repetitions: u64) {
        self.group.last_repetitions = Some(repetitions);
        self.group.max_repetitions = self.group.max_repetitions.max(repetitions);
        self.end = self.out.len();
    }

    /// Returns an error about the whole pattern.
    fn pattern_error(&self, code: Code) -> Error {
        Error::new(code, self.text)
    }

    /// Writes a character that is literal in both syntaxes.
    fn copy(&mut self) {
        let character = self.take();
        self.out.extend(character);
    }

    fn literal_here(&mut self) {
        if let Some(character) = self.take() {
            self.literal(u32::from(character));
        }
    }

    /// Writes a literal character. A surrogate is not a character and never matches.
    pub(super) fn literal(&mut self, code: u32) {
        match char::from_u32(code) {
            Some(character) => self.out.push_str(&regex::escape(character.encode_utf8(&mut [0; 4]))),
            None => self.out.push_str(r"[^\x00-\x{10FFFF}]"),
        }
        self.push(1);
    }

    /// Writes a translated part.
    pub(super) fn emit(&mut self, text: &str) {
        self.out.push_str(text);
        self.push(1);
    }

    fn open(&mut self) -> Result<(), Error> {
        if !self.rest().starts_with("(?") {
            self.position += 1;
            return self.enter("(", self.flags);
        }
        let named = |start: &str| self.rest().starts_with(start) && self.rest().len() > start.len();
        if named("(?P<") || named("(?<") {
            return self.named_group();
        }
        let start = self.position;
        self.position += 2;
        let (mut flags, mut on, mut seen) = (self.flags, true, false);
        while let Some(character) = self.take() {
            match character {
                '-' if on => (on, seen) = (false, false),
                ':' | ')' if on || seen => return self.flag_group(character, flags),
                letter if flags.set(letter, on) => seen = true,
                _ => break,
            }
        }
        Err(Error::new(Code::Perl, self.text_since(start)))
    }

    /// Opens a group with flags, or sets flags for the rest of the current group.
    fn flag_group(&mut self, end: char, flags: Flags) -> Result<(), Error> {
        if end == ':' {
            let open = format!("(?{}:", flags.letters());
            return self.enter(&open, flags);
        }
        self.out.push_str(&format!("(?{})", flags.letters()));
        self.flags = flags;
        Ok(())
    }

    /// Parses a named group. The name is not used.
    fn named_group(&mut self) -> Result<(), Error> {
        let rest = self.rest();
        let Some(end) = rest.find('>') else { return Err(Error::new(Code::NamedCapture, rest)) };
        let name = &rest[rest.find('<').map_or(end, |at| at + 1)..end];
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(Error::new(Code::NamedCapture, &rest[..=end]));
        }
        self.position += end + 1;
        self.enter("(", self.flags)
    }

    fn enter(&mut self, open: &str, flags: Flags) -> Result<(), Error> {
        if self.groups.len() >= MAX_DEPTH {
            return Err(self.pattern_error(Code::Depth));
        }
        self.out.push_str(open);
        self.groups.push(self.group);
        self.group = Group { flags: self.flags, ..Group::default() };
        self.flags = flags;
        Ok(())
    }

    fn close(&mut self) -> Result<(), Error> {
        let Some(outer) = self.groups.pop() else {
            return Err(self.pattern_error(Code::UnexpectedParenthesis));
        };
        self.copy();
        self.flags = self.group.flags;
        let max = self.group.max_repetitions.max(1);
        self.group = outer;
        self.push(max);
        Ok(())
    }

    /// Applies the operator from `start` to the last part. `repeated` is the start of an operator directly before.
    fn repeat(&mut self, start: usize, repeated: Option<usize>, min: u64, max: u64) -> Result<(), Error> {
        if self.peek() == Some('?') {
            self.position += 1;
        }
        if let Some(before) = repeated {
            return Err(Error::new(Code::NestedRepetition, self.text_since(before)));
        }
        let Some(last) = self.group.last_repetitions else {
            return Err(Error::new(Code::MissingArgument, self.text_since(start)));
        };
        let repetitions = last.saturating_mul(max.max(1));
        if min.max(max) >= 2 && repetitions > MAX_REPETITIONS {
            return Err(Error::new(Code::RepeatCount, self.text_since(start)));
        }
        let operator = self.text_since(start);
        self.out.insert_str(self.end, operator);
        // Flags between the part and its operator apply to the following parts.
        let end = self.end + operator.len();
        self.push(repetitions);
        self.end = end;
        Ok(())
    }

    /// Parses `{2}`, `{2,}` or `{2,5}`: minimum and optional maximum. Returns `None` for a literal brace.
    fn repeat_counts(&mut self) -> Option<(u64, Option<u64>)> {
        let rest = &self.rest()[1..];
        let (min, rest) = count(rest)?;
        let (max, rest) = match rest.strip_prefix(',') {
            None => (Some(min), rest),
            Some(rest) if rest.starts_with('}') => (None, rest),
            Some(rest) => count(rest).map(|(max, rest)| (Some(max), rest))?,
        };
        let after = rest.strip_prefix('}')?;
        self.position = self.text.len() - after.len();
        Some((min, max))
    }

    fn check_counts(&self, start: usize, min: u64, max: Option<u64>) -> Result<(), Error> {
        if min > MAX_REPETITIONS || max.is_some_and(|max| max > MAX_REPETITIONS || min > max) {
            return Err(Error::new(Code::RepeatCount, self.text_since(start)));
        }
        Ok(())
    }
}

/// Parses a number without leading zeros, and returns it with the rest.
fn count(text: &str) -> Option<(u64, &str)> {
    let (digits, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().unwrap_or(TOO_MANY), rest))
}
