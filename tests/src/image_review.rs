//! A backend that decides about images: what each image is to it.

use serde_json::{Value, json};

/// The answer to a review: images whose names end like that are denied, with a reason or without; others are allowed, and those
/// that are `noted` noted.
pub(crate) fn answer(review: &[u8]) -> Value {
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
