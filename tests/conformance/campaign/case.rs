//! A case: requests for one object, which is a recorded one with a few changes.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::corpus::{Base, Corpus};
use super::custom;
use super::further::Followup;
use super::mutate::{Change, Mutation, Part};
use super::protobuf::{self, Damage, MEDIA_TYPE};
use super::schemas::Schemas;
use crate::step::Step;

/// Placeholder for the name of the case.
pub(super) const NAME: &str = "CASE-NAME";

/// Write request with the changed object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteRequest {
    Create,
    Put,
    PutStatus,
    Merge,
    Strategic,
    JsonPatch,
    Apply,
    ApplyTwice,
    /// POST as protobuf.
    Protobuf,
    /// PUT as protobuf.
    ProtobufPut,
}

const WRITE_REQUESTS: [WriteRequest; 15] = [
    WriteRequest::Create,
    WriteRequest::Create,
    WriteRequest::Create,
    WriteRequest::Create,
    WriteRequest::Put,
    WriteRequest::Put,
    WriteRequest::PutStatus,
    WriteRequest::Merge,
    WriteRequest::Strategic,
    WriteRequest::JsonPatch,
    WriteRequest::Apply,
    WriteRequest::ApplyTwice,
    WriteRequest::Protobuf,
    WriteRequest::Protobuf,
    WriteRequest::ProtobufPut,
];
/// Queries with their frequency: most requests have none.
const QUERIES: [&str; 14] = [
    "",
    "",
    "",
    "",
    "",
    "",
    "fieldValidation=Strict",
    "fieldValidation=Strict",
    "fieldValidation=Ignore",
    "fieldValidation=Warn",
    "dryRun=All",
    "fieldManager=m",
    "dryRun=None",
    "fieldValidation=strict",
];
/// Query of a dry run.
const DRY_RUN: &str = "dryRun=All";
const ACCEPTS: [&str; 14] = [
    "application/json",
    "application/json",
    "application/json",
    "application/json",
    MEDIA_TYPE,
    MEDIA_TYPE,
    "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1",
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
    "application/vnd.kubernetes.protobuf;q=0.5,application/json;q=0.9",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/yaml",
    "text/plain",
    "*/*",
];

/// Media type of a table in JSON.
pub(super) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// Requests for one object; its name is set when they are sent.
#[derive(Clone)]
pub struct Case {
    collection: String,
    kind: String,
    base: Value,
    mutations: Vec<Mutation>,
    sent: WriteRequest,
    query: &'static str,
    /// Media type of reads of the object.
    accept: &'static str,
    /// Media type of the response to the write.
    write_accept: &'static str,
    /// Damage to the bytes of a protobuf body.
    damage: Option<Damage>,
    selected: Option<String>,
    /// Further requests for the object.
    followup: Option<Followup>,
    /// True if all writes are dry runs.
    is_dry_run: bool,
}

/// Generator of cases.
pub struct CaseGenerator<'a> {
    pub corpus: &'a Corpus,
    pub schemas: &'a Schemas,
}

impl CaseGenerator<'_> {
    pub fn case(&self, random: &mut StdRng) -> Case {
        let of_kind = self.corpus.bases.choose(random).unwrap();
        let chosen = of_kind.choose(random).unwrap();
        let Base { collection, kind, body } = chosen;
        let mut base = body.clone();
        base["metadata"]["name"] = NAME.into();
        let (mut mutations, mut changed) = (Vec::new(), base.clone());
        for _ in 0..*[0, 1, 1, 1, 2, 2, 3].choose(random).unwrap() {
            let mutation = Mutation::random(&changed, self.corpus, self.schemas, random);
            mutation.apply(&mut changed);
            mutations.push(mutation);
        }
        let selected = random.random_ratio(1, 6).then(|| {
            let selectors = [
                "fieldSelector=metadata.name%3Dx",
                "labelSelector=a%20in%20(b)",
                "labelSelector=%21%21",
                "limit=1",
                "fieldSelector=spec.x%3D1",
                "limit=-1",
                "resourceVersion=x",
                "resourceVersionMatch=Exact",
            ];
            (*selectors.choose(random).unwrap()).to_owned()
        });
        let (mut sent, mut query) =
            (*WRITE_REQUESTS.choose(random).unwrap(), *QUERIES.choose(random).unwrap());
        if chosen.needs_dry_run() {
            (sent, query) = (
                if matches!(sent, WriteRequest::Apply | WriteRequest::Protobuf) {
                    sent
                } else {
                    WriteRequest::Create
                },
                DRY_RUN,
            );
        }
        // kube-apiserver panics on a custom resource in protobuf.
        if kind == custom::KIND && matches!(sent, WriteRequest::Protobuf | WriteRequest::ProtobufPut) {
            sent = WriteRequest::Create;
        }
        let as_protobuf = matches!(sent, WriteRequest::Protobuf | WriteRequest::ProtobufPut);
        Case {
            collection: collection.clone(),
            kind: kind.clone(),
            base,
            mutations,
            sent,
            query,
            accept: ACCEPTS.choose(random).unwrap(),
            write_accept: if random.random_ratio(1, 5) {
                ACCEPTS.choose(random).unwrap()
            } else {
                ACCEPTS[0]
            },
            damage: (as_protobuf && random.random_ratio(2, 3)).then(|| Damage::random(random)),
            selected,
            // Pages need objects that exist.
            followup: Followup::random(collection, random)
                .filter(|further| !(chosen.needs_dry_run() && matches!(further, Followup::Pages(..)))),
            is_dry_run: chosen.needs_dry_run(),
        }
    }
}

