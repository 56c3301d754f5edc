//! A page whose links are rewritten while it streams to the client; gzip pages are decompressed and compressed again.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzDecoder, GzEncoder};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame};

use super::LinkRewriter;
use super::html::HtmlRewriter;
use crate::request_body::BoxError;

/// Compressed bytes that are decompressed in one step: the result is at most about a thousand times as large.
const STEP_SIZE: usize = 1024;

#[derive(Debug)]
enum Coding {
    Identity,
    Gzip(Box<Gzip>),
}

/// Decompression and compression of one page.
#[derive(Debug)]
struct Gzip {
    decoder: GzDecoder<Vec<u8>>,
    encoder: GzEncoder<Vec<u8>>,
}

/// A body whose links are rewritten.
#[derive(Debug)]
pub(crate) struct RewrittenBody<B> {
    inner: B,
    html: HtmlRewriter,
    coding: Coding,
    ended: bool,
}

/// Rewrites a page that arrives in these pieces from a target dialed as `authority`, for `tests/fuzz`.
#[doc(hidden)]
#[must_use]
pub fn rewrite_links(authority: &str, pieces: &[&[u8]]) -> Vec<u8> {
    let host = HeaderValue::from_static("k8s:6443");
    let authority =
        HeaderValue::from_str(authority).unwrap_or_else(|_| HeaderValue::from_static("10.0.0.1:80"));
    let links = LinkRewriter::new("/api/v1/pods/p/proxy".to_owned(), &host, &authority);
    let (mut html, mut out) = (HtmlRewriter::new(links), Vec::new());
    pieces.iter().for_each(|piece| html.push(piece, &mut out));
    html.finish(&mut out);
    out
}

impl<B: Body<Data = Bytes, Error = BoxError> + Unpin> RewrittenBody<B> {
    /// Wraps this page, whose length is then unknown. Returns a page in an unsupported content encoding as the error.
    pub(crate) fn wrap(inner: B, links: LinkRewriter, headers: &mut HeaderMap) -> Result<Self, B> {
        let coding = match headers.get(CONTENT_ENCODING).map(|value| value.as_bytes()) {
            None | Some(b"") => Coding::Identity,
            Some(b"gzip") => {
                let encoder = GzEncoder::new(Vec::new(), Compression::fast());
                Coding::Gzip(Box::new(Gzip { decoder: GzDecoder::new(Vec::new()), encoder }))
            }
            Some(_) => return Err(inner),
        };
        headers.remove(CONTENT_LENGTH);
        Ok(Self { inner, html: HtmlRewriter::new(links), coding, ended: false })
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        while !self.ended {
            let out = match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
                Some(Err(error)) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.coding.push(&mut self.html, &data),
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                None => {
                    self.ended = true;
                    self.coding.finish(&mut self.html)
                }
            };
            match out {
                Ok(out) if out.is_empty() => {}
                Ok(out) => return Poll::Ready(Some(Ok(Frame::data(out.into())))),
                Err(error) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(error.into())));
                }
            }
        }
        Poll::Ready(None)
    }
}

impl Coding {
    fn push(&mut self, html: &mut HtmlRewriter, data: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::with_capacity(data.len());
        match self {
            Self::Identity => html.push(data, &mut out),
            Self::Gzip(both) => {
                let Gzip { decoder, encoder } = &mut **both;
                for piece in data.chunks(STEP_SIZE) {
                    decoder.write_all(piece)?;
                    decoder.flush()?;
                    let mut page = Vec::new();
                    html.push(&std::mem::take(decoder.get_mut()), &mut page);
                    encoder.write_all(&page)?;
                }
                encoder.flush()?;
                out.append(encoder.get_mut());
            }
        }
        Ok(out)
    }

    fn finish(&mut self, html: &mut HtmlRewriter) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        match self {
            Self::Identity => html.finish(&mut out),
            Self::Gzip(both) => {
                let Gzip { decoder, encoder } = &mut **both;
                decoder.try_finish()?;
                let mut page = Vec::new();
                html.push(&std::mem::take(decoder.get_mut()), &mut page);
                html.finish(&mut page);
                encoder.write_all(&page)?;
                encoder.try_finish()?;
                out.append(encoder.get_mut());
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use http::HeaderValue;
    use http_body_util::BodyExt;

    use super::super::tests::links;
    use super::*;
    use crate::body::ProxyBody;

    async fn rewrite_page(page: Vec<u8>, coding: Option<&'static str>) -> (HeaderMap, Vec<u8>) {
        let mut headers = HeaderMap::from_iter([(CONTENT_LENGTH, HeaderValue::from(page.len()))]);
        headers.extend(coding.map(|coding| (CONTENT_ENCODING, HeaderValue::from_static(coding))));
        let body = ProxyBody::full(page).with_links(links(), &mut headers);
        (headers, body.collect().await.unwrap().to_bytes().to_vec())
    }

    #[tokio::test]
    async fn plain_and_compressed_pages_are_rewritten() {
        let (page, want) = (r#"<a href="/x">x</a>"#, r#"<a href="/api/v1/pods/p/proxy/x">x</a>"#);
        let (headers, body) = rewrite_page(page.into(), None).await;
        assert_eq!(String::from_utf8(body).unwrap(), want);
        assert!(!headers.contains_key(CONTENT_LENGTH));

        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(page.as_bytes()).unwrap();
        let (_, body) = rewrite_page(encoder.finish().unwrap(), Some("gzip")).await;
        let mut text = String::new();
        flate2::read::GzDecoder::new(&body[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text, want);

        let (headers, body) = rewrite_page(page.into(), Some("br")).await;
        assert_eq!(body, page.as_bytes(), "a body that cannot be decoded is unchanged");
        assert!(headers.contains_key(CONTENT_LENGTH));
    }
}
