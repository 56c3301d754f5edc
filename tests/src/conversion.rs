//! A conversion webhook of one custom resource: `spec.size` is a text in v1, `spec.replicas` a number in v2.

use serde_json::{Value, json};

/// The answer to a review that was sent to this path: `/convert`, `/convert/fail` or `/convert/rename`.
pub(crate) fn answer(path: &str, review: &[u8]) -> Value {
    let review: Value = serde_json::from_slice(review).expect("a review is JSON");
    let request = &review["request"];
    let failing = path.ends_with("/fail");
    let objects = request["objects"].as_array().into_iter().flatten();
    let converted = objects.map(|object| {
        let mut object = converted(object.clone(), &request["desiredAPIVersion"]);
        if path.ends_with("/rename") {
            object["metadata"]["name"] = "another".into();
        }
        object
    });
    let converted: Vec<Value> = if failing { Vec::new() } else { converted.collect() };
    let result = if failing {
        json!({"status": "Failure", "message": "not in the mood"})
    } else {
        json!({"status": "Success"})
    };
    json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview",
        "response": {"uid": request["uid"], "result": result, "convertedObjects": converted}})
}

fn converted(mut object: Value, wanted: &Value) -> Value {
    let from = std::mem::replace(&mut object["apiVersion"], wanted.clone());
    let from = from.as_str().and_then(|text| text.rsplit('/').next()).unwrap_or_default().to_owned();
    object["metadata"]["labels"]["from"] = from.into();
    object["metadata"]["generation"] = 99.into();
    if let Some(spec) = object["spec"].as_object_mut() {
        if let Some(size) = spec.remove("size") {
            spec.insert("replicas".to_owned(), size.as_str().and_then(|s| s.parse::<i64>().ok()).into());
        } else if let Some(replicas) = spec.remove("replicas") {
            spec.insert("size".to_owned(), replicas.to_string().into());
        }
    }
    object
}
