//! Dictionary of the header compression: a constant of SPDY/3, section 2.6.10.1 of its draft.

use std::sync::LazyLock;

/// Words of the dictionary, each preceded by its length, as in a block of headers.
const WORDS: [&str; 65] = [
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
];

/// Rest of the dictionary after the words.
const SUFFIX: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505\
203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden\
404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable\
Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT\
chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,\
publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

/// Checksum of the dictionary, by which a compressed block identifies it.
pub(crate) const DICTIONARY_ADLER32: u32 = 0xe3c6_a7c2;

/// Bytes of the dictionary.
pub(crate) static DICTIONARY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = Vec::new();
    for word in WORDS {
        bytes.extend(u32::try_from(word.len()).unwrap_or_default().to_be_bytes());
        bytes.extend(word.as_bytes());
    }
    bytes.extend(SUFFIX.as_bytes());
    bytes
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dictionary_has_the_standard_checksum() {
        let (mut a, mut b) = (1_u32, 0_u32);
        for byte in DICTIONARY.iter() {
            a = (a + u32::from(*byte)) % 65_521;
            b = (b + a) % 65_521;
        }
        assert_eq!((DICTIONARY.len(), b << 16 | a), (1423, DICTIONARY_ADLER32));
    }
}
