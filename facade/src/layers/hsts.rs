//! HSTS (`--strict-transport-security-directives`): the directives, joined, unless a handler set its own.

use http::header::{HeaderValue, STRICT_TRANSPORT_SECURITY};
use tower_http::set_header::SetResponseHeaderLayer;

/// A directive that upstream does not know.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "invalid value {}, allowed values: max-age=expireTime, includeSubDomains, preload",
    portico_gostd::strconv::quote(.0)
)]
pub struct BadDirective(pub String);

/// The layer for these directives; none when there are none.
///
/// # Errors
/// [`BadDirective`] for anything but `max-age=N`, `includeSubDomains`, `preload`.
pub fn hsts(directives: &[String]) -> Result<Option<SetResponseHeaderLayer<HeaderValue>>, BadDirective> {
    let known = |d: &&String| {
        matches!(d.as_str(), "includeSubDomains" | "preload")
            || d.strip_prefix("max-age=").is_some_and(|n| n.parse::<u64>().is_ok())
    };
    if let Some(bad) = directives.iter().find(|d| !known(d)) {
        return Err(BadDirective(bad.clone()));
    }
    let joined = directives.join("; ");
    let value = HeaderValue::from_str(&joined).map_err(|_| BadDirective(joined))?;
    let layer = SetResponseHeaderLayer::if_not_present(STRICT_TRANSPORT_SECURITY, value);
    Ok((!directives.is_empty()).then_some(layer))
}
