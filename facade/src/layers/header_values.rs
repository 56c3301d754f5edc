//! HTTP headers as `portico_auth` reads them.

use http::HeaderMap;
use portico_auth::HeaderValues;

/// See the module.
pub struct Headers<'a>(pub &'a HeaderMap);

impl HeaderValues for Headers<'_> {
    fn visit(&self, visit: &mut dyn FnMut(&str, &str)) {
        for (name, value) in self.0 {
            if let Ok(value) = value.to_str() {
                visit(name.as_str(), value);
            }
        }
    }

    fn values(&self, name: &str) -> Vec<String> {
        let all = self.0.get_all(name).iter();
        all.filter_map(|v| v.to_str().ok()).map(str::to_owned).collect()
    }
}
