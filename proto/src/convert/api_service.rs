//! Conversion between APIService messages and JSON objects of `apiregistration.k8s.io/v1`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_gostd::time::{Layout, Time};
use portico_machinery::object::OwnerReference as Owner;
use portico_machinery::{Cursor, GroupVersionKind, Object};
use prost_types::Timestamp;

use crate::apiregistration as pb;

fn kind() -> GroupVersionKind {
    GroupVersionKind {
        group: "apiregistration.k8s.io".into(),
        version: "v1".into(),
        kind: "APIService".into(),
    }
}

/// Converts a message to an object. Omits unset and zero fields; invalid values are left to validation.
#[must_use]
pub fn api_service_to_object(message: &pb::ApiService) -> Object {
    let mut object = Object::new(&kind());
    if let Some(metadata) = &message.metadata {
        set_metadata(&mut object, metadata);
    }
    if let Some(spec) = &message.spec {
        set_spec(&mut object, spec);
    }
    if let Some(status) = &message.status {
        let conditions: Vec<_> = status.conditions.iter().map(condition_to_json).collect();
        object.set(&["status", "conditions"], conditions);
    }
    object
}

fn set_text(object: &mut Object, path: &[&str], text: &str) {
    if !text.is_empty() {
        object.set(path, text);
    }
}

fn set_metadata(object: &mut Object, m: &pb::ObjectMeta) {
    set_text(object, &["metadata", "name"], &m.name);
    set_text(object, &["metadata", "uid"], &m.uid);
    set_text(object, &["metadata", "resourceVersion"], &m.resource_version);
    for (field, time) in
        [("creationTimestamp", &m.creation_timestamp), ("deletionTimestamp", &m.deletion_timestamp)]
    {
        if let Some(time) = time {
            object.set(&["metadata", field], rfc3339(time));
        }
    }
    for (field, map) in [("labels", &m.labels), ("annotations", &m.annotations)] {
        if !map.is_empty() {
            object.set(&["metadata", field], map);
        }
    }
    if !m.finalizers.is_empty() {
        object.set(&["metadata", "finalizers"], &m.finalizers);
    }
    if !m.owner_references.is_empty() {
        let owners: Vec<_> = m.owner_references.iter().map(owner_to_json).collect();
        object.set(&["metadata", "ownerReferences"], owners);
    }
}

fn owner_to_json(o: &pb::OwnerReference) -> Owner {
    Owner {
        api_version: o.api_version.clone(),
        kind: o.kind.clone(),
        name: o.name.clone(),
        uid: o.uid.clone(),
        controller: o.controller,
        block_owner_deletion: o.block_owner_deletion,
    }
}

fn set_spec(object: &mut Object, spec: &pb::ApiServiceSpec) {
    if let Some(service) = &spec.service {
        object.set(&["spec", "service", "namespace"], &service.namespace);
        object.set(&["spec", "service", "name"], &service.name);
        if let Some(port) = service.port {
            object.set(&["spec", "service", "port"], port);
        }
    }
    set_text(object, &["spec", "group"], &spec.group);
    set_text(object, &["spec", "version"], &spec.version);
    if spec.insecure_skip_tls_verify {
        object.set(&["spec", "insecureSkipTLSVerify"], true);
    }
    set_text(object, &["spec", "caBundle"], &STANDARD.encode(&spec.ca_bundle));
    object.set(&["spec", "groupPriorityMinimum"], spec.group_priority_minimum);
    object.set(&["spec", "versionPriority"], spec.version_priority);
}

/// JSON of a condition, with the fields in upstream's order.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct ConditionJson<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_transition_time: Option<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
}

fn condition_to_json(c: &pb::ApiServiceCondition) -> ConditionJson<'_> {
    ConditionJson {
        kind: &c.r#type,
        status: &c.status,
        last_transition_time: c.last_transition_time.as_ref().map(rfc3339),
        reason: &c.reason,
        message: &c.message,
    }
}

