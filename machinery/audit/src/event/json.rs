//! JSON encoding of an event, byte for byte like upstream's encoder.

use portico_gostd::time::Time;
use portico_machinery::UserInfo;

use super::{Event, ObjectReference, ResponseStatus};
use crate::raw_json::{push_compact, push_string};

/// First members of every event, omitted in elements of a list.
const TYPE_MEMBERS: &str = r#""kind":"Event","apiVersion":"audit.k8s.io/v1","#;
/// Typical size in bytes of an event without objects.
const TYPICAL_BYTES: usize = 1024;

/// Writer of the members of a JSON object, separated by commas.
struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> ObjectWriter<'a> {
    fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    /// Writes the name of the next member, which needs no escaping. The caller writes the value.
    fn name(&mut self, name: &'static str) -> &mut Vec<u8> {
        self.out.extend_from_slice(if std::mem::take(&mut self.first) { b"\"" } else { b",\"" });
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Writes the name of the next member, with escaping. The caller writes the value.
    fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        push_string(self.out, key);
        self.out.push(b':');
        self.out
    }

    fn text(&mut self, name: &'static str, value: &str) {
        push_string(self.name(name), value);
    }

    fn text_unless_empty(&mut self, name: &'static str, value: &str) {
        if !value.is_empty() {
            self.text(name, value);
        }
    }

    fn texts_unless_empty(&mut self, name: &'static str, values: &[String]) {
        if !values.is_empty() {
            push_strings(self.name(name), values);
        }
    }

    fn end(self) {
        self.out.push(b'}');
    }
}

impl Event {
    /// Encodes the event as JSON in one line, without a line break at the end.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let objects = [&self.request_object, &self.response_object];
        let objects: usize = objects.into_iter().flatten().map(|object| object.len()).sum();
        let mut out = Vec::with_capacity(TYPICAL_BYTES + objects);
        let mut members = ObjectWriter::begin(&mut out);
        members.out.extend_from_slice(TYPE_MEMBERS.as_bytes());
        self.push_request(&mut members);
        self.push_response(&mut members);
        members.end();
        out
    }

    /// Returns the part of an encoded event that follows its type, for an element of a list; `None` if the bytes are no event.
    #[must_use]
    pub fn without_type(json: &[u8]) -> Option<&[u8]> {
        json.strip_prefix(b"{")?.strip_prefix(TYPE_MEMBERS.as_bytes())
    }

    fn push_request(&self, members: &mut ObjectWriter<'_>) {
        members.text("level", self.level.as_str());
        members.text("auditID", &self.audit_id);
        members.text("stage", self.stage.as_str());
        members.text("requestURI", &self.request_uri);
        members.text("verb", &self.verb);
        push_user(members.name("user"), &self.user);
        if let Some(user) = &self.impersonated_user {
            push_user(members.name("impersonatedUser"), user);
        }
        if !self.impersonation_constraint.is_empty() {
            let mut metadata = ObjectWriter::begin(members.name("authenticationMetadata"));
            metadata.text("impersonationConstraint", &self.impersonation_constraint);
            metadata.end();
        }
        members.texts_unless_empty("sourceIPs", &self.source_ips);
        members.text_unless_empty("userAgent", &self.user_agent);
        if let Some(object) = &self.object_ref {
            push_reference(members.name("objectRef"), object);
        }
    }

    fn push_response(&self, members: &mut ObjectWriter<'_>) {
        if let Some(status) = &self.response_status {
            push_status(members.name("responseStatus"), status);
        }
        for (name, object) in
            [("requestObject", &self.request_object), ("responseObject", &self.response_object)]
        {
            if let Some(object) = object {
                push_compact(members.name(name), object);
            }
        }
        for (name, at) in
            [("requestReceivedTimestamp", self.request_received), ("stageTimestamp", self.stage_time)]
        {
            members.text(name, &Time::from(at).rfc3339_micro().unwrap_or_default());
        }
        if !self.annotations.is_empty() {
            let mut annotations = ObjectWriter::begin(members.name("annotations"));
            for (key, value) in &self.annotations {
                push_string(annotations.key(key), value);
            }
            annotations.end();
        }
    }
}

fn push_user(out: &mut Vec<u8>, user: &UserInfo) {
    let mut members = ObjectWriter::begin(out);
    members.text_unless_empty("username", &user.name);
    members.text_unless_empty("uid", &user.uid);
    members.texts_unless_empty("groups", &user.groups);
    if !user.extra.is_empty() {
        let mut extra = ObjectWriter::begin(members.name("extra"));
        for (key, values) in &user.extra {
            push_strings(extra.key(key), values);
        }
        extra.end();
    }
    members.end();
}

fn push_reference(out: &mut Vec<u8>, object: &ObjectReference) {
    let mut members = ObjectWriter::begin(out);
    members.text_unless_empty("resource", &object.resource);
    members.text_unless_empty("namespace", &object.namespace);
    members.text_unless_empty("name", &object.name);
    members.text_unless_empty("uid", &object.uid);
    members.text_unless_empty("apiGroup", &object.api_group);
    members.text_unless_empty("apiVersion", &object.api_version);
    members.text_unless_empty("resourceVersion", &object.resource_version);
    members.text_unless_empty("subresource", &object.subresource);
    members.end();
}

fn push_status(out: &mut Vec<u8>, status: &ResponseStatus) {
    let mut members = ObjectWriter::begin(out);
    members.name("metadata").extend_from_slice(b"{}");
    members.text_unless_empty("status", &status.status);
    members.text_unless_empty("message", &status.message);
    members.text_unless_empty("reason", &status.reason);
    if let Some(details) = &status.details {
        // Strings and numbers always serialize.
        let details = serde_json::to_vec(details).unwrap_or_else(|_| b"{}".to_vec());
        push_compact(members.name("details"), &details);
    }
    if status.code != 0 {
        members.name("code").extend_from_slice(status.code.to_string().as_bytes());
    }
    members.end();
}

fn push_strings(out: &mut Vec<u8>, values: &[String]) {
    out.push(b'[');
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_string(out, value);
    }
    out.push(b']');
}
