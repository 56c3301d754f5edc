//! Admission webhooks: the response of each path below `/admission/` to a review.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Returns the response to a review that was sent to this path:
///
/// - `allow`, `deny`, `warn`, `annotate`;
/// - `label/<key>`: adds a label with this key whose value lists the present labels; `count`: counts the calls in a label;
/// - `deepen/<levels>`: nests the data of the object to this depth;
/// - `break`: makes the data of the object a number; `misplace`: changes a missing field; `rename`: changes the namespace;
/// - `grant`: makes a role allow reading secrets; `overhead-of/<label>`: gives a pod with this label an overhead;
/// - `garbage`, `empty`, `stranger`, `patch`: is no response, or not one to this review.
pub(crate) fn respond(path: &str, review: &[u8]) -> Vec<u8> {
    let review: Value = serde_json::from_slice(review).expect("a review is JSON");
    let request = &review["request"];
    let how = path.trim_start_matches("/admission/");
    let mut response = json!({"uid": request["uid"], "allowed": how != "deny"});
    match how {
        "garbage" => return b"<html>".to_vec(),
        "empty" => return Vec::new(),
        "stranger" => response["uid"] = "somebody-elses".into(),
        "deny" => {
            let causes = json!([{"field": "data", "message": "too short"}]);
            response["status"] = json!({"code": 418, "reason": "Teapot", "message": "not today",
                "metadata": {"selfLink": "/pot", "resourceVersion": "7", "continue": "on", "remainingItemCount": 3,
                    "shardInfo": {"selector": "s"}},
                "details": {"name": "pot", "causes": causes}});
        }
        "warn" => response["warnings"] = json!(["are you sure?"]),
        "annotate" => response["auditAnnotations"] = json!({"seen": "yes"}),
        _ => {
            if let Some(patch) = patch(how, &request["object"]) {
                response["patchType"] = "JSONPatch".into();
                response["patch"] = STANDARD.encode(patch.to_string()).into();
            }
        }
    }
    json!({"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response})
        .to_string()
        .into_bytes()
}

fn patch(how: &str, object: &Value) -> Option<Value> {
    let metadata = &object["metadata"];
    let mut labels = metadata["labels"].as_object().cloned().unwrap_or_default();
    Some(match how.split_once('/').unwrap_or((how, "")) {
        ("label", key) => {
            let keys: Vec<&str> = labels.keys().filter(|keys| *keys != key).map(String::as_str).collect();
            let keys = format!("after-{}", keys.join("-"));
            labels.insert(key.to_owned(), keys.trim_end_matches('-').into());
            json!([{"op": "add", "path": "/metadata/labels", "value": labels}])
        }
        ("count", _) => {
            let count = labels.get("count").and_then(|count| count.as_str()?.parse().ok()).unwrap_or(0);
            labels.insert("count".to_owned(), (count + 1).to_string().into());
            json!([{"op": "add", "path": "/metadata/labels", "value": labels}])
        }
        ("deepen", levels) => {
            json!([{"op": "add", "path": "/data", "value": crate::conversion::nested(levels)}])
        }
        ("break", _) => json!([{"op": "add", "path": "/data", "value": 5}]),
        ("become", kind) => json!([{"op": "replace", "path": "/kind", "value": kind}]),
        ("misplace", _) => json!([{"op": "replace", "path": "/no/such/place", "value": 5}]),
        ("rename", _) => json!([{"op": "replace", "path": "/metadata/namespace", "value": "kube-system"}]),
        ("grant", _) => json!([{"op": "add", "path": "/rules", "value": [
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}]),
        ("overhead-of", label) if !labels.contains_key(label) => return None,
        ("overhead-of", _) => json!([{"op": "add", "path": "/spec/overhead", "value": {"cpu": "7"}}]),
        ("link", _) => json!([{"op": "add", "path": "/metadata/selfLink", "value": "/elsewhere"}]),
        ("manage", operation) => json!([{"op": "add", "path": "/metadata/managedFields", "value": [
            {"manager": "hook", "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]}]),
        ("patch", _) => json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]),
        _ => return None,
    })
}
