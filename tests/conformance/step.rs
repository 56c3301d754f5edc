//! A recording: the requests of a topic in order, each with the response of a real kube-apiserver.
//!
//! One JSON value per line: the description of the topic, then the steps. Paths into bodies are dotted; a part of a path is the
//! name of a field (a dot in it is escaped by `\`), the index of an item, `[key=value]` for the items with
//! that value, or `*` for all.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Steps of a topic.
pub struct Recording {
    pub about: String,
    pub steps: Vec<Step>,
}

/// A request, and the compared parts of its response.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// Name of the step, which describes its purpose; unique in its topic.
    pub name: String,
    pub method: String,
    /// Path and query. `${var}` is replaced here and in all following fields.
    pub target: String,
    /// A user of the token file, `anonymous`, or any other text as a token.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Client certificate to present; without `as`, no token is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<String>,
    /// `backend`: the request goes to the backend of the fixture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Requests an upgrade, sends a text and reads it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Upgrade>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub headers: Map<String, Value>,
    /// Body sent as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Body sent unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// Body as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
    /// Variables for later steps: paths into the body, or `header:Name`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub save: BTreeMap<String, String>,
    /// Condition until which the request is repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// Status codes until one of which the request is repeated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status_in: Vec<u16>,
    /// The response is read as lines of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// Parts of the body that are not compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Parts of the body that are compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Parts of the body of which a digest is compared: documents are too large to record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub digest: Vec<String>,
    /// Lists whose order is not compared, each with the field that it is sorted by.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub sort: Map<String, Value>,
    /// Headers that are compared: their first value, or all values if the name ends in `[]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub show: Vec<String>,
    #[serde(skip_serializing_if = "Compare::is_body")]
    pub compare: Compare,
    /// Recorded response.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub answer: Value,
}

/// Compared part of the response, in addition to the headers of `show`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compare {
    /// Status and body.
    #[default]
    Body,
    /// Only the status.
    Status,
    /// No part: the step only prepares later ones.
    None,
}

impl Compare {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    fn is_body(&self) -> bool {
        *self == Self::Body
    }
}

/// Upgrade that a step requests.
#[derive(Clone, Deserialize, Serialize)]
pub struct Upgrade {
    pub protocol: String,
    pub send: String,
}

/// Condition that ends the repetition of a step.
#[derive(Clone, Deserialize, Serialize)]
pub struct Until {
    pub path: String,
    pub equals: Value,
    #[serde(default = "default_seconds")]
    pub seconds: u64,
}

/// Returns the default time limit of repetitions in seconds.
pub fn default_seconds() -> u64 {
    15
}

/// Amount of a stream to read.
#[derive(Clone, Deserialize, Serialize)]
pub struct Stream {
    #[serde(default = "one")]
    pub events: usize,
    #[serde(default = "five")]
    pub seconds: u64,
}

fn one() -> usize {
    1
}

fn five() -> u64 {
    5
}

#[derive(Deserialize, Serialize)]
struct Head {
    about: String,
}

/// Returns the folder of the recordings.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/recorded")
}

impl Recording {
    /// Reads the file of a topic.
    pub fn read(topic: &str) -> Self {
        let path = folder().join(format!("{topic}.jsonl"));
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut lines = text.lines();
        let head: Head = serde_json::from_str(lines.next().unwrap()).unwrap();
        let step = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{topic}: {error}: {line:.100}"))
        };
        Self { about: head.about, steps: lines.map(step).collect() }
    }

    /// Writes the file of a topic.
    pub fn write(&self, topic: &str) {
        let head = Head { about: self.about.clone() };
        let mut text = format!("{}\n", serde_json::to_string(&head).unwrap());
        for step in &self.steps {
            writeln!(text, "{}", serde_json::to_string(step).unwrap()).unwrap();
        }
        std::fs::write(folder().join(format!("{topic}.jsonl")), text).unwrap();
    }

    /// Returns true if a step uses the fixture's backend.
    pub fn needs_backend(&self) -> bool {
        let text = |step: &Step| serde_json::to_string(step).unwrap();
        self.steps.iter().any(|step| step.on.is_some() || text(step).contains("${backend_"))
    }
}
