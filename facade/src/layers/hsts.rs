//! HSTS (`--strict-transport-security-directives`): adds the header with the directives unless a handler has set it.

use http::header::{HeaderValue, STRICT_TRANSPORT_SECURITY};
use tower_http::set_header::SetResponseHeaderLayer;

/// Error of a directive that upstream does not know.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "invalid value {}, allowed values: max-age=expireTime, includeSubDomains, preload",
    portico_gostd::strconv::quote(.0)
)]
pub struct InvalidDirective(pub String);

/// Creates the layer for these directives; `None` if there are none.
///
/// # Errors
/// [`InvalidDirective`] for anything but `max-age=N`, `includeSubDomains`, `preload`.
pub fn hsts(directives: &[String]) -> Result<Option<SetResponseHeaderLayer<HeaderValue>>, InvalidDirective> {
    let is_valid = |d: &&String| {
        matches!(d.as_str(), "includeSubDomains" | "preload")
            || d.strip_prefix("max-age=").is_some_and(|n| n.parse::<u64>().is_ok())
    };
    if let Some(invalid) = directives.iter().find(|d| !is_valid(d)) {
        return Err(InvalidDirective(invalid.clone()));
    }
    let header = directives.join("; ");
    let value = HeaderValue::from_str(&header).map_err(|_| InvalidDirective(header))?;
    let layer = SetResponseHeaderLayer::if_not_present(STRICT_TRANSPORT_SECURITY, value);
    Ok((!directives.is_empty()).then_some(layer))
}
