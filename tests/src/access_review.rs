//! A backend that decides what users may do, by their names.

use serde_json::{Value, json};

/// The answer to a review: Secrets are denied to everybody, anything else is allowed to alice, and there is no opinion about
/// others. The version is that of the question.
pub(crate) fn answer(review: &[u8]) -> Value {
    let review: Value = serde_json::from_slice(review).expect("a review is JSON");
    let spec = &review["spec"];
    let status = match (spec["user"].as_str(), spec["resourceAttributes"]["resource"].as_str()) {
        (_, Some("secrets")) => json!({"allowed": false, "denied": true, "reason": "no secrets"}),
        (Some("alice"), _) => json!({"allowed": true, "reason": "she may"}),
        _ => json!({"allowed": false, "reason": "who is that?"}),
    };
    json!({"kind": review["kind"], "apiVersion": review["apiVersion"], "status": status})
}
