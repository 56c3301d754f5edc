//! HTTP headers in the form that `portico_auth` reads.

use http::HeaderMap;
use portico_auth::HeaderValues;

/// Header fields of a request.
pub struct Headers<'a>(pub &'a HeaderMap);

impl HeaderValues for Headers<'_> {
    fn visit(&self, visit: &mut dyn FnMut(&str, &[u8])) {
        self.0.iter().for_each(|(name, value)| visit(name.as_str(), value.as_bytes()));
    }
}
