//! A rule: the affected requests, their number, and the effect. Decoded strictly, and validated as a whole.

use serde::{Deserialize, Serialize};

use super::reasons;
use super::requests::RequestMatch;

/// Maximum latency, and maximum lifetime of a watch that is to be cut: one hour.
const MAX_MILLISECONDS: u64 = 60 * 60 * 1000;

/// Rule that a test sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Affected requests; by default all requests for resources.
    #[serde(default, rename = "match", skip_serializing_if = "RequestMatch::is_empty")]
    pub requests: RequestMatch,
    /// Number of affected requests; by default all until the rule is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// Effect on the requests.
    pub fault: Fault,
}

/// Effect on a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Fault {
    /// The request is handled with a delay.
    Latency {
        /// Delay in milliseconds.
        milliseconds: u64,
    },
    /// The request is refused with a Status.
    Status {
        /// HTTP status code; by default that of the reason. A code or a reason is required.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<u16>,
        /// Reason; by default the usual one of the code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Message; by default that of kube-apiserver.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Seconds after which to retry: `Retry-After`, and in the details.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_seconds: Option<u32>,
    },
    /// The connection breaks before the request is handled.
    DropRequest {},
    /// The request is handled, and the connection breaks instead of the response.
    DropAnswer {},
    /// The watch breaks off.
    CutWatch {
        /// Number of events before the break, including bookmarks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_events: Option<u64>,
        /// Time before the break.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_milliseconds: Option<u64>,
        /// True if the watch ends as at its timeout, instead of with a broken connection.
        #[serde(default)]
        clean: bool,
    },
    /// The watch ends with an event that reports an expired revision.
    ExpireWatch {
        /// Number of events before the end, including bookmarks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_events: Option<u64>,
        /// Time before the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_milliseconds: Option<u64>,
    },
    /// Gets and lists show an earlier revision, and watches deliver no events.
    StaleReads {
        /// The revision; by default the current one when the fault is set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource_version: Option<String>,
    },
}

/// Error of an invalid rule.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidRule {
    /// The rule cannot match any request.
    #[error("{0}")]
    Requests(String),
    /// The effect is invalid.
    #[error("fault.{0}")]
    Fault(String),
}

impl Fault {
    /// True if the fault applies to a watch while it is open.
    pub fn applies_to_open_watches(&self) -> bool {
        matches!(self, Self::CutWatch { .. } | Self::ExpireWatch { .. } | Self::StaleReads { .. })
    }

    /// Verbs to which the fault can apply; `None` for all.
    fn verbs(&self) -> Option<&'static [&'static str]> {
        match self {
            Self::CutWatch { .. } | Self::ExpireWatch { .. } => Some(&["watch"]),
            Self::StaleReads { .. } => Some(&["get", "list", "watch"]),
            _ => None,
        }
    }

    fn check(&self) -> Result<(), InvalidRule> {
        let (field, milliseconds) = match self {
            Self::Latency { milliseconds } => ("latency.milliseconds", Some(*milliseconds)),
            Self::CutWatch { after_milliseconds, .. } => ("cutWatch.afterMilliseconds", *after_milliseconds),
            Self::ExpireWatch { after_milliseconds, .. } => {
                ("expireWatch.afterMilliseconds", *after_milliseconds)
            }
            Self::Status { code, reason, .. } => {
                return reasons::validate(*code, reason.as_deref()).map_err(InvalidRule::Fault);
            }
            Self::StaleReads { resource_version: Some(text) } if parse_revision(text).is_none() => {
                let message = format!("staleReads.resourceVersion: {text:?} is not a revision");
                return Err(InvalidRule::Fault(message));
            }
            _ => return Ok(()),
        };
        match milliseconds {
            Some(milliseconds) if milliseconds > MAX_MILLISECONDS => {
                Err(InvalidRule::Fault(format!("{field}: must be at most {MAX_MILLISECONDS}")))
            }
            _ => Ok(()),
        }
    }
}

/// Parses a revision other than 0, which means any.
pub(super) fn parse_revision(text: &str) -> Option<i64> {
    text.parse().ok().filter(|revision| *revision > 0)
}

impl Rule {
    /// Validates the rule.
    ///
    /// # Errors
    /// [`InvalidRule`], which names the field.
    pub fn validate(&self) -> Result<(), InvalidRule> {
        self.requests.validate().map_err(InvalidRule::Requests)?;
        if self.times == Some(0) {
            return Err(InvalidRule::Requests("times: must be at least 1".to_owned()));
        }
        if let Some(verbs) = self.fault.verbs()
            && !self.requests.can_match_verbs(verbs)
        {
            let message = format!("match.verbs: this fault applies only to {}", verbs.join(", "));
            return Err(InvalidRule::Requests(message));
        }
        self.fault.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_rule(text: &str) -> Result<Rule, String> {
        let rule: Rule = serde_json::from_str(text).map_err(|error| error.to_string())?;
        rule.validate().map_err(|error| error.to_string())?;
        Ok(rule)
    }

    #[test]
    fn errors_name_their_field() {
        for (text, expected) in [
            (r"{}", "missing field `fault`"),
            (r#"{"fault": {"slow": {}}}"#, "unknown variant `slow`, expected one of `latency`, `status`"),
            (r#"{"fault": {"latency": {}}}"#, "missing field `milliseconds`"),
            (r#"{"fault": {"latency": {"milliseconds": -1}}}"#, "invalid value: integer `-1`"),
            (
                r#"{"fault": {"latency": {"milliseconds": 3600001}}}"#,
                "fault.latency.milliseconds: must be at most 3600000",
            ),
            (r#"{"fault": {"dropRequest": {"a": 1}}}"#, "unknown field `a`"),
            (r#"{"fault": {"dropRequest": {}}, "time": 1}"#, "unknown field `time`"),
            (r#"{"fault": {"dropRequest": {}}, "times": 0}"#, "times: must be at least 1"),
            (
                r#"{"fault": {"dropRequest": {}}, "match": {"verbs": ["read"]}}"#,
                "match.verbs: \"read\" is not one of",
            ),
            (r#"{"fault": {"cutWatch": {}}, "match": {"verbs": ["get"]}}"#, "applies only to watch"),
            (
                r#"{"fault": {"staleReads": {}}, "match": {"verbs": ["update"]}}"#,
                "applies only to get, list, watch",
            ),
            (r#"{"fault": {"staleReads": {"resourceVersion": "0"}}}"#, "\"0\" is not a revision"),
            (r#"{"fault": {"status": {}}}"#, "fault.status: requires a code or a reason"),
        ] {
            let error = parse_rule(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_rule_is_encoded_as_it_was_decoded() {
        for text in [
            r#"{"fault":{"dropAnswer":{}}}"#,
            r#"{"match":{"verbs":["watch"],"apiGroup":"","resource":"pods"},"times":2,"fault":{"cutWatch":{"afterEvents":3,"clean":true}}}"#,
            r#"{"fault":{"status":{"code":429,"retryAfterSeconds":1}}}"#,
            r#"{"fault":{"staleReads":{"resourceVersion":"7"}}}"#,
        ] {
            assert_eq!(serde_json::to_string(&parse_rule(text).unwrap()).unwrap(), text);
        }
    }
}
