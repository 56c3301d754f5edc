//! A minimal HTML scanner that finds links in tags while a page streams: no tree, no entities, bounded memory.
//!
//! The attributes that contain links are upstream's list. Comments and raw text elements such as scripts are skipped.

use super::LinkRewriter;

/// Size of one tag of a proxied HTML page whose links are rewritten.
///
/// Limit (Backends, bytes): it is passed on unchanged.
const MAX_TAG: usize = 64 * 1024;
const COMMENT: &[u8] = b"<!--";
const COMMENT_END: &[u8] = b"-->";
/// Elements whose content is text up to their end tag.
const RAW_TEXT_ELEMENTS: [&str; 9] =
    ["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "noscript"];

/// Returns the attributes of an element that contain links.
fn link_attributes(element: &[u8]) -> &'static [&'static str] {
    const TABLE: [(&str, &[&str]); 22] = [
        ("a", &["href"]),
        ("applet", &["codebase"]),
        ("area", &["href"]),
        ("audio", &["src"]),
        ("base", &["href"]),
        ("blockquote", &["cite"]),
        ("body", &["background"]),
        ("button", &["formaction"]),
        ("command", &["icon"]),
        ("del", &["cite"]),
        ("embed", &["src"]),
        ("form", &["action"]),
        ("frame", &["longdesc", "src"]),
        ("head", &["profile"]),
        ("html", &["manifest"]),
        ("iframe", &["longdesc", "src"]),
        ("img", &["longdesc", "src", "usemap"]),
        ("input", &["src", "usemap", "formaction"]),
        ("ins", &["cite"]),
        ("link", &["href"]),
        ("object", &["classid", "codebase", "data", "usemap"]),
        ("q", &["cite"]),
    ];
    const MORE: [(&str, &[&str]); 3] =
        [("script", &["src"]), ("source", &["src"]), ("video", &["poster", "src"])];
    let mut rows = TABLE.iter().chain(&MORE);
    rows.find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(element)).map_or(&[], |(_, names)| names)
}

/// State of the scanner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanState {
    Text,
    Comment,
    /// Inside an element of [`RAW_TEXT_ELEMENTS`].
    Raw(&'static str),
}

/// Rewrites the links of one page as its bytes arrive.
#[derive(Debug)]
pub(super) struct HtmlRewriter {
    links: LinkRewriter,
    state: ScanState,
    /// Input that cannot be interpreted until more arrives.
    pending: Vec<u8>,
    tag: TagScan,
}

impl HtmlRewriter {
    pub(super) fn new(links: LinkRewriter) -> Self {
        let (links, tag) = (links.for_html(), TagScan::default());
        Self { links, state: ScanState::Text, pending: Vec::new(), tag }
    }

    /// Processes more of the page, and writes the output that is final.
    pub(super) fn push(&mut self, data: &[u8], out: &mut Vec<u8>) {
        let mut page = std::mem::take(&mut self.pending);
        page.extend_from_slice(data);
        let mut done = 0;
        while let Some(consumed) = self.step(&page[done..], out) {
            done += consumed;
        }
        page.drain(..done);
        self.pending = page;
    }

