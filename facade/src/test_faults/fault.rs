//! A rule: the affected requests, their number, and the effect. Decoded strictly, and validated as a whole.

use serde::{Deserialize, Serialize};

use super::reasons;
use super::requests::Requests;

/// Maximum latency, and maximum lifetime of a watch that is to be cut: one hour.
const MAX_MILLISECONDS: u64 = 60 * 60 * 1000;

/// Rule that a test sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Affected requests; by default all requests for resources.
    #[serde(default, rename = "match", skip_serializing_if = "Requests::is_every")]
    pub requests: Requests,
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
pub enum Invalid {
    /// The rule cannot match any request.
    #[error("{0}")]
    Requests(String),
    /// The effect is invalid.
    #[error("fault.{0}")]
    Fault(String),
}

impl Fault {
    /// True if the fault applies to a watch while it is open.
    pub fn is_of_watches(&self) -> bool {
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

    fn check(&self) -> Result<(), Invalid> {
        let milliseconds = match self {
            Self::Latency { milliseconds } => Some(*milliseconds),
            Self::CutWatch { after_milliseconds, .. } | Self::ExpireWatch { after_milliseconds, .. } => {
                *after_milliseconds
            }
            Self::Status { code, reason, .. } => {
                return reasons::check(*code, reason.as_deref()).map_err(Invalid::Fault);
            }
            Self::StaleReads { resource_version: Some(text) } if revision(text).is_none() => {
                let wrong = format!("staleReads.resourceVersion: {text:?} is not a revision");
                return Err(Invalid::Fault(wrong));
            }
            _ => None,
        };
        match milliseconds {
            Some(given) if given > MAX_MILLISECONDS => {
                Err(Invalid::Fault(format!("{self:?}: more than {MAX_MILLISECONDS} milliseconds")))
            }
            _ => Ok(()),
        }
    }
}

/// Parses a revision other than 0, which means any.
pub(super) fn revision(text: &str) -> Option<i64> {
    text.parse().ok().filter(|revision| *revision > 0)
}

impl Rule {
    /// Validates the rule.
    ///
    /// [`InvalidRule`] with the name of the field.
    /// [`InvalidRule`] names the field.
    pub fn check(&self) -> Result<(), Invalid> {
        self.requests.check().map_err(Invalid::Requests)?;
        if self.times == Some(0) {
            return Err(Invalid::Requests("times: must be at least 1".to_owned()));
        }
        if let Some(verbs) = self.fault.verbs()
            && !self.requests.may_be_any_of(verbs)
        {
            let wrong = format!("match.verbs: this fault happens to {} alone", verbs.join(", "));
            return Err(Invalid::Requests(wrong));
        }
        self.fault.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Rule, String> {
        let rule: Rule = serde_json::from_str(text).map_err(|error| error.to_string())?;
        rule.check().map_err(|error| error.to_string())?;
        Ok(rule)
    }

    #[test]
    fn errors_name_their_field() {
        for (text, expected) in [
            (r"{}", "missing field `fault`"),
            (r#"{"fault": {"slow": {}}}"#, "unknown variant `slow`, expected one of `latency`, `status`"),
            (r#"{"fault": {"latency": {}}}"#, "missing field `milliseconds`"),
            (r#"{"fault": {"latency": {"milliseconds": -1}}}"#, "invalid value: integer `-1`"),
            (r#"{"fault": {"latency": {"milliseconds": 3600001}}}"#, "more than 3600000 milliseconds"),
            (r#"{"fault": {"dropRequest": {"a": 1}}}"#, "unknown field `a`"),
            (r#"{"fault": {"dropRequest": {}}, "time": 1}"#, "unknown field `time`"),
            (r#"{"fault": {"dropRequest": {}}, "times": 0}"#, "times: must be at least 1"),
            (
                r#"{"fault": {"dropRequest": {}}, "match": {"verbs": ["read"]}}"#,
                "match.verbs: \"read\" is not one of",
            ),
            (r#"{"fault": {"cutWatch": {}}, "match": {"verbs": ["get"]}}"#, "happens to watch alone"),
            (r#"{"fault": {"staleReads": {}}, "match": {"verbs": ["update"]}}"#, "to get, list, watch alone"),
            (r#"{"fault": {"staleReads": {"resourceVersion": "0"}}}"#, "\"0\" is not a revision"),
            (r#"{"fault": {"status": {}}}"#, "fault.status: needs a code or a reason"),
        ] {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(expected), "{text}: {refused}");
        }
    }

    #[test]
    fn a_rule_is_written_as_it_was_read() {
        for text in [
            r#"{"fault":{"dropAnswer":{}}}"#,
            r#"{"match":{"verbs":["watch"],"apiGroup":"","resource":"pods"},"times":2,"fault":{"cutWatch":{"afterEvents":3,"clean":true}}}"#,
            r#"{"fault":{"status":{"code":429,"retryAfterSeconds":1}}}"#,
            r#"{"fault":{"staleReads":{"resourceVersion":"7"}}}"#,
        ] {
            assert_eq!(serde_json::to_string(&read(text).unwrap()).unwrap(), text);
        }
    }
}
