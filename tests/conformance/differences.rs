//! Steps whose response intentionally differs from the recorded one, with the reason.

/// Topic, step, reason.
pub const KNOWN: &[(&str, &str, &str)] = &[
    ("admission-webhook-calls", "a warning with quotes and control characters", CONTROL),
    ("admission-webhook-calls", "validating: no JSON", GO_TYPES),
    ("admission-webhook-calls", "validating: JSON of a list", GO_TYPES),
    ("admission-webhook-calls", "validating: JSON of a text", GO_TYPES),
    ("admission-webhook-calls", "validating: something behind the object", GO_TYPES),
    ("admission-webhook-calls", "validating: another kind", SCHEME),
    ("admission-webhook-calls", "validating: another kind of the group", SCHEME),
    ("admission-webhook-calls", "validating: a version that nobody knows", SCHEME),
    ("admission-webhook-calls", "validating: allowed is a text", GO_TYPES),
    ("admission-webhook-calls", "validating: warnings are a text", GO_TYPES),
    ("admission-webhook-calls", "validating: the response is a list", GO_TYPES),
    ("admission-webhook-calls", "validating: the patch is a number", GO_TYPES),
    ("admission-webhook-calls", "mutating: no JSON", GO_TYPES),
    ("admission-webhook-calls", "mutating: JSON of a list", GO_TYPES),
    ("admission-webhook-calls", "mutating: JSON of a text", GO_TYPES),
    ("admission-webhook-calls", "mutating: something behind the object", GO_TYPES),
    ("admission-webhook-calls", "mutating: another kind", SCHEME),
    ("admission-webhook-calls", "mutating: another kind of the group", SCHEME),
    ("admission-webhook-calls", "mutating: a version that nobody knows", SCHEME),
    ("admission-webhook-calls", "mutating: allowed is a text", GO_TYPES),
    ("admission-webhook-calls", "mutating: warnings are a text", GO_TYPES),
    ("admission-webhook-calls", "mutating: the response is a list", GO_TYPES),
    ("admission-webhook-calls", "mutating: the patch is a number", GO_TYPES),
    ("admission-webhook-calls", "patch: test that fails", PATCH),
    ("admission-webhook-calls", "patch: remove what is not there", PATCH),
    ("admission-webhook-calls", "patch: add below what is not there", PATCH),
    ("admission-webhook-calls", "patch: a pointer without a slash", PATCH),
    ("admission-webhook-calls", "patch: another operation", PATCH),
    ("admission-webhook-calls", "patch: no operation", PATCH),
    ("admission-webhook-calls", "patch: another kind", PATCH),
    ("admission-webhook-calls", "patch: another version", SCHEME),
    ("admission-webhook-calls", "patch: the whole by nothing", PATCH),
    ("admission-webhook-calls", "patch: beyond a list", PATCH),
    ("admission-webhook-calls", "patch: an update takes the name away", WORDS),
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
    ("builtin-rules", "daemonset ds: spec.updateStrategy.type is \" \"", STRUCT),
    ("builtin-rules", "deployment deploy: spec.strategy.type is \" \"", STRUCT),
    ("builtin-rules", "job: spec.completionMode is \"\"", STRUCT),
    ("builtin-rules", "job: spec.completionMode is absent", STRUCT),
    ("builtin-rules", "job: spec.podFailurePolicy.rules.0.onExitCodes is an empty map", EMPTY),
    ("builtin-rules", "pod claims: spec.resourceClaims is with a null element", STRUCT),
    ("builtin-rules", "pod: spec.containers.0.securityContext.privileged is the other", STRUCT),
    ("builtin-rules", "pod: spec.containers.0.securityContext.seccompProfile.type is \" \"", STRUCT),
    ("builtin-rules", "pod: spec.containers.0.securityContext.seccompProfile.type is absent", STRUCT),
    ("builtin-rules", "statefulset sts: spec.updateStrategy.type is \" \"", STRUCT),
    ("edges", "a kind of no group", SCHEME),
    ("edges", "a kind that is unknown", SCHEME),
    ("edges", "the backend's document as protobuf", DOCUMENT),
    ("edges", "the backend's document in YAML", DOCUMENT),
    ("edges", "a watch in YAML", FOLDING),
    ("edges", "numbers of a revision", RAW),
    ("edges", "numbers of a revision as they are read", RAW),
    ("policies-evaluated", "a variable that costs too much", LIMIT),
    ("policies-evaluated", "an object of another version is changed", VERSION),
    ("policies-evaluated", "an object of another version is patched", VERSION),
];

// docs/internals/adr/0013 describes each of these, docs/internals/adr/0002 the first.
const STATUS: &str = "a Status with a cause instead of plain text";
const SCHEME: &str = "the message does not name a line of upstream's source";
const GO_TYPES: &str = "the message does not name Go types";
const STRUCT: &str = "the message prints values with JSON names instead of Go fields";
const EMPTY: &str = "a missing list is printed as an empty one";
const PATCH: &str = "a failed operation has the message for patches of users";
const WORDS: &str = "a missing value is null, as in all other messages";
const CONTROL: &str = "a warning is shown without its control characters instead of omitted";
const DOCUMENT: &str = "documents of backends are cached and served in every form";
const RAW: &str = "numbers in raw data are parsed";
const FOLDING: &str = "long lines of YAML are not folded";
const LIMIT: &str = "the common budget is used up, so the expression that names the variable fails as well";
const VERSION: &str =
    "an object is changed in the version that the policy names, which upstream cannot convert back";

/// Returns the steps of a topic that differ.
pub fn steps_of(topic: &str) -> Vec<&'static str> {
    KNOWN.iter().filter(|(known, _, _)| *known == topic).map(|(_, step, _)| *step).collect()
}