fn rfc3339(time: &Timestamp) -> String {
    Time::unix(time.seconds, time.nanos.into()).to_string()
}

fn timestamp(cursor: &Cursor<'_>) -> Option<Timestamp> {
    let time = Time::parse(Layout::Rfc3339, cursor.opt_str()?).ok()?;
    Some(Timestamp { seconds: time.seconds, nanos: time.nanos.cast_signed() })
}

/// Converts a stored object to a message.
#[must_use]
pub fn api_service_from_object(object: &Object) -> pb::ApiService {
    let conditions =
        object.at(&["status", "conditions"]).items().map(|c| condition_from_cursor(&c)).collect();
    pb::ApiService {
        metadata: Some(metadata_from_object(object)),
        spec: Some(spec_from_cursor(&object.at(&["spec"]))),
        status: Some(pb::ApiServiceStatus { conditions }),
    }
}

fn metadata_from_object(object: &Object) -> pb::ObjectMeta {
    let m = object.metadata();
    let map =
        |field: &str| m.field(field).entries().map(|(k, v)| (k.to_owned(), v.str().to_owned())).collect();
    pb::ObjectMeta {
        name: object.name().to_owned(),
        uid: object.uid().to_owned(),
        resource_version: object.resource_version().to_owned(),
        creation_timestamp: timestamp(&m.field("creationTimestamp")),
        deletion_timestamp: timestamp(&m.field("deletionTimestamp")),
        labels: map("labels"),
        annotations: map("annotations"),
        finalizers: object.finalizers().into_iter().map(str::to_owned).collect(),
        owner_references: object
            .owner_references()
            .into_iter()
            .map(|o| pb::OwnerReference {
                api_version: o.api_version,
                kind: o.kind,
                name: o.name,
                uid: o.uid,
                controller: o.controller,
                block_owner_deletion: o.block_owner_deletion,
            })
            .collect(),
    }
}

fn spec_from_cursor(spec: &Cursor<'_>) -> pb::ApiServiceSpec {
    let int = |c: Cursor<'_>| c.i64().and_then(|n| i32::try_from(n).ok());
    let service = spec.field("service");
    pb::ApiServiceSpec {
        service: service.is_present().then(|| pb::ServiceReference {
            namespace: service.field("namespace").str().to_owned(),
            name: service.field("name").str().to_owned(),
            port: int(service.field("port")),
        }),
        group: spec.field("group").str().to_owned(),
        version: spec.field("version").str().to_owned(),
        insecure_skip_tls_verify: spec.field("insecureSkipTLSVerify").bool(),
        ca_bundle: STANDARD.decode(spec.field("caBundle").str()).unwrap_or_default(),
        group_priority_minimum: int(spec.field("groupPriorityMinimum")).unwrap_or(0),
        version_priority: int(spec.field("versionPriority")).unwrap_or(0),
    }
}

fn condition_from_cursor(c: &Cursor<'_>) -> pb::ApiServiceCondition {
    pb::ApiServiceCondition {
        r#type: c.field("type").str().to_owned(),
        status: c.field("status").str().to_owned(),
        last_transition_time: timestamp(&c.field("lastTransitionTime")),
        reason: c.field("reason").str().to_owned(),
        message: c.field("message").str().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_round_trips_through_the_typed_messages() {
        let json = concat!(
            r#"{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1","metadata":{"name":"v1.g","uid":"u","#,
            r#""resourceVersion":"5","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"a":"b"},"finalizers":["x/y"]},"#,
            r#""spec":{"service":{"namespace":"n","name":"s","port":443},"group":"g","version":"v1","caBundle":"Zm9v","#,
            r#""groupPriorityMinimum":1,"versionPriority":2},"status":{"conditions":[{"type":"Available","#,
            r#""status":"True","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"Passed"}]}}"#
        );
        let object = Object::from_json(json.as_bytes()).unwrap();
        let message = api_service_from_object(&object);
        assert_eq!(String::from_utf8(api_service_to_object(&message).to_json()).unwrap(), json);
    }
}
