//! Reasons of the refusals that a fault can cause.

use portico_machinery::status::Reason;

/// Supported reasons. Each has a code; the first reason with a code is its default.
const REASONS: [Reason; 16] = [
    Reason::BadRequest,
    Reason::Unauthorized,
    Reason::Forbidden,
    Reason::NotFound,
    Reason::MethodNotAllowed,
    Reason::NotAcceptable,
    Reason::Conflict,
    Reason::AlreadyExists,
    Reason::Expired,
    Reason::Gone,
    Reason::Invalid,
    Reason::TooManyRequests,
    Reason::InternalError,
    Reason::ServerTimeout,
    Reason::ServiceUnavailable,
    Reason::Timeout,
];

/// Returns the reason with this code, this name, or both.
pub(super) fn find(code: Option<u16>, reason: Option<&str>) -> Option<Reason> {
    let mut all = REASONS.into_iter();
    all.find(|known| {
        code.is_none_or(|code| known.code() == code) && reason.is_none_or(|text| known.as_str() == text)
    })
}

/// Validates a pair of code and reason. Returns the message of the error.
pub(super) fn validate(code: Option<u16>, reason: Option<&str>) -> Result<(), String> {
    if code.is_none() && reason.is_none() {
        return Err("status: requires a code or a reason".to_owned());
    }
    if find(code, reason).is_some() {
        return Ok(());
    }
    let known: Vec<String> =
        REASONS.iter().map(|reason| format!("{} {}", reason.code(), reason.as_str())).collect();
    Err(format!("status: must be one of {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_and_a_reason_that_do_not_match_are_refused() {
        assert!(validate(Some(200), None).unwrap_err().contains("409 Conflict"));
        assert!(validate(Some(409), Some("Expired")).is_err());
        assert!(validate(None, Some("Nonsense")).is_err());
        assert_eq!(validate(Some(409), Some("Conflict")), Ok(()));
    }
}
