//! A recording: a topic's requests, in order, each with what a real kube-apiserver answered.
//!
//! One JSON value a line: what the topic is about, then the steps. Paths into bodies are dotted; a part of one is the name of a
//! field (a dot in it is escaped by `\`), the index of an item, `[key=value]` for the items with that value, or `*` for all.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A topic's steps.
pub struct Recording {
    pub about: String,
    pub steps: Vec<Step>,
}

/// One request, and what of its answer counts.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// What the step shows; unique in its topic.
    pub name: String,
    pub method: String,
    /// Path and query. `${var}` is replaced here and in all that follows.
    pub target: String,
    /// A user of the token file, `anonymous`, or any other text as a token.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The client certificate that is presented; then there is no token unless `as` says one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<String>,
    /// `backend`: the request goes to the backend of the fixture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Asks for an upgrade, sends a text and reads it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Upgrade>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub headers: Map<String, Value>,
    /// Sent as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Sent as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// Bytes to send, as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
    /// Variables for later steps: paths into the body, or `header:Name`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub save: BTreeMap<String, String>,
    /// The request is repeated until this holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// The request is repeated until its status is one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status_in: Vec<u16>,
    /// The answer is read as lines of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// Parts of the body that do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// The parts of the body that count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Parts of the body of which a digest is compared: documents are too large to record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub digest: Vec<String>,
    /// Lists whose order does not count, each with the field that it is sorted by.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub sort: Map<String, Value>,
    /// Headers that count: their first value, or all values where the name ends in `[]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub show: Vec<String>,
    #[serde(skip_serializing_if = "Compare::is_body")]
    pub compare: Compare,
    /// The recorded answer.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub answer: Value,
}

/// What of the answer is compared, beside the headers of `show`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compare {
    /// Status and body.
    #[default]
    Body,
    /// The status.
    Status,
    /// Nothing: the step prepares others.
    None,
}

impl Compare {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    fn is_body(&self) -> bool {
        *self == Self::Body
    }
}

/// What is asked for by an upgrade.
#[derive(Clone, Deserialize, Serialize)]
pub struct Upgrade {
    pub protocol: String,
    pub send: String,
}

/// When a step is done.
#[derive(Clone, Deserialize, Serialize)]
pub struct Until {
    pub path: String,
    pub equals: Value,
    #[serde(default = "default_seconds")]
    pub seconds: u64,
}

/// How long a request is repeated by default.
pub fn default_seconds() -> u64 {
    15
}

/// How much of a stream is read.
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

/// Where the recordings are.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/recorded")
}

impl Recording {
    /// Reads a topic's file.
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

    /// Writes a topic's file.
    pub fn write(&self, topic: &str) {
        let head = Head { about: self.about.clone() };
        let mut text = format!("{}\n", serde_json::to_string(&head).unwrap());
        for step in &self.steps {
            writeln!(text, "{}", serde_json::to_string(step).unwrap()).unwrap();
        }
        std::fs::write(folder().join(format!("{topic}.jsonl")), text).unwrap();
    }

    /// Whether a step uses the fixture's backend.
    pub fn needs_backend(&self) -> bool {
        let text = |step: &Step| serde_json::to_string(step).unwrap();
        self.steps.iter().any(|step| step.on.is_some() || text(step).contains("${backend_"))
    }
}
