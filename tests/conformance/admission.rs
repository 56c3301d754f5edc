//! The admission webhooks of the recordings, whose responses steps configure.
//!
//! `PUT /admission/NAME` with `{"response": ...}` makes `POST /admission/NAME` respond to a review with that response; a missing
//! uid is that of the review, and a patch given as a list is encoded. `{"text": ..., "code": ..., "type": ...}` sets the complete
//! response. `GET /admission` returns the requests of received reviews, `DELETE /admission` deletes them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

/// Configured responses of webhooks, and the reviews that they received.
#[derive(Default)]
pub struct Webhooks {
    answers: Mutex<BTreeMap<String, Value>>,
    seen: Mutex<Vec<Value>>,
}

/// Status code, media type and body of a response.
pub type RawResponse = (u16, String, String);

impl Webhooks {
    /// Responds to a request for `/admission`, or for a webhook below it.
    pub fn respond(&self, method: &Method, name: Option<&str>, body: &[u8]) -> RawResponse {
        match (method, name) {
            (&Method::PUT, Some(name)) => {
                let how = serde_json::from_slice(body).unwrap();
                self.answers.lock().unwrap().insert(name.to_owned(), how);
                json_answer(&json!({}))
            }
            (_, Some(name)) => self.review(name, body),
            (&Method::DELETE, None) => {
                self.seen.lock().unwrap().clear();
                json_answer(&json!({}))
            }
            (_, None) => json_answer(&json!({"seen": *self.seen.lock().unwrap()})),
        }
    }

    fn review(&self, name: &str, body: &[u8]) -> RawResponse {
        let review: Value = serde_json::from_slice(body).unwrap();
        let version = &review["apiVersion"];
        let seen = json!({"webhook": name, "apiVersion": version, "request": review["request"]});
        self.seen.lock().unwrap().push(seen);
        let how = self.answers.lock().unwrap().get(name).cloned().unwrap_or_default();
        if let Some(text) = how["text"].as_str() {
            let code = how["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(200);
            let media_type = how["type"].as_str().unwrap_or("application/json");
            return (
                code,
                media_type.to_owned(),
                text.replace("$uid", review["request"]["uid"].as_str().unwrap()),
            );
        }
        let mut response = how["response"].clone();
        if let Some(fields) = response.as_object_mut() {
            fields.entry("uid").or_insert_with(|| review["request"]["uid"].clone());
        }
        if response["patch"].is_array() {
            response["patch"] = STANDARD.encode(response["patch"].to_string()).into();
        }
        json_answer(&json!({"kind": "AdmissionReview", "apiVersion": version, "response": response}))
    }
}

fn json_answer(value: &Value) -> RawResponse {
    (200, "application/json".to_owned(), value.to_string())
}
