//! The parser: one pass over the text, which writes the same expression in the engine's words.

use super::error::{Code, Error, MAX_DEPTH};
use super::flags::Flags;

/// The most repetitions, also of repetitions in repetitions.
const MAX_REPETITIONS: u64 = 1000;
/// Represents a number of repetitions that exceeds the limit.
const TOO_MANY: u64 = u64::MAX;

/// An expression in the making.
pub(super) struct Parser<'p> {
    text: &'p str,
    at: usize,
    pub(super) out: String,
    flags: Flags,
    groups: Vec<Group>,
    /// The innermost group that is open, or all.
    group: Group,
    /// End of the last part in the output; flags may follow.
    end: usize,
    /// Categories and scripts in the pattern, with the engine's names.
    pub(super) properties: Vec<(String, String)>,
}

/// A group that is open.
#[derive(Clone, Copy, Default)]
struct Group {
    /// Flags to go back to behind it.
    flags: Flags,
    /// Number of nested repetitions of the last part; `None` if there is no part.
    last: Option<u64>,
    /// The most of all of its parts.
    most: u64,
}

impl<'p> Parser<'p> {
    pub(super) fn new(text: &'p str) -> Self {
        let out = String::with_capacity(text.len() + 16);
        Self {
            text,
            at: 0,
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
            let start = self.at;
            let mut repeats = false;
            match character {
                '(' => self.open()?,
                '|' => {
                    self.copy();
                    self.group.last = None;
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
                    self.at += 1;
                    self.repeat(start, repeated, 0, 0)?;
                    repeats = true;
                }
                '{' => match self.counts() {
                    Some((least, most)) => {
                        self.check_counts(start, least, most)?;
                        self.repeat(start, repeated, least, most.unwrap_or(least))?;
                        repeats = true;
                    }
                    None => self.literal_here(),
                },
                '\\' => self.escape()?,
                _ => self.literal_here(),
            }
            repeated = repeats.then_some(start);
        }
        if self.groups.is_empty() { Ok(self.out) } else { Err(self.wrong(Code::MissingParenthesis)) }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn rest(&self) -> &'p str {
        &self.text[self.at..]
    }

    /// The text from a place up to here.
    pub(super) fn since(&self, start: usize) -> &'p str {
        &self.text[start..self.at]
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// The next character, and behind it.
    pub(super) fn take(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        Some(character)
    }

    /// A part was written that may be repeated.
    fn push(&mut self, repetitions: u64) {
        self.group.last = Some(repetitions);
        self.group.most = self.group.most.max(repetitions);
        self.end = self.out.len();
    }

    /// All of it is wrong.
    fn wrong(&self, code: Code) -> Error {
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

    /// A character that means itself. Half of a pair, which is none, matches nothing.
    pub(super) fn literal(&mut self, code: u32) {
        match char::from_u32(code) {
            Some(character) => self.out.push_str(&regex::escape(character.encode_utf8(&mut [0; 4]))),
            None => self.out.push_str(r"[^\x00-\x{10FFFF}]"),
        }
        self.push(1);
    }

    /// Something that matches by itself.
    pub(super) fn emit(&mut self, text: &str) {
        self.out.push_str(text);
        self.push(1);
    }

    fn open(&mut self) -> Result<(), Error> {
        if !self.rest().starts_with("(?") {
            self.at += 1;
            return self.enter("(", self.flags);
        }
        let named = |start: &str| self.rest().starts_with(start) && self.rest().len() > start.len();
        if named("(?P<") || named("(?<") {
            return self.named();
        }
        let start = self.at;
        self.at += 2;
        let (mut flags, mut on, mut seen) = (self.flags, true, false);
        while let Some(character) = self.take() {
            match character {
                '-' if on => (on, seen) = (false, false),
                ':' | ')' if on || seen => return self.flagged(character, flags),
                letter if flags.set(letter, on) => seen = true,
                _ => break,
            }
        }
        Err(Error::new(Code::Perl, self.since(start)))
    }

    /// A group with flags, or flags for the rest of this one.
    fn flagged(&mut self, end: char, flags: Flags) -> Result<(), Error> {
        if end == ':' {
            let open = format!("(?{}:", flags.letters());
            return self.enter(&open, flags);
        }
        self.out.push_str(&format!("(?{})", flags.letters()));
        self.flags = flags;
        Ok(())
    }

    /// Parses a named group. The name is not used.
    fn named(&mut self) -> Result<(), Error> {
        let rest = self.rest();
        let Some(end) = rest.find('>') else { return Err(Error::new(Code::NamedCapture, rest)) };
        let name = &rest[rest.find('<').map_or(end, |at| at + 1)..end];
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(Error::new(Code::NamedCapture, &rest[..=end]));
        }
        self.at += end + 1;
        self.enter("(", self.flags)
    }

    fn enter(&mut self, open: &str, flags: Flags) -> Result<(), Error> {
        if self.groups.len() >= MAX_DEPTH {
            return Err(self.wrong(Code::Depth));
        }
        self.out.push_str(open);
        self.groups.push(self.group);
        self.group = Group { flags: self.flags, ..Group::default() };
        self.flags = flags;
        Ok(())
    }

    fn close(&mut self) -> Result<(), Error> {
        let Some(outer) = self.groups.pop() else { return Err(self.wrong(Code::UnexpectedParenthesis)) };
        self.copy();
        self.flags = self.group.flags;
        let most = self.group.most.max(1);
        self.group = outer;
        self.push(most);
        Ok(())
    }

    /// Applies the operator from `start` to the last part. `repeated` is the start of an operator directly before.
    fn repeat(&mut self, start: usize, repeated: Option<usize>, least: u64, most: u64) -> Result<(), Error> {
        if self.peek() == Some('?') {
            self.at += 1;
        }
        if let Some(before) = repeated {
            return Err(Error::new(Code::NestedRepetition, self.since(before)));
        }
        let Some(last) = self.group.last else {
            return Err(Error::new(Code::MissingArgument, self.since(start)));
        };
        let repetitions = last.saturating_mul(most.max(1));
        if least.max(most) >= 2 && repetitions > MAX_REPETITIONS {
            return Err(Error::new(Code::RepeatCount, self.since(start)));
        }
        let operator = self.since(start);
        self.out.insert_str(self.end, operator);
        // Flags that stand between the part and its operator are for what follows.
        let end = self.end + operator.len();
        self.push(repetitions);
        self.end = end;
        Ok(())
    }

    /// Parses `{2}`, `{2,}` or `{2,5}`: minimum and optional maximum. Returns `None` for a literal brace.
    fn counts(&mut self) -> Option<(u64, Option<u64>)> {
        let rest = &self.rest()[1..];
        let (least, rest) = count(rest)?;
        let (most, rest) = match rest.strip_prefix(',') {
            None => (Some(least), rest),
            Some(rest) if rest.starts_with('}') => (None, rest),
            Some(rest) => count(rest).map(|(most, rest)| (Some(most), rest))?,
        };
        let behind = rest.strip_prefix('}')?;
        self.at = self.text.len() - behind.len();
        Some((least, most))
    }

    fn check_counts(&self, start: usize, least: u64, most: Option<u64>) -> Result<(), Error> {
        if least > MAX_REPETITIONS || most.is_some_and(|most| most > MAX_REPETITIONS || least > most) {
            return Err(Error::new(Code::RepeatCount, self.since(start)));
        }
        Ok(())
    }
}

/// A number without leading zeros, and what follows it.
fn count(text: &str) -> Option<(u64, &str)> {
    let (digits, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().unwrap_or(TOO_MANY), rest))
}
