//! Reads complete request bodies within a limit.

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, EXPECT};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use portico_kit::header_text;
use portico_machinery::Status;
use portico_machinery::status::Reason;

use crate::body::Body;
use crate::upload_pace::TooSlow;

/// Reads the bytes of a body.
///
/// A body that is too large is read on and dropped, up to another `limit` bytes: a client that is still sending would
/// otherwise get a broken connection instead of the refusal. A client that sends `Expect` is refused at once.
///
/// # Errors
/// 413 beyond the limit, 408 if the body arrives too slowly, 400 if it breaks off.
pub(super) async fn read(mut body: Body, headers: &HeaderMap, limit: usize) -> Result<Bytes, Box<Status>> {
    let reported = header_text::first(headers, CONTENT_LENGTH).parse::<u64>();
    let mut too_large = reported.is_ok_and(|length| length > limit as u64);
    if too_large && headers.contains_key(EXPECT) {
        return Err(Box::new(Status::too_large(limit)));
    }
    let (mut collected, mut read) = (BytesMut::new(), 0);
    while let Some(frame) = body.frame().await {
        let data = match frame {
            Ok(frame) => frame.into_data().unwrap_or_default(),
            Err(_) if too_large => break,
            Err(error) if error.is::<TooSlow>() => return Err(Box::new(too_slow(&error.to_string()))),
            Err(error) => {
                tracing::debug!(%error, "cannot read the body of a request");
                let message =
                    "the request's body could not be read: the client ended it before it was complete";
                return Err(Box::new(Status::bad_request(message)));
            }
        };
        read += data.len();
        too_large |= read > limit;
        if !too_large {
            collected.extend_from_slice(&data);
        } else if read > limit.saturating_mul(2) {
            break;
        }
    }
    if too_large { Err(Box::new(Status::too_large(limit))) } else { Ok(collected.freeze()) }
}

fn too_slow(message: &str) -> Status {
    let mut status = Status::failure(Reason::Timeout, message);
    status.code = StatusCode::REQUEST_TIMEOUT.as_u16();
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_byte_too_many_is_refused() {
        let whole = |n: usize| Body::full(vec![0; n]);
        assert_eq!(read(whole(10), &HeaderMap::new(), 10).await.unwrap().len(), 10);
        let refused = read(whole(11), &HeaderMap::new(), 10).await.unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (413, "Request entity too large: limit is 10"));
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, 11u32.into());
        assert_eq!(read(Body::empty(), &headers, 10).await.unwrap_err().code, 413);
    }
}