    /// Ends the page: writes the pending input.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.pending);
    }

    /// Returns the number of bytes consumed; `None` if more input is needed.
    fn step(&mut self, page: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        if page.is_empty() {
            return None;
        }
        match self.state {
            ScanState::Text => self.text(page, out),
            ScanState::Comment => {
                Some(self.copy_until(COMMENT_END, page, out)).filter(|consumed| *consumed > 0)
            }
            ScanState::Raw(name) => {
                let end = format!("</{name}");
                Some(self.copy_until(end.as_bytes(), page, out)).filter(|consumed| *consumed > 0)
            }
        }
    }

    /// Copies input up to the mark that ends the current state, or to a possible start of the mark.
    fn copy_until(&mut self, mark: &[u8], page: &[u8], out: &mut Vec<u8>) -> usize {
        let found = page.windows(mark.len()).position(|window| window.eq_ignore_ascii_case(mark));
        let consumed = match found {
            Some(at) => {
                self.state = ScanState::Text;
                at + mark.len()
            }
            None => page.len().saturating_sub(mark.len() - 1),
        };
        out.extend_from_slice(&page[..consumed]);
        consumed
    }

    fn text(&mut self, page: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let at = page.iter().position(|byte| *byte == b'<').unwrap_or(page.len());
        if at > 0 {
            out.extend_from_slice(&page[..at]);
            return Some(at);
        }
        if page.starts_with(COMMENT) {
            self.state = ScanState::Comment;
            out.extend_from_slice(COMMENT);
            return Some(COMMENT.len());
        }
        if COMMENT.starts_with(page) {
            return None;
        }
        if !page[1].is_ascii_alphabetic() {
            out.push(b'<');
            return Some(1);
        }
        match self.tag.end(page) {
            Some(end) => {
                self.tag = TagScan::default();
                self.rewrite(&page[..end], out);
                Some(end)
            }
            None if page.len() > MAX_TAG => {
                self.tag = TagScan::default();
                out.extend_from_slice(page);
                Some(page.len())
            }
            None => None,
        }
    }

    fn rewrite(&mut self, tag: &[u8], out: &mut Vec<u8>) {
        let name_end = 1 + tag[1..].iter().take_while(|byte| !ends_name(**byte)).count();
        let name = &tag[1..name_end];
        if let Some(raw) = RAW_TEXT_ELEMENTS.iter().find(|raw| raw.as_bytes().eq_ignore_ascii_case(name)) {
            self.state = ScanState::Raw(raw);
        }
        let link_names = link_attributes(name);
        let mut copied = 0;
        for (attribute, value) in (Attributes { tag, at: name_end }) {
            let is_link =
                link_names.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(&tag[attribute.clone()]));
            let link = std::str::from_utf8(&tag[value.clone()]).ok().filter(|_| is_link);
            if let Some(rewritten) = link.and_then(|link| self.links.rewrite(link.trim())) {
                out.extend_from_slice(&tag[copied..value.start]);
                out.extend_from_slice(rewritten.as_bytes());
                copied = value.end;
            }
        }
        out.extend_from_slice(&tag[copied..]);
    }
}

fn ends_name(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>')
}

/// Progress of the scan of an incomplete tag: each byte is scanned once, however slowly bytes arrive.
#[derive(Debug, Default)]
struct TagScan {
    at: usize,
    quote: Option<u8>,
    /// True if an attribute value may begin here.
    expects_value: bool,
}

impl TagScan {
    /// Returns the position after the `>` that ends the tag; a `>` in quotes does not end it.
    fn end(&mut self, tag: &[u8]) -> Option<usize> {
        while let Some(byte) = tag.get(self.at) {
            self.at += 1;
            match (self.quote, byte) {
                (None, b'>') => return Some(self.at),
                (None, b'"' | b'\'') if self.expects_value => self.quote = Some(*byte),
                (None, byte) => {
                    self.expects_value = *byte == b'=' || (self.expects_value && byte.is_ascii_whitespace())
                }
                (Some(open), byte) if open == *byte => (self.quote, self.expects_value) = (None, false),
                (Some(_), _) => {}
            }
        }
        None
    }
}

type Span = std::ops::Range<usize>;

/// Iterator over names and values of a tag's attributes, as ranges of the tag; attributes without a value are skipped.
struct Attributes<'a> {
    tag: &'a [u8],
    at: usize,
}

impl Attributes<'_> {
    fn skip(&mut self, skipped: impl Fn(u8) -> bool) -> Span {
        let start = self.at;
        while self.tag.get(self.at).is_some_and(|byte| skipped(*byte)) {
            self.at += 1;
        }
        start..self.at
    }

    fn value(&mut self) -> Span {
        match self.tag.get(self.at) {
            Some(&quote @ (b'"' | b'\'')) => {
                self.at += 1;
                let value = self.skip(|byte| byte != quote);
                self.at += 1;
                value
            }
            _ => self.skip(|byte| !byte.is_ascii_whitespace() && byte != b'>'),
        }
    }
}

