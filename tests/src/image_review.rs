//! A backend that reviews images by their names.

use serde_json::{Value, json};

/// Returns the response to a review: images with the tags `denied` (with a reason) and `unwanted` (without) are denied; others
/// are allowed, and those with the tag `noted` annotated.
pub(crate) fn respond(review: &[u8]) -> Value {
    let review: Value = serde_json::from_slice(review).expect("a review is JSON");
    let containers = review["spec"]["containers"].as_array().into_iter().flatten();
    let images: Vec<&str> = containers.filter_map(|container| container["image"].as_str()).collect();
    let any = |end: &str| images.iter().any(|image| image.ends_with(end));
    let mut status = json!({"allowed": !any(":denied") && !any(":unwanted")});
    if any(":denied") {
        status["reason"] = "it is too old".into();
    }
    if any(":noted") {
        status["auditAnnotations"] = json!({"seen": "yes"});
    }
    json!({"kind": review["kind"], "apiVersion": review["apiVersion"], "status": status})
}
