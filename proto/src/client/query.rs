//! Query strings of Kubernetes requests.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All characters except RFC 3986's unreserved ones.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Query string of percent-encoded names and values.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(String);

impl Query {
    /// Adds a parameter, unless the value is empty.
    pub(super) fn add(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(name);
        self.0.push('=');
        self.0.extend(utf8_percent_encode(value, ENCODED));
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Query;

    #[test]
    fn values_are_encoded_and_empty_ones_are_omitted() {
        let mut query = Query::default();
        query.add("labelSelector", "a in (b,c),d!=é&");
        query.add("limit", "");
        query.add("continue", "x~1");
        assert_eq!(query.into_string(), "labelSelector=a%20in%20%28b%2Cc%29%2Cd%21%3D%C3%A9%26&continue=x~1");
    }
}