impl Iterator for Attributes<'_> {
    type Item = (Span, Span);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.skip(|byte| byte.is_ascii_whitespace() || byte == b'/');
            if self.tag.get(self.at).is_none_or(|byte| *byte == b'>') {
                return None;
            }
            let name = self.skip(|byte| !ends_name(byte) && byte != b'=');
            self.skip(|byte| byte.is_ascii_whitespace());
            if self.tag.get(self.at) == Some(&b'=') {
                self.at += 1;
                self.skip(|byte| byte.is_ascii_whitespace());
                return Some((name, self.value()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::links;
    use super::*;

    fn rewrite_pieces(pieces: &[&[u8]]) -> String {
        let (mut html, mut out) = (HtmlRewriter::new(links()), Vec::new());
        pieces.iter().for_each(|piece| html.push(piece, &mut out));
        html.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    const PAGE: &str = r#"<!DOCTYPE html><html><!-- <a href="/no"> --><head><link rel=x href=/css/a.css>
<script src="/a.js">var x = '<a href="/no">';</script></head><BODY Background='/b.png'>
<a title="a > b" href="/x?a=1&amp;b=2">1 < 2</a> <a href="other">o</a><a href = "http://10.0.0.1/y/">y</a>
<img src="/i.png"/><input formaction="/f" disabled><p cite="/no">p</p><a href="https://e.org/">e</a></BODY></html>"#;

    #[test]
    fn only_links_in_tags_are_rewritten() {
        let prefix = "/api/v1/pods/p/proxy";
        let mut want = PAGE.to_owned();
        for link in ["/css/a.css", "/a.js", "/b.png", "/x?a=1", "/i.png", "/f\""] {
            want = want.replace(link, &format!("{prefix}{link}"));
        }
        want = want.replace("http://10.0.0.1/y/", &format!("{prefix}/y/"));
        assert_eq!(rewrite_pieces(&[PAGE.as_bytes()]), want);
    }

    #[test]
    fn an_overlong_tag_is_not_buffered() {
        let page = format!("<a {}", "x".repeat(MAX_TAG));
        let (mut html, mut out) = (HtmlRewriter::new(links()), Vec::new());
        html.push(page.as_bytes(), &mut out);
        assert_eq!((out.len(), html.pending.len()), (page.len(), 0));
    }

    #[test]
    fn each_byte_of_a_slow_tag_is_scanned_once() {
        let (mut html, mut out) = (HtmlRewriter::new(links()), Vec::new());
        for byte in format!("<a title=\"{}", ">".repeat(5000)).bytes() {
            html.push(&[byte], &mut out);
            assert!(html.tag.at == html.pending.len() || html.pending.len() < 2);
        }
        html.push(b"\" href=/x>", &mut out);
        assert!(out.ends_with(b"href=/api/v1/pods/p/proxy/x>"));
    }

    #[test]
    fn paths_do_not_become_markup() {
        let proxy_path = "/api/v1/namespaces/n/services/https:a\"><script>alert(1)</script>'&lt; `:443/proxy";
        let mut path = Vec::new();
        crate::request_target::escape_path(&mut path, proxy_path);
        let value = http::HeaderValue::from_static;
        let links = LinkRewriter::new(String::from_utf8(path).unwrap(), &value("k8s"), &value("10.0.0.1:80"));
        let (mut html, mut out) = (HtmlRewriter::new(links), Vec::new());
        html.push(b"<a href=\"/x\"><a href='/x'><a href=/x>", &mut out);
        let prefix = "/api/v1/namespaces/n/services/https:a%22%3E%3Cscript%3Ealert%281%29%3C/script%3E%27&amp;lt;%20%60:443/proxy";
        let want = format!("<a href=\"{prefix}/x\"><a href='{prefix}/x'><a href={prefix}/x>");
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_matter(first in 0usize..600, second in 0usize..600) {
            let (a, b) = (first.min(second).min(PAGE.len()), first.max(second).min(PAGE.len()));
            let page = PAGE.as_bytes();
            prop_assert_eq!(rewrite_pieces(&[&page[..a], &page[a..b], &page[b..]]), rewrite_pieces(&[page]));
        }

        #[test]
        fn pages_without_links_pass_unchanged(page in "[<>a-c=\"' /!-]{0,60}") {
            let page = page.replace("=", "");
            prop_assert_eq!(rewrite_pieces(&[page.as_bytes()]), page);
        }
    }
}
