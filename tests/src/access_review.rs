//! A backend that authorizes users by name and authenticates tokens, as a webhook.

use serde_json::{Value, json};

/// Returns the response to a review: Secrets are denied to all users, everything else is allowed to alice, and there is no
/// opinion about other users. The version is that of the review.
pub(crate) fn respond(review: &[u8]) -> Value {
    let review: Value = serde_json::from_slice(review).expect("a review is JSON");
    let spec = &review["spec"];
    let status = match (spec["user"].as_str(), spec["resourceAttributes"]["resource"].as_str()) {
        (_, Some("secrets")) => json!({"allowed": false, "denied": true, "reason": "no secrets"}),
        (Some("alice"), _) => json!({"allowed": true, "reason": "she may"}),
        _ => json!({"allowed": false, "reason": "who is that?"}),
    };
    json!({"kind": review["kind"], "apiVersion": review["apiVersion"], "status": status})
}

/// Returns the response to a token review: `known-NAME` is a token of user NAME, in the group of externally known users.
pub(crate) fn respond_to_token(review: &[u8]) -> Value {
    let review: Value = serde_json::from_slice(review).expect("a review is JSON");
    let status = match review["spec"]["token"].as_str().unwrap_or_default().split_once('-') {
        Some(("known", name)) => json!({"authenticated": true, "user": {"username": name, "uid": "7",
            "groups": ["elsewhere", "system:portico:facades"], "extra": {"from": ["far"]}}}),
        _ => json!({"authenticated": false, "error": "who is that?"}),
    };
    json!({"kind": review["kind"], "apiVersion": review["apiVersion"], "status": status})
}
