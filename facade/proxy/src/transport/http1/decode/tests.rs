//! Answers, whole and in pieces, honest and not.

use proptest::prelude::*;

use super::*;

/// Status, body, trailers, whether it ended, and what is left over.
type Fed = (u16, Vec<u8>, HeaderMap, bool, Vec<u8>);

/// Feeds pieces one after another.
fn fed(pieces: &[&[u8]], to_head: bool) -> Result<Fed, Malformed> {
    let (mut buffer, mut heads) = (BytesMut::new(), HeadDecoder::default());
    let (mut found, mut body, mut trailers, mut ended) = (None, Vec::new(), HeaderMap::new(), false);
    for piece in pieces {
        buffer.extend_from_slice(piece);
        if found.is_none() {
            found = heads.decode(&mut buffer, to_head)?;
        }
        while let Some(head) = &mut found
            && !ended
        {
            match head.body.decode(&mut buffer)? {
                Decoded::More => break,
                Decoded::Data(data) => body.extend_from_slice(&data),
                Decoded::Trailers(found) => (trailers, ended) = (found, true),
                Decoded::End => ended = true,
            }
        }
    }
    let code = found.map_or(0, |head| head.response.status().as_u16());
    Ok((code, body, trailers, ended, buffer.to_vec()))
}

fn text(raw: &str) -> (u16, String, bool, String) {
    let (code, body, _, ended, rest) = fed(&[raw.as_bytes()], false).unwrap();
    (code, String::from_utf8(body).unwrap(), ended, String::from_utf8(rest).unwrap())
}

#[test]
fn a_body_ends_where_its_framing_says() {
    let table = [
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nabc", (200, "ab", true, "c")),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nab", (200, "ab", true, "")),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1 \r\nc\r\n0\r\n\r\nz",
            (200, "abc", true, "z"),
        ),
        ("HTTP/1.1 200 OK\r\n\r\nabc", (200, "abc", false, "")),
        ("HTTP/1.1 204 N\r\n\r\nz", (204, "", true, "z")),
        ("HTTP/1.1 304 N\r\ncontent-length: 9\r\n\r\nz", (304, "", true, "z")),
        (
            "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 103 E\r\na: b\r\n\r\nHTTP/1.1 201 C\r\ncontent-length: 0\r\n\r\n",
            (201, "", true, ""),
        ),
        ("HTTP/1.1 101 S\r\nupgrade: x\r\n\r\nraw", (101, "", true, "raw")),
    ];
    for (raw, (code, body, ended, rest)) in table {
        assert_eq!(text(raw), (code, body.to_owned(), ended, rest.to_owned()), "{raw}");
    }
}

#[test]
fn an_answer_to_head_has_no_body() {
    let raw = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nnext";
    let (code, body, _, ended, rest) = fed(&[raw], true).unwrap();
    assert_eq!((code, body.len(), ended, rest.as_slice()), (200, 0, true, &b"next"[..]));
}

#[test]
fn ambiguous_and_broken_answers_are_refused() {
    let heads = [
        "content-length: 1\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: gzip, chunked\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: xchunked\r\n",
        "content-length: 1\r\ncontent-length: 2\r\n",
        "content-length: 1, 1\r\n",
        "content-length: +1\r\n",
        "content-length: -1\r\n",
        "content-length: 0x1\r\n",
        "content-length: \r\n",
        "content-length : 1\r\n",
        "content-length: 99999999999999999999999\r\n",
        "a: b\r\n c: folded\r\n",
    ];
    for lines in heads {
        let raw = format!("HTTP/1.1 200 OK\r\n{lines}\r\n0\r\n\r\n");
        assert!(fed(&[raw.as_bytes()], false).is_err(), "{lines}");
    }
    for chunks in [
        "x\r\n",
        "\r\n",
        "2\r\nabc\r\n",
        "2\nab\r\n",
        "-1\r\n",
        "+1\r\na",
        "fffffffffffffffff\r\n",
        "1\r\r\na",
    ] {
        let raw = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}");
        assert_eq!(fed(&[raw.as_bytes()], false).unwrap_err(), Malformed::Chunk, "{chunks:?}");
    }
    assert!(fed(&[b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"], false).is_err());
    assert!(fed(&[b"\x16\x03\x01 nonsense\r\n\r\n"], false).is_err());
    let endless = format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(MAX_HEAD));
    assert_eq!(fed(&[endless.as_bytes()], false).unwrap_err(), Malformed::TooLarge);
}

#[test]
fn a_connection_is_kept_only_when_both_sides_mean_it() {
    let table = [
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: x, Close\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\n\r\n", false),
    ];
    for (raw, want) in table {
        let head = HeadDecoder::default().decode(&mut BytesMut::from(raw), false).unwrap().unwrap();
        assert_eq!(head.keep_alive, want, "{raw}");
    }
}

/// How often each byte of a head, or of trailers, is looked at when they come byte by byte.
fn looks(lines: usize, trailers: bool) -> f64 {
    let before = if trailers {
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n"
    } else {
        "HTTP/1.1 200 OK\r\n"
    };
    let raw = format!("{before}a: {}\r\n\r\n", "b".repeat(lines * 1000));
    LOOKED_AT.set(0);
    let pieces: Vec<&[u8]> = raw.as_bytes().chunks(1).collect();
    let (code, _, found, ended, _) = fed(&pieces, false).unwrap();
    assert_eq!((code, ended, found.len()), (200, trailers, usize::from(trailers)));
    LOOKED_AT.get() as f64 / raw.len() as f64
}

#[test]
fn a_head_that_dribbles_costs_no_more_than_its_length() {
    for trailers in [false, true] {
        let (small, large) = (looks(20, trailers), looks(80, trailers));
        assert!(large < 8.0 && large < 2.5 * small, "{small} and {large} looks at each byte");
    }
}

#[test]
fn what_comes_before_a_head_is_bounded() {
    for (line, fits) in [
        ("\r\n", 1_000),
        ("HTTP/1.1 100 C\r\n\r\n", 1_000),
        ("\r\n", MAX_HEAD),
        ("HTTP/1.1 100 C\r\n\r\n", MAX_HEAD),
    ] {
        let raw = format!("{}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", line.repeat(fits));
        let read = fed(&[raw.as_bytes()], false).map(|fed| fed.0);
        assert_eq!(read, if fits == MAX_HEAD { Err(Malformed::TooLarge) } else { Ok(200) }, "{line:?}");
    }
}

proptest! {
    #[test]
    fn pieces_read_as_the_whole(cuts in proptest::collection::vec(0_usize..220, 0..8), big in 0_usize..6000) {
        let fill = "x".repeat(big);
        let raw = format!(
            "HTTP/1.1 103 E\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
             5\r\nhello\r\n{:X};e=1\r\ny{fill}\r\n0\r\nx-sum: 7\r\n\r\nrest", big + 1
        );
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < raw.len()).collect();
        cuts.sort_unstable();
        let (mut pieces, mut from) = (Vec::new(), 0);
        for cut in cuts.into_iter().chain([raw.len()]) {
            pieces.push(&raw.as_bytes()[from..cut]);
            from = cut;
        }
        let (code, body, trailers, ended, rest) = fed(&pieces, false).unwrap();
        prop_assert_eq!((code, ended, rest.as_slice()), (200, true, &b"rest"[..]));
        prop_assert_eq!(body, format!("helloy{fill}").into_bytes());
        prop_assert_eq!(&trailers["x-sum"], "7");
    }

    #[test]
    fn foreign_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = fed(&[b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", &bytes], false);
        let _ = fed(&[&bytes], false);
    }
}
