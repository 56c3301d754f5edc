//! A conversion webhook of one custom resource: `spec.size` is a text in v1, `spec.replicas` a number in v2.

use serde::Deserialize;
use serde_json::{Value, json};

/// Returns the response to a review sent to `/convert`, `/convert/fail`, `/convert/rename` or `/convert/deepen/<levels>`.
pub(crate) fn respond(path: &str, review: &[u8]) -> Value {
    let mut reader = serde_json::Deserializer::from_slice(review);
    // Reviews of deep objects are accepted.
    reader.disable_recursion_limit();
    let review = Value::deserialize(&mut reader).expect("a review is JSON");
    let request = &review["request"];
    let failing = path.ends_with("/fail");
    let objects = request["objects"].as_array().into_iter().flatten();
    let converted = objects.map(|object| {
        let mut object = convert(object.clone(), &request["desiredAPIVersion"]);
        if path.ends_with("/rename") {
            object["metadata"]["name"] = "another".into();
        }
        if let Some((_, levels)) = path.split_once("/deepen/") {
            object["a"] = nested(levels);
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

/// Returns a value nested to this depth.
pub(crate) fn nested(levels: &str) -> Value {
    (0..levels.parse().expect("a number of levels")).fold(json!(1), |inner, _: usize| json!({"a": inner}))
}

fn convert(mut object: Value, wanted: &Value) -> Value {
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
