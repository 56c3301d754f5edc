//! A backend that decides what users may do, by their names, and knows whose tokens are.

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

/// The answer to a review of a token: `known-NAME` is that of a user, in the group of those who are known elsewhere.
pub(crate) fn token(review: &[u8]) -> Value {
    let review: Value = serde_json::from_slice(review).expect("a review is JSON");
    let status = match review["spec"]["token"].as_str().unwrap_or_default().split_once('-') {
        Some(("known", name)) => json!({"authenticated": true, "user": {"username": name, "uid": "7",
            "groups": ["elsewhere", "system:portico:facades"], "extra": {"from": ["far"]}}}),
        _ => json!({"authenticated": false, "error": "who is that?"}),
    };
    json!({"kind": review["kind"], "apiVersion": review["apiVersion"], "status": status})
}
