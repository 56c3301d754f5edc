//! A request as bytes: its head, and its body's framing. Pure.

use http::Method;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};

use crate::outgoing::Outgoing;

/// How a body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is none.
    None,
    /// So many bytes are still to come.
    Length(u64),
    /// In chunks.
    Chunked,
}

/// By what the body knows of itself, and else by what the client said of it.
pub(super) fn framing(headers: &HeaderMap, empty: bool, exact: Option<u64>) -> Framing {
    if empty {
        return Framing::None;
    }
    let said = || headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
    exact.or_else(said).map_or(Framing::Chunked, Framing::Length)
}

/// The head. What was said of the body's length is said anew.
pub(super) fn head(out: &mut Vec<u8>, request: &Outgoing<'_>, authority: &HeaderValue, framing: Framing) {
    out.extend_from_slice(request.method.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(request.target.as_str().as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    request.write(out, authority);
    match framing {
        Framing::Length(length) => {
            out.extend_from_slice(b"content-length: ");
            out.extend_from_slice(length.to_string().as_bytes());
            out.extend_from_slice(b"\r\n\r\n");
        }
        Framing::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n"),
        Framing::None if request.headers.contains_key(CONTENT_LENGTH) || expects_body(&request.method) => {
            out.extend_from_slice(b"content-length: 0\r\n\r\n");
        }
        Framing::None => out.extend_from_slice(b"\r\n"),
    }
}

fn expects_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

/// One piece of a body. An error when it is longer than was said.
pub(super) fn data(out: &mut Vec<u8>, framing: &mut Framing, data: &[u8]) -> Result<(), &'static str> {
    match framing {
        _ if data.is_empty() => {}
        Framing::None => return Err("the request's body is longer than was said"),
        Framing::Length(left) => {
            let length = data.len() as u64;
            *left = left.checked_sub(length).ok_or("the request's body is longer than was said")?;
            out.extend_from_slice(data);
        }
        Framing::Chunked => {
            out.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
            out.extend_from_slice(data);
            out.extend_from_slice(b"\r\n");
        }
    }
    Ok(())
}

/// The end of a body, with trailers if it is chunked. An error when it is shorter than was said.
pub(super) fn end(
    out: &mut Vec<u8>,
    framing: Framing,
    trailers: Option<&HeaderMap>,
) -> Result<(), &'static str> {
    match framing {
        Framing::None | Framing::Length(0) => Ok(()),
        Framing::Length(_) => Err("the request's body is shorter than was said"),
        Framing::Chunked => {
            out.extend_from_slice(b"0\r\n");
            for (name, value) in trailers.into_iter().flatten() {
                out.extend_from_slice(name.as_str().as_bytes());
                out.extend_from_slice(b": ");
                out.extend_from_slice(value.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
            out.extend_from_slice(b"\r\n");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use portico_machinery::UserInfo;

    use super::*;
    use crate::headers::{Identity, ProxyHeaders};
    use crate::request_body::RequestBody;

    fn encoded(method: &str, said: Option<&str>, empty: bool, exact: Option<u64>) -> String {
        let mut request = Request::builder().method(method).uri("/a?b=c").header("x-a", "1");
        if let Some(said) = said {
            request = request.header("content-length", said);
        }
        let parts = request.body(()).unwrap().into_parts().0;
        let (identity, id) = (Identity::new(&UserInfo::new("a", [""; 0])), HeaderValue::from_static(""));
        let proxy_headers = ProxyHeaders::new(&identity, None, &id).unwrap();
        let request = Outgoing::new(parts, RequestBody::empty(), proxy_headers).unwrap();
        let mut out = Vec::new();
        let framing = framing(&request.headers, empty, exact);
        head(&mut out, &request, &HeaderValue::from_static("b:1"), framing);
        let ours = "host: b:1\r\nx-forwarded-host: b:1\r\nx-remote-user: a\r\n\
            x-forwarded-proto: https\r\nx-forwarded-uri: /a\r\n";
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(ours), "{text}");
        text.replace(ours, "")
    }

    #[test]
    fn a_bodys_length_is_said_once_and_as_it_is() {
        let table = [
            ("GET", None, true, None, "GET /a?b=c HTTP/1.1\r\nx-a: 1\r\n\r\n"),
            ("POST", None, true, None, "POST /a?b=c HTTP/1.1\r\nx-a: 1\r\ncontent-length: 0\r\n\r\n"),
            (
                "DELETE",
                Some("0"),
                true,
                None,
                "DELETE /a?b=c HTTP/1.1\r\nx-a: 1\r\ncontent-length: 0\r\n\r\n",
            ),
            ("PUT", Some("9"), false, Some(7), "PUT /a?b=c HTTP/1.1\r\nx-a: 1\r\ncontent-length: 7\r\n\r\n"),
            ("PUT", Some("9"), false, None, "PUT /a?b=c HTTP/1.1\r\nx-a: 1\r\ncontent-length: 9\r\n\r\n"),
            ("PUT", None, false, None, "PUT /a?b=c HTTP/1.1\r\nx-a: 1\r\ntransfer-encoding: chunked\r\n\r\n"),
            ("PUT", Some("+9"), false, None, "PUT /a?b=c HTTP/1.1\r\nx-a: 1\r\ncontent-length: 9\r\n\r\n"),
        ];
        for (method, said, empty, exact, want) in table {
            assert_eq!(encoded(method, said, empty, exact), want, "{method} {said:?}");
        }
    }

    #[test]
    fn chunks_and_trailers_are_framed() {
        let (mut out, mut framing) = (Vec::new(), Framing::Chunked);
        data(&mut out, &mut framing, b"hello, world, so").unwrap();
        data(&mut out, &mut framing, b"").unwrap();
        let trailers = HeaderMap::from_iter([("x-sum".parse().unwrap(), "7".parse().unwrap())]);
        end(&mut out, framing, Some(&trailers)).unwrap();
        assert_eq!(out, b"10\r\nhello, world, so\r\n0\r\nx-sum: 7\r\n\r\n");
    }

    #[test]
    fn a_body_of_another_length_than_was_said_is_an_error() {
        let mut framing = Framing::Length(3);
        data(&mut Vec::new(), &mut framing, b"ab").unwrap();
        assert!(end(&mut Vec::new(), framing, None).is_err());
        assert!(data(&mut Vec::new(), &mut framing, b"cd").is_err());
    }
}