impl Case {
    /// Returns a case that reads an unchanged recorded object as a table in every form.
    pub fn of_table(base: &Base) -> Self {
        let mut body = base.body.clone();
        body["metadata"]["name"] = NAME.into();
        Self {
            collection: base.collection.clone(),
            kind: base.kind.clone(),
            base: body,
            mutations: Vec::new(),
            sent: WriteRequest::Create,
            query: if base.needs_dry_run() { DRY_RUN } else { "" },
            accept: ACCEPTS[0],
            write_accept: TABLE,
            damage: None,
            selected: None,
            followup: Some(Followup::Tables),
            is_dry_run: base.needs_dry_run(),
        }
    }

    /// Returns a short description of the case.
    pub fn about(&self) -> String {
        format!("{} {:?}", self.kind, self.sent)
    }

    /// Returns the write request.
    pub fn write_request(&self) -> String {
        format!("{:?}", self.sent)
    }

    /// Returns reduced cases.
    pub fn reduced(&self) -> Vec<Self> {
        let mut smaller: Vec<Self> = (0..self.mutations.len())
            .map(|left_out| {
                let mut mutations = self.mutations.clone();
                mutations.remove(left_out);
                Self { mutations, ..self.clone() }
            })
            .collect();
        if !self.query.is_empty() && !self.is_dry_run {
            smaller.push(Self { query: "", ..self.clone() });
        }
        if self.accept != ACCEPTS[0] {
            smaller.push(Self { accept: ACCEPTS[0], ..self.clone() });
        }
        if self.write_accept != ACCEPTS[0] {
            smaller.push(Self { write_accept: ACCEPTS[0], ..self.clone() });
        }
        if self.damage.is_some() {
            smaller.push(Self { damage: None, ..self.clone() });
        }
        if self.followup.is_some() {
            smaller.push(Self { followup: None, ..self.clone() });
        }
        if self.selected.is_some() {
            smaller.push(Self { selected: None, ..self.clone() });
        }
        // Fields of the object that no change affects.
        for part in ["spec", "data", "rules", "template"] {
            let Some(fields) = self.base.get(part).and_then(Value::as_object) else { continue };
            for field in fields.keys() {
                let mut base = self.base.clone();
                base[part].as_object_mut().unwrap().remove(field);
                smaller.push(Self { base, ..self.clone() });
            }
        }
        smaller
    }

    fn changed(&self) -> Value {
        let mut changed = self.base.clone();
        self.mutations.iter().for_each(|mutation| mutation.apply(&mut changed));
        changed
    }

