//! Extents of the arrays and objects of a JSON document, found in one pass, so that a writer that sorts keys can skip a value
//! without parsing it again.

/// A document of valid JSON with the extents of its arrays and objects, in the order of their opening brackets.
pub(super) struct Outline<'a> {
    json: &'a str,
    extents: Vec<ValueExtent>,
}

#[derive(Clone, Copy)]
struct ValueExtent {
    /// Offset after the closing bracket.
    end: usize,
    /// Index of the first extent after this one.
    next: usize,
}

/// A value of the document.
#[derive(Clone, Copy)]
pub(super) struct ValueRef<'a> {
    /// JSON text of the value.
    pub text: &'a str,
    offset: usize,
    /// Index of the first extent that does not start before the value.
    extent: usize,
}

impl ValueRef<'_> {
    /// True for an array or object.
    pub fn is_container(self) -> bool {
        self.text.starts_with(['{', '['])
    }
}

impl<'a> Outline<'a> {
    pub fn parse(json: &'a str) -> Self {
        let (mut extents, mut open) = (Vec::new(), Vec::new());
        for (at, token) in Tokens::new(json) {
            match token {
                "{" | "[" => {
                    open.push(extents.len());
                    extents.push(ValueExtent { end: json.len(), next: 0 });
                }
                "}" | "]" => {
                    if let Some(index) = open.pop() {
                        extents[index] = ValueExtent { end: at + 1, next: extents.len() };
                    }
                }
                _ => {}
            }
        }
        Self { json, extents }
    }

    /// The outermost value.
    pub fn root(&'a self) -> Option<ValueRef<'a>> {
        Items { outline: self, tokens: Tokens::new(self.json), extent: 0 }.next()
    }

    /// Elements of an array, or keys and values of an object in turn.
    pub fn items(&'a self, parent: ValueRef<'a>) -> Items<'a> {
        Items {
            outline: self,
            tokens: Tokens { json: self.json, offset: parent.offset + 1 },
            extent: parent.extent + 1,
        }
    }
}

/// Values of an array or object, in order.
pub(super) struct Items<'a> {
    outline: &'a Outline<'a>,
    tokens: Tokens<'a>,
    extent: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = ValueRef<'a>;

    fn next(&mut self) -> Option<ValueRef<'a>> {
        let (offset, token) = self.tokens.find(|(_, token)| !matches!(*token, "," | ":"))?;
        let extent = self.extent;
        match token {
            "}" | "]" => return None,
            "{" | "[" => {
                let ValueExtent { end, next } = *self.outline.extents.get(extent)?;
                (self.tokens.offset, self.extent) = (end, next);
            }
            _ => {}
        }
        Some(ValueRef { text: &self.outline.json[offset..self.tokens.offset], offset, extent })
    }
}

#[cfg(test)]
std::thread_local! {
    /// Number of bytes in the tokens that this thread has read.
    pub(super) static READ: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Tokens of valid JSON with their offsets.
pub(super) struct Tokens<'a> {
    json: &'a str,
    offset: usize,
}

impl<'a> Tokens<'a> {
    pub fn new(json: &'a str) -> Self {
        Self { json, offset: 0 }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<(usize, &'a str)> {
        const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];
        let remaining = self.json[self.offset..].trim_start_matches(SPACE);
        let at = self.json.len() - remaining.len();
        let length = match remaining.as_bytes().first()? {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            b'"' => string_length(remaining),
            _ => remaining.find([',', ':', '}', ']', ' ', '\t', '\r', '\n']).unwrap_or(remaining.len()),
        };
        self.offset = at + length;
        #[cfg(test)]
        READ.set(READ.get() + length);
        Some((at, &remaining[..length]))
    }
}

/// Length of the string at the start of a text, including quotes.
fn string_length(text: &str) -> usize {
    let (bytes, mut at) = (text.as_bytes(), 1);
    while let Some(offset) = text[at..].find(['"', '\\']) {
        at += offset + 1;
        if bytes[at - 1] == b'"' {
            return at;
        }
        // Skip the escaped character.
        at += 1;
    }
    text.len()
}
