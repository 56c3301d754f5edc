//! A reader of text protos: fields in order, whatever their types.

/// A message: its fields in order.
#[derive(Debug, Default, Clone)]
pub struct Message(pub Vec<(String, Field)>);

/// What a field holds.
#[derive(Debug, Clone)]
pub enum Field {
    /// A number, a name, true or false, as written.
    Word(String),
    /// Text or bytes.
    Text(Vec<u8>),
    /// A message.
    Message(Message),
}

impl Message {
    pub fn all<'m>(&'m self, name: &'m str) -> impl Iterator<Item = &'m Field> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value)
    }

    pub fn get(&self, name: &str) -> Option<&Field> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    pub fn message(&self, name: &str) -> Option<&Message> {
        match self.get(name) {
            Some(Field::Message(message)) => Some(message),
            _ => None,
        }
    }

    pub fn text(&self, name: &str) -> Option<String> {
        match self.get(name) {
            Some(Field::Text(text)) => Some(String::from_utf8(text.clone()).unwrap()),
            Some(Field::Word(word)) => Some(word.clone()),
            _ => None,
        }
    }
}

/// Reads a document.
pub fn parse(text: &str) -> Message {
    let mut reader = Reader { rest: text };
    reader.message()
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn skip(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\n', '\r', '\t', ',', ';']);
            match self.rest.strip_prefix('#') {
                Some(comment) => self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest),
                None => return,
            }
        }
    }

    fn message(&mut self) -> Message {
        let mut message = Message::default();
        loop {
            self.skip();
            if self.rest.is_empty() || self.rest.starts_with(['}', '>']) {
                self.rest = self.rest.get(1..).unwrap_or_default();
                return message;
            }
            let name = self.name();
            self.skip();
            self.rest = self.rest.strip_prefix(':').unwrap_or(self.rest);
            self.skip();
            if let Some(list) = self.rest.strip_prefix('[') {
                self.rest = list;
                self.skip();
                while !self.rest.starts_with(']') {
                    let value = self.value();
                    message.0.push((name.clone(), value));
                    self.skip();
                }
                self.rest = &self.rest[1..];
            } else {
                let value = self.value();
                message.0.push((name, value));
            }
        }
    }

    fn name(&mut self) -> String {
        let end = if self.rest.starts_with('[') {
            self.rest.find(']').unwrap() + 1
        } else {
            self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap()
        };
        assert!(end > 0, "no field at {:?}", &self.rest[..self.rest.len().min(60)]);
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        name.to_owned()
    }

    fn value(&mut self) -> Field {
        if let Some(rest) = self.rest.strip_prefix(['{', '<']) {
            self.rest = rest;
            return Field::Message(self.message());
        }
        if self.rest.starts_with(['"', '\'']) {
            let mut text = Vec::new();
            while self.rest.starts_with(['"', '\'']) {
                self.quoted(&mut text);
                self.skip();
            }
            return Field::Text(text);
        }
        let end = self.rest.find([' ', '\n', '}', ',', ']', '#', ';']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Field::Word(word.trim().to_owned())
    }

    fn quoted(&mut self, text: &mut Vec<u8>) {
        let quote = self.rest.as_bytes()[0];
        let mut at = 1;
        let bytes = self.rest.as_bytes();
        while bytes[at] != quote {
            if bytes[at] == b'\\' {
                at += escape(&self.rest[at + 1..], text) + 1;
            } else {
                text.push(bytes[at]);
                at += 1;
            }
        }
        self.rest = &self.rest[at + 1..];
    }
}

/// Writes what an escape means and says how long it is behind its backslash.
fn escape(rest: &str, text: &mut Vec<u8>) -> usize {
    let letter = rest.as_bytes()[0];
    let digits = |radix: u32, from: usize, most: usize| {
        rest[from..].chars().take(most).take_while(|c| c.is_digit(radix)).count()
    };
    match letter {
        b'a' => text.push(7),
        b'b' => text.push(8),
        b'f' => text.push(12),
        b'n' => text.push(b'\n'),
        b'r' => text.push(b'\r'),
        b't' => text.push(b'\t'),
        b'v' => text.push(11),
        b'x' | b'X' => {
            let count = digits(16, 1, 2);
            text.push(u8::from_str_radix(&rest[1..=count], 16).unwrap());
            return 1 + count;
        }
        b'u' | b'U' => {
            let count = if letter == b'u' { 4 } else { 8 };
            let code = char::from_u32(u32::from_str_radix(&rest[1..=count], 16).unwrap()).unwrap();
            text.extend_from_slice(code.encode_utf8(&mut [0; 4]).as_bytes());
            return 1 + count;
        }
        b'0'..=b'7' => {
            let count = digits(8, 0, 3);
            text.push(u8::try_from(u32::from_str_radix(&rest[..count], 8).unwrap()).unwrap());
            return count;
        }
        other => text.push(other),
    }
    1
}
