//! A rule: which requests, how many of them, and what happens to them. Read strictly, and checked as a whole.

use serde::{Deserialize, Serialize};

use super::reasons;
use super::requests::Requests;

/// The longest latency, and the longest life of a watch that is to be cut: an hour.
const MAX_MILLISECONDS: u64 = 60 * 60 * 1000;

/// What a test asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Which requests; by default all requests for resources.
    #[serde(default, rename = "match", skip_serializing_if = "Requests::is_every")]
    pub requests: Requests,
    /// How many of them; by default all until the rule is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// What happens to them.
    pub fault: Fault,
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Fault {
    /// It is handled later.
    Latency {
        /// By so much.
        milliseconds: u64,
    },
    /// It is refused, as a server would.
    Status {
        /// That of the reason, if it is not given; one of the two must be.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<u16>,
        /// The usual one of the code, if it is not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// What kube-apiserver says, if it is not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// When to come back: `Retry-After`, and in the details.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_seconds: Option<u32>,
    },
    /// Its connection breaks, and nothing was done.
    DropRequest {},
    /// It is handled, and its connection breaks in the place of the answer.
    DropAnswer {},
    /// A watch breaks off.
    CutWatch {
        /// After so many events, bookmarks among them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_events: Option<u64>,
        /// After so long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_milliseconds: Option<u64>,
        /// It ends as at its timeout, rather than with its connection.
        #[serde(default)]
        clean: bool,
    },
    /// A watch ends with the event that its revision is too old.
    ExpireWatch {
        /// After so many events, bookmarks among them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_events: Option<u64>,
        /// After so long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_milliseconds: Option<u64>,
    },
    /// Gets and lists answer as of an earlier revision, and watches stand still.
    StaleReads {
        /// The revision; that of the moment in which the fault is set, if it is not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource_version: Option<String>,
    },
}

/// Why a rule is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Invalid {
    /// It can never meet a request.
    #[error("{0}")]
    Requests(String),
    /// What is to happen cannot.
    #[error("fault.{0}")]
    Fault(String),
}

impl Fault {
    /// Whether it is something that happens to a watch while it lasts.
    pub fn is_of_watches(&self) -> bool {
        matches!(self, Self::CutWatch { .. } | Self::ExpireWatch { .. } | Self::StaleReads { .. })
    }

    /// The verbs of requests that it can happen to; nothing for all.
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

/// A revision that is not "any".
pub(super) fn revision(text: &str) -> Option<i64> {
    text.parse().ok().filter(|revision| *revision > 0)
}

impl Rule {
    /// Whether it makes sense.
    ///
    /// # Errors
    /// [`Invalid`] names the field.
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