    /// Returns the requests, for an object of this name.
    pub fn steps(&self, name: &str) -> Vec<Step> {
        let object = format!("{}/{NAME}", self.collection);
        let mut steps = Vec::new();
        let is_first =
            matches!(self.sent, WriteRequest::Create | WriteRequest::ApplyTwice | WriteRequest::Protobuf)
                || self.is_dry_run;
        if !is_first {
            steps.push(step("create", "POST", &self.collection, "", Some(self.base.clone())));
        }
        let changed = self.changed();
        let patch = |media: &str, body: Value| Step {
            content_type: Some(media.to_owned()),
            ..step("patch", "PATCH", &object, self.query, Some(body))
        };
        let apply = |body: Value| {
            let query =
                format!("fieldManager=campaign&{}", self.query.replace("fieldManager=m", "force=true"));
            Step {
                content_type: Some("application/apply-patch+yaml".to_owned()),
                ..step("apply", "PATCH", &object, query.trim_end_matches('&'), Some(body))
            }
        };
        match self.sent {
            WriteRequest::Create => {
                steps.push(step("create", "POST", &self.collection, self.query, Some(changed)))
            }
            WriteRequest::Put => steps.push(step("put", "PUT", &object, self.query, Some(changed))),
            WriteRequest::PutStatus => {
                steps.push(step("put status", "PUT", &format!("{object}/status"), self.query, Some(changed)));
            }
            WriteRequest::Merge => steps.push(patch("application/merge-patch+json", self.partial())),
            WriteRequest::Strategic => {
                steps.push(patch("application/strategic-merge-patch+json", self.partial()))
            }
            WriteRequest::JsonPatch => steps.push(patch("application/json-patch+json", self.json_patch())),
            WriteRequest::Apply => steps.push(apply(changed)),
            WriteRequest::ApplyTwice => steps.extend([apply(self.base.clone()), apply(changed)]),
            WriteRequest::Protobuf => steps.push(self.in_protobuf("POST", &self.collection, &changed, name)),
            WriteRequest::ProtobufPut => steps.push(self.in_protobuf("PUT", &object, &changed, name)),
        }
        if let Some(last) = steps.last_mut() {
            last.accept = Some(self.write_accept.to_owned());
        }
        steps.push(Step { accept: Some(self.accept.to_owned()), ..step("get", "GET", &object, "", None) });
        if let Some(selected) = &self.selected {
            steps.push(step(
                "list",
                "GET",
                &self.collection,
                &format!("{selected}&fieldSelector=metadata.name%3Dnone"),
                None,
            ));
        }
        if let Some(further) = &self.followup {
            steps.extend(further.steps(&self.collection, NAME, &self.base));
        }
        steps.push(step("delete", "DELETE", &object, "gracePeriodSeconds=0", None));
        // Removes finalizers that prevent the deletion.
        let free = json!({"metadata": {"finalizers": null}});
        steps.push(Step {
            content_type: Some("application/merge-patch+json".to_owned()),
            ..step("free", "PATCH", &object, "", Some(free))
        });
        for (at, step) in steps.iter_mut().enumerate() {
            step.name = format!("{name} {} {at}", step.name);
            step.target = step.target.replace(NAME, name);
            step.body = step.body.take().map(|body| with_name(body, name));
        }
        steps
    }

    /// Returns a write in protobuf: of the changed object, or, if it does not fit its kind, of the recorded object; for a
    /// kind without protobuf, the JSON is sent with this media type.
    fn in_protobuf(&self, method: &str, target: &str, changed: &Value, name: &str) -> Step {
        let sealed = |object: &Value| protobuf::encode(&with_name(object.clone(), name));
        let whole = sealed(changed)
            .or_else(|| sealed(&self.base))
            .unwrap_or_else(|| with_name(changed.clone(), name).to_string().into_bytes());
        let bytes = match self.damage {
            Some(damage) => damage.apply(whole),
            None => whole,
        };
        Step {
            content_type: Some(MEDIA_TYPE.to_owned()),
            bytes: Some(BASE64_STANDARD.encode(bytes)),
            ..step("protobuf", method, target, self.query, None)
        }
    }

    /// Returns the changed top-level fields after all changes.
    fn partial(&self) -> Value {
        let changed = self.changed();
        let mut partial = json!({});
        for mutation in &self.mutations {
            if let Some(Part::Field(field)) = mutation.path.first() {
                partial[field] = changed.get(field).cloned().unwrap_or_default();
            }
        }
        partial
    }

    fn json_patch(&self) -> Value {
        let operation = |mutation: &Mutation| {
            let path: String = mutation
                .path
                .iter()
                .map(|part| match part {
                    Part::Field(field) => format!("/{}", field.replace('~', "~0").replace('/', "~1")),
                    Part::Item(at) => format!("/{at}"),
                })
                .collect();
            match &mutation.change {
                Change::Remove => json!({"op": "remove", "path": path}),
                Change::Set(value) => json!({"op": "add", "path": path, "value": value}),
                Change::Repeat => json!({"op": "copy", "from": path, "path": format!("{path}2")}),
            }
        };
        self.mutations.iter().map(operation).collect()
    }
}

pub(super) fn step(name: &str, method: &str, target: &str, query: &str, body: Option<Value>) -> Step {
    let target = if query.is_empty() { target.to_owned() } else { format!("{target}?{query}") };
    Step { name: name.to_owned(), method: method.to_owned(), target, body, ..Step::default() }
}

fn with_name(value: Value, name: &str) -> Value {
    match value {
        Value::String(text) => text.replace(NAME, name).into(),
        Value::Array(items) => items.into_iter().map(|item| with_name(item, name)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(field, value)| (field, with_name(value, name))).collect()
        }
        other => other,
    }
}
