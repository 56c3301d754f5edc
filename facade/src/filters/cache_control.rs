//! CacheControl: nothing is kept by caches unless a handler says so.

use http::Response;
use http::header::{CACHE_CONTROL, HeaderValue};

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;

/// See the module.
#[derive(Debug, Default)]
pub struct CacheControl;

impl Filter for CacheControl {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        let mut response = next.handle(x).await;
        let entry = response.headers_mut().entry(CACHE_CONTROL);
        entry.or_insert(HeaderValue::from_static("no-cache, private"));
        response
    }
}
