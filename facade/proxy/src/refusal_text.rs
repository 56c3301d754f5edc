//! The text of a kubelet's error response.

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;

/// Reads the text up to `limit` bytes; if the body breaks off, returns the part that arrived.
pub(crate) async fn read_text<B: Body<Data = Bytes> + Unpin>(mut body: B, limit: usize) -> String {
    let mut text = BytesMut::new();
    while let Some(Ok(frame)) = body.frame().await {
        let data = frame.into_data().unwrap_or_default();
        let remaining = limit - text.len();
        text.extend_from_slice(&data[..data.len().min(remaining)]);
        if text.len() == limit {
            break;
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}
