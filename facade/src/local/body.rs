//! Request bodies, read whole within a limit.

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use portico_machinery::Status;

use crate::body::Body;

/// The body's bytes.
///
/// # Errors
/// 413 beyond the limit (told by `Content-Length` before a byte is read), 400 when the body breaks off.
pub(super) async fn read(body: Body, headers: &HeaderMap, limit: usize) -> Result<Bytes, Box<Status>> {
    let length =
        headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    if length.is_some_and(|length| length > limit as u64) {
        return Err(Box::new(Status::too_large(limit)));
    }
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Box::new(Status::too_large(limit))),
        Err(error) => {
            Err(Box::new(Status::bad_request(format!("the request's body could not be read: {error}"))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_byte_too_many_is_refused() {
        let whole = |n: usize| Body::whole(vec![0; n]);
        assert_eq!(read(whole(10), &HeaderMap::new(), 10).await.unwrap().len(), 10);
        let refused = read(whole(11), &HeaderMap::new(), 10).await.unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (413, "Request entity too large: limit is 10"));
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, 11u32.into());
        assert_eq!(read(Body::empty(), &headers, 10).await.unwrap_err().code, 413);
    }
}
