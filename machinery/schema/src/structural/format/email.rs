//! The format `email`: one address in the syntax of RFC 5322, optionally with a name and comments.

use std::net::IpAddr;

/// True if the text is one address.
pub(super) fn is_address(text: &str) -> bool {
    let mut reader = Reader(text);
    reader.skip_space();
    let address = reader.address().or_else(|| reader.named_address());
    address.is_some_and(|mut rest| rest.skip_comments().is_some() && rest.0.is_empty())
}

/// Remaining text. Each method parses one element and returns the text after it, or `None` if it does not match.
#[derive(Clone, Copy)]
struct Reader<'t>(&'t str);

impl<'t> Reader<'t> {
    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn after_space(mut self) -> Self {
        self.skip_space();
        self
    }

    fn take(self, c: char) -> Option<Self> {
        self.0.strip_prefix(c).map(Self)
    }

    /// Parses `local@domain`.
    fn address(mut self) -> Option<Self> {
        self.skip_space();
        let local = if self.0.starts_with('"') {
            let (text, rest) = self.quoted()?;
            (!text.is_empty()).then_some(rest)?
        } else {
            self.dot_atom()?
        };
        let mut domain = local.take('@')?;
        domain.skip_space();
        match domain.take('[') {
            None => domain.dot_atom(),
            Some(literal) => {
                let (address, rest) = literal.0.split_once(']')?;
                address.parse::<IpAddr>().ok().map(|_| Self(rest))
            }
        }
    }

    /// Parses `A name <local@domain>`, or a group of one: `Name: local@domain;`.
    fn named_address(self) -> Option<Self> {
        let group = if self.0.starts_with('<') { None } else { self.phrase()?.after_space().take(':') };
        if let Some(mut group) = group {
            group.skip_space();
            let mut rest = group.address().or_else(|| group.angle_address())?;
            rest.skip_comments()?;
            return rest.take(';');
        }
        self.angle_address()
    }

    /// Parses `<local@domain>`, optionally after a name.
    fn angle_address(mut self) -> Option<Self> {
        if !self.0.starts_with('<') {
            self = self.phrase()?;
            self.skip_space();
        }
        self.take('<')?.address()?.take('>')
    }

    /// Parses words: atoms or quoted strings.
    fn phrase(mut self) -> Option<Self> {
        let mut words = 0;
        loop {
            if words > 0 {
                self.skip_comments()?;
            }
            self.skip_space();
            let word =
                if self.0.starts_with('"') { self.quoted().map(|(_, rest)| rest) } else { self.atom(true) };
            match word {
                Some(rest) => self = rest,
                None if words > 0 => return Some(self),
                None => return None,
            }
            words += 1;
        }
    }

    /// Parses the characters of an atom, at least one.
    fn atom(self, dots: bool) -> Option<Self> {
        let rest = self.0.trim_start_matches(|c| in_atom(c, dots));
        (rest.len() < self.0.len()).then_some(Self(rest))
    }

    /// Parses atoms with dots between them.
    fn dot_atom(self) -> Option<Self> {
        let rest = self.atom(true)?;
        let text = &self.0[..self.0.len() - rest.0.len()];
        text.split('.').all(|atom| !atom.is_empty()).then_some(rest)
    }

    /// Parses a quoted string. Returns its content and the text after it.
    fn quoted(self) -> Option<(&'t str, Self)> {
        let content = self.take('"')?.0;
        let mut escaped = false;
        for (index, c) in content.char_indices() {
            match c {
                _ if escaped && (is_visible(c) || c == ' ' || c == '\t') => escaped = false,
                _ if escaped => return None,
                '"' => return Some((&content[..index], Self(&content[index + 1..]))),
                '\\' => escaped = true,
                ' ' | '\t' => {}
                _ if is_visible(c) => {}
                _ => return None,
            }
        }
        None
    }

    /// Skips spaces and comments in parentheses, which can be nested.
    fn skip_comments(&mut self) -> Option<()> {
        self.skip_space();
        while let Some(comment) = self.take('(') {
            *self = comment.end_of_comment()?;
            self.skip_space();
        }
        Some(())
    }

    fn end_of_comment(self) -> Option<Self> {
        let (mut depth, mut escaped) = (1, false);
        for (index, c) in self.0.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(Self(&self.0[index + 1..]));
            }
        }
        None
    }
}

fn in_atom(c: char, dots: bool) -> bool {
    match c {
        '.' => dots,
        '(' | ')' | '<' | '>' | '[' | ']' | ':' | ';' | '@' | '\\' | ',' | '"' => false,
        _ => is_visible(c),
    }
}

fn is_visible(c: char) -> bool {
    ('!'..='~').contains(&c) || !c.is_ascii()
}
