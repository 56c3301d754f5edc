//! Backslashes: classes, anchors, and escaped characters.

use super::error::{Code, Error};
use super::parse::Parser;

/// Perl's classes, which contain only ASCII characters.
const PERL: [(char, &str, &str); 3] =
    [('d', "0-9", "D"), ('s', r"\t\n\x0c\r\x20", "S"), ('w', "0-9A-Za-z_", "W")];

/// Returns the ASCII class of `\d`, `\S` and similar escapes, without brackets, and whether it is negated.
pub(super) fn perl_class(letter: char) -> Option<(&'static str, bool)> {
    PERL.iter().find_map(|(lower, class, upper)| match () {
        () if *lower == letter => Some((*class, false)),
        () if upper.starts_with(letter) => Some((*class, true)),
        () => None,
    })
}

impl Parser<'_> {
    /// Parses a backslash outside of classes.
    pub(super) fn escape(&mut self) -> Result<(), Error> {
        let Some(letter) = self.rest()[1..].chars().next() else {
            return Err(Error::new(Code::TrailingBackslash, ""));
        };
        let anchor = match letter {
            'A' => r"\A",
            'z' => r"\z",
            'b' => r"(?-u:\b)",
            // The `regex` crate has no ASCII form of `\B` for strings; results differ only next to letters beyond ASCII.
            'B' => r"\B",
            _ => "",
        };
        if !anchor.is_empty() {
            self.skip(2);
            self.emit(anchor);
            return Ok(());
        }
        if letter == 'Q' {
            self.quoted_literal();
            return Ok(());
        }
        if matches!(letter, 'p' | 'P') {
            let class = self.unicode_class()?;
            self.emit(&class);
            return Ok(());
        }
        if let Some((class, negated)) = perl_class(letter) {
            self.skip(2);
            self.emit(&format!("[{}{class}]", if negated { "^" } else { "" }));
            return Ok(());
        }
        let code = self.escaped_character()?;
        self.literal(code);
        Ok(())
    }

    /// Parses `\Q...\E`, whose content is literal.
    fn quoted_literal(&mut self) {
        let literal = &self.rest()[2..];
        let end = literal.find(r"\E");
        literal[..end.unwrap_or(literal.len())]
            .chars()
            .for_each(|character| self.literal(u32::from(character)));
        self.skip(2 + end.map_or(literal.len(), |end| end + 2));
    }

    /// Parses an escaped character inside or outside of classes, and returns its code.
    pub(super) fn escaped_character(&mut self) -> Result<u32, Error> {
        let start = self.position();
        self.skip(1);
        let Some(letter) = self.take() else { return Err(Error::new(Code::TrailingBackslash, "")) };
        let code = match letter {
            'a' => Some(0x07),
            'f' => Some(0x0c),
            'n' => Some(0x0a),
            'r' => Some(0x0d),
            't' => Some(0x09),
            'v' => Some(0x0b),
            'x' => self.hexadecimal(),
            // A single digit would be a backreference.
            '1'..='7' if !self.rest().starts_with(|c| matches!(c, '0'..='7')) => None,
            '0'..='7' => Some(self.octal(letter)),
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => Some(u32::from(other)),
            _ => None,
        };
        code.ok_or_else(|| Error::new(Code::Escape, self.text_since(start)))
    }

    fn octal(&mut self, first: char) -> u32 {
        let mut code = first.to_digit(8).unwrap_or_default();
        for _ in 0..2 {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else { break };
            self.skip(1);
            code = code * 8 + digit;
        }
        code
    }

    /// Parses two digits, or any number of digits in braces.
    fn hexadecimal(&mut self) -> Option<u32> {
        let first = self.take()?;
        if first != '{' {
            let second = self.take()?;
            return Some(first.to_digit(16)? * 16 + second.to_digit(16)?);
        }
        let mut code = None;
        loop {
            match self.take()? {
                '}' => return code,
                digit => {
                    let larger = code.unwrap_or(0) * 16 + digit.to_digit(16)?;
                    code = Some(larger).filter(|code| *code <= u32::from(char::MAX));
                    code?;
                }
            }
        }
    }
}
