//! Priority level: its share of the server's seats, lending and borrowing, and its behavior when all seats are taken.

use super::EXEMPT;
use crate::object::Object;

/// Content of a PriorityLevelConfiguration object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorityLevel {
    /// Name of the priority level.
    pub name: String,
    /// UID; empty for a mandatory level without an object.
    pub uid: String,
    /// `nominalConcurrencyShares`
    pub shares: u32,
    /// `lendablePercent`
    pub lendable_percent: u32,
    /// `borrowingLimitPercent`; `None` for no limit.
    pub borrowing_limit_percent: Option<u32>,
    /// Handling of requests without a free seat.
    pub response: LimitResponse,
}

/// Handling of requests without a free seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitResponse {
    /// Requests are executed without a limit.
    Exempt,
    /// Requests are rejected immediately.
    Reject,
    /// Requests wait in queues.
    Queue(Queuing),
}

/// Queue settings of a priority level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queuing {
    /// Number of queues.
    pub queues: u32,
    /// Number of queues that one flow can use.
    pub hand_size: u32,
    /// Maximum number of requests in one queue.
    pub queue_length_limit: u32,
}

/// Error for a priority level that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPriorityLevel {
    /// Type and content do not match.
    #[error("broken union structure at the top")]
    Union,
    /// Limit response and queue settings do not match.
    #[error("broken union structure for limit response")]
    LimitResponse,
    /// Only the level named `exempt` may have the type Exempt, and vice versa.
    #[error("non-alignment between name and type")]
    Name,
}

impl PriorityLevel {
    /// Parses an object.
    ///
    /// # Errors
    /// [`InvalidPriorityLevel`] if the object is inconsistent.
    pub fn read(object: &Object) -> Result<Self, InvalidPriorityLevel> {
        let spec = object.at(&["spec"]);
        let (limited, exempt) = (spec.field("limited"), spec.field("exempt"));
        let is_exempt = spec.field("type").str() == "Exempt";
        if limited.is_present() == is_exempt || exempt.is_present() != is_exempt {
            return Err(InvalidPriorityLevel::Union);
        }
        if is_exempt != (object.name() == EXEMPT) {
            return Err(InvalidPriorityLevel::Name);
        }
        let share = if is_exempt { &exempt } else { &limited };
        let number = |name| share.field(name).i64().and_then(|n| u32::try_from(n).ok());
        let response = limited.field("limitResponse");
        let queuing = response.field("queuing");
        if !is_exempt && (response.field("type").str() == "Reject") == queuing.is_present() {
            return Err(InvalidPriorityLevel::LimitResponse);
        }
        let of_queues = |name| queuing.field(name).i64().and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
        Ok(Self {
            name: object.name().to_owned(),
            uid: object.uid().to_owned(),
            shares: number("nominalConcurrencyShares").unwrap_or(0),
            lendable_percent: number("lendablePercent").unwrap_or(0),
            borrowing_limit_percent: number("borrowingLimitPercent"),
            response: match (is_exempt, queuing.is_present()) {
                (true, _) => LimitResponse::Exempt,
                (false, false) => LimitResponse::Reject,
                (false, true) => LimitResponse::Queue(Queuing {
                    queues: of_queues("queues"),
                    hand_size: of_queues("handSize"),
                    queue_length_limit: of_queues("queueLengthLimit"),
                }),
            },
        })
    }

    /// True if the level has no limits.
    #[must_use]
    pub fn is_exempt(&self) -> bool {
        self.response == LimitResponse::Exempt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, spec: &str) -> Result<PriorityLevel, InvalidPriorityLevel> {
        let json = format!(r#"{{"metadata":{{"name":"{name}","uid":"u"}},"spec":{spec}}}"#);
        PriorityLevel::read(&Object::from_json(json.as_bytes()).unwrap())
    }

    #[test]
    fn levels_parse_their_limit_response() {
        let queues = r#"{"type":"Limited","limited":{"nominalConcurrencyShares":40,"lendablePercent":50,
            "limitResponse":{"type":"Queue","queuing":{"queues":128,"handSize":6,"queueLengthLimit":50}}}}"#;
        let level = read("workload-high", queues).unwrap();
        assert_eq!((level.shares, level.lendable_percent, level.borrowing_limit_percent), (40, 50, None));
        let queuing = Queuing { queues: 128, hand_size: 6, queue_length_limit: 50 };
        assert_eq!(level.response, LimitResponse::Queue(queuing));
        let rejects = r#"{"type":"Limited","limited":{"nominalConcurrencyShares":5,"borrowingLimitPercent":0,
            "limitResponse":{"type":"Reject"}}}"#;
        let level = read("catch-all", rejects).unwrap();
        assert_eq!((level.response, level.borrowing_limit_percent), (LimitResponse::Reject, Some(0)));
        let exempt = read("exempt", r#"{"type":"Exempt","exempt":{"lendablePercent":10}}"#).unwrap();
        assert!(exempt.is_exempt() && exempt.lendable_percent == 10);
    }

    #[test]
    fn inconsistent_levels_are_rejected() {
        let cases = [
            ("a", r#"{"type":"Limited"}"#, InvalidPriorityLevel::Union),
            ("exempt", r#"{"type":"Exempt"}"#, InvalidPriorityLevel::Union),
            ("a", r#"{"type":"Exempt","exempt":{}}"#, InvalidPriorityLevel::Name),
            (
                "a",
                r#"{"type":"Limited","limited":{"limitResponse":{"type":"Queue"}}}"#,
                InvalidPriorityLevel::LimitResponse,
            ),
        ];
        for (name, spec, broken) in cases {
            assert_eq!(read(name, spec), Err(broken), "{spec}");
        }
    }
}
