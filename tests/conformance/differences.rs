//! Steps whose answer differs from the recorded one, each with the reason why that is right.

/// Topic, step, reason.
pub const KNOWN: &[(&str, &str, &str)] = &[
    ("aggregation-availability", "an unavailable version answers 503", STATUS),
    ("aggregation-availability", "a resource of an unavailable version answers 503", STATUS),
    ("aggregation-availability", "a write to an unavailable version answers 503", STATUS),
    ("aggregation-availability", "nothing passes while discovery fails", STATUS),
    ("aggregation-availability", "no request passes over an untrusted connection", STATUS),
    ("aggregation-proxy", "a redirect is not passed to the client", STATUS),
    ("aggregation-proxy", "a connection dropped by the backend", STATUS),
    ("aggregation-proxy", "an upgrade that the backend ignores", STATUS),
    ("apiservice", "request to the unavailable version", STATUS),
    ("apiservice", "request below the unavailable version", STATUS),
    ("apiservice", "refuse the wrong kind", SCHEME),
    ("edges", "a kind of no group", SCHEME),
    ("edges", "a kind that is unknown", SCHEME),
    ("edges", "the backend's document as protobuf", DOCUMENT),
    ("edges", "the backend's document in YAML", DOCUMENT),
    ("edges", "a watch in YAML", "long lines of YAML are not folded (docs/adr/0013)"),
    ("edges", "numbers of a revision", RAW),
    ("edges", "numbers of a revision as they are read", RAW),
    (
        "endpoints",
        "every answer carries an audit id and the flow it was put in",
        "priority and fairness is not built yet",
    ),
];

const STATUS: &str = "a Status that names the cause, instead of plain text (docs/adr/0002)";

const SCHEME: &str = "the message does not name a line of upstream's source (docs/adr/0013)";
const DOCUMENT: &str = "documents of backends are kept, and served in each form (docs/adr/0013)";
const RAW: &str = "numbers in raw data are numbers, not texts (docs/adr/0013)";

/// The steps of a topic that are known to differ.
pub fn of(topic: &str) -> Vec<&'static str> {
    KNOWN.iter().filter(|(known, _, _)| *known == topic).map(|(_, step, _)| *step).collect()
}
