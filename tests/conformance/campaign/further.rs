//! Requests for an object in addition to its write: subresources, a watch, pages, a delete by selector.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::case::{TABLE, step};
use crate::step::Step;

/// Requests for an object that was written.
#[derive(Clone, Debug)]
pub enum Followup {
    /// Subresource: name, method, media type of a patch, body.
    Subresource(&'static str, &'static str, Option<&'static str>, Value),
    /// Watch of the object.
    Watch(&'static str),
    /// List of the object only, with a limit or another media type.
    List(&'static str),
    DeleteCollection(&'static str),
    DeleteOptions(Value),
    /// The object and its collection as tables.
    Tables,
    /// Several similar objects, read in pages, with writes between the pages: the limit, and further query parameters.
    Pages(usize, &'static str),
}

/// Number of objects in the pages, in addition to the one that was written.
const PAGE_OBJECTS: usize = 4;
/// Label of these objects, whose value is their name.
const PAGE_LABEL: &str = "campaign";

/// Subresources of resources.
const SUBRESOURCES: [(&str, &[&str]); 9] = [
    ("deployments", &["scale"]),
    ("replicasets", &["scale"]),
    ("statefulsets", &["scale"]),
    ("replicationcontrollers", &["scale"]),
    ("campaigns", &["scale", "status"]),
    ("pods", &["eviction", "binding", "ephemeralcontainers", "resize"]),
    ("serviceaccounts", &["token"]),
    ("certificatesigningrequests", &["approval"]),
    ("nodes", &["status"]),
];

const MERGE: &str = "application/merge-patch+json";

impl Followup {
    /// Returns a random request that is possible for objects in this collection, or `None`.
    pub fn random(collection: &str, random: &mut StdRng) -> Option<Self> {
        let resource = collection.rsplit('/').next().unwrap_or_default();
        let subresources = SUBRESOURCES.iter().find(|(of, _)| *of == resource).map(|(_, names)| *names);
        if let Some(names) = subresources
            && random.random_ratio(1, 2)
        {
            return Some(subresource(names.choose(random)?, random));
        }
        Some(match random.random_range(0..70) {
            0 => Self::Watch(["", "&resourceVersion=0", "&sendInitialEvents=true"].choose(random)?),
            1..=3 => Self::List(
                [
                    "limit=1",
                    "limit=1&resourceVersion=0",
                    "limit=1&resourceVersionMatch=NotOlderThan",
                    "continue=x",
                ]
                .choose(random)?,
            ),
            4..=6 => Self::DeleteCollection(
                ["", "&dryRun=All", "&propagationPolicy=Foreground", "&labelSelector=a%3Db"]
                    .choose(random)?,
            ),
            7..=9 => Self::DeleteOptions(delete_options(random)),
            10..=12 => Self::Tables,
            13..=15 => Self::Pages(
                *[1, 2, 3].choose(random)?,
                ["", "&resourceVersion=0", "&resourceVersionMatch=NotOlderThan&resourceVersion=1"]
                    .choose(random)?,
            ),
            _ => return None,
        })
    }

    /// Returns the requests for the object with this name.
    pub fn steps(&self, collection: &str, name: &str, base: &Value) -> Vec<Step> {
        let (object, only) =
            (format!("{collection}/{name}"), format!("fieldSelector=metadata.name%3D{name}"));
        let one = |method: &str, target: &str, query: String, body: Option<Value>| {
            vec![step("further", method, target, &query, body)]
        };
        match self {
            Self::Subresource(subresource, method, media, body) => {
                let target = format!("{object}/{subresource}");
                let sent = Step {
                    content_type: media.map(str::to_owned),
                    // A token is not saved, so the managed fields differ.
                    ignore: if *subresource == "token" {
                        vec!["metadata.managedFields".to_owned()]
                    } else {
                        Vec::new()
                    },
                    ..step("subresource", method, &target, "", Some(body.clone()))
                };
                vec![sent, step("further get", "GET", &object, "", None)]
            }
            Self::Watch(query) => {
                one("GET", collection, format!("watch=true&timeoutSeconds=1&{only}{query}"), None)
            }
            Self::List(query) => one("GET", collection, format!("{only}&{query}"), None),
            Self::DeleteCollection(query) => one("DELETE", collection, format!("{only}{query}"), None),
            Self::DeleteOptions(options) => one("DELETE", &object, String::new(), Some(options.clone())),
            Self::Tables => tables(&object, collection, &only),
            Self::Pages(limit, query) => pages(*limit, query, collection, name, base),
        }
    }
}

fn tables(object: &str, collection: &str, only: &str) -> Vec<Step> {
    let table = |target: &str, query: &str| Step {
        accept: Some(TABLE.to_owned()),
        ..step("table", "GET", target, query, None)
    };
    let each = ["", "includeObject=None", "includeObject=Metadata", "includeObject=Object"];
    let mut steps: Vec<Step> = each.iter().map(|query| table(object, query)).collect();
    steps.extend(each[1..].iter().map(|query| table(collection, &format!("{only}&{query}"))));
    steps.push(table(object, "includeObject=x"));
    let older = "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
    steps.push(Step { accept: Some(older.to_owned()), ..table(collection, only) });
    steps
}

/// Creates objects, and lists them; between the first pages, one is changed, one deleted and one created.
fn pages(limit: usize, query: &str, collection: &str, name: &str, base: &Value) -> Vec<Step> {
    let paged = |at: usize| format!("{name}-page{at}");
    let create = |at: usize| {
        let mut body = base.clone();
        body["metadata"]["name"] = paged(at).into();
        body["metadata"]["labels"] = json!({PAGE_LABEL: name});
        step("page object", "POST", collection, "", Some(body))
    };
    let delete = |at: usize| {
        step("page delete", "DELETE", &format!("{collection}/{}", paged(at)), "gracePeriodSeconds=0", None)
    };
    let list = |from: &str| Step {
        save: [("continue".to_owned(), "metadata.continue".to_owned())].into(),
        ..step(
            "page",
            "GET",
            collection,
            &format!("labelSelector={PAGE_LABEL}%3D{name}&limit={limit}{from}"),
            None,
        )
    };
    let next = "&continue=${continue}";
    let mut steps: Vec<Step> = (0..PAGE_OBJECTS).map(create).collect();
    let label = json!({"metadata": {"labels": {"changed": "yes"}}});
    steps.extend([
        list(query),
        Step {
            content_type: Some(MERGE.to_owned()),
            ..step("page patch", "PATCH", &format!("{collection}/{}", paged(2)), "", Some(label))
        },
        delete(1),
        list(next),
        create(PAGE_OBJECTS),
        list(next),
        list(next),
        list(next),
    ]);
    steps.extend([0, 2, 3, PAGE_OBJECTS].map(delete));
    steps
}

fn subresource(name: &'static str, random: &mut StdRng) -> Followup {
    let specs = match name {
        "eviction" => return Followup::Subresource(name, "POST", None, eviction(random)),
        "binding" => return Followup::Subresource(name, "POST", None, binding(random)),
        "token" => return Followup::Subresource(name, "POST", None, token(random)),
        "approval" => return Followup::Subresource(name, "PATCH", Some(MERGE), approval(random)),
        "scale" => vec![json!({"replicas": 2}), json!({"replicas": -1}), json!({"replicas": 0})],
        "ephemeralcontainers" => vec![
            json!({"ephemeralContainers": [{"name": "e", "image": "i"}]}),
            json!({"ephemeralContainers": [{"name": "E"}]}),
            json!({"ephemeralContainers": 1}),
        ],
        "resize" => vec![
            json!({"containers": []}),
            json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]}),
        ],
        _ => Vec::new(),
    };
    let statuses =
        [json!({"phase": "Ready"}), json!({"phase": 1, "seen": 2}), json!({"seen": 3}), json!(null)];
    let body = match specs.choose(random) {
        Some(spec) => json!({"spec": spec}),
        None => json!({"status": statuses.choose(random)}),
    };
    let media = match name {
        "ephemeralcontainers" | "resize" => "application/strategic-merge-patch+json",
        _ => MERGE,
    };
    Followup::Subresource(name, "PATCH", Some(media), body)
}

fn eviction(random: &mut StdRng) -> Value {
    let options = [
        json!(null),
        json!({"dryRun": ["All"]}),
        json!({"gracePeriodSeconds": 0}),
        json!({"gracePeriodSeconds": -1}),
        json!(1),
    ];
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": super::case::NAME}, "deleteOptions": options.choose(random)})
}

fn binding(random: &mut StdRng) -> Value {
    let targets = [
        json!({"kind": "Node", "name": "n"}),
        json!({"kind": "Pod", "name": "n"}),
        json!({"name": ""}),
        json!({}),
        json!("n"),
    ];
    json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": super::case::NAME}, "target": targets.choose(random)})
}

fn token(random: &mut StdRng) -> Value {
    let specs = [
        json!({}),
        json!({"audiences": ["a"], "expirationSeconds": 600}),
        json!({"expirationSeconds": 1}),
        json!({"expirationSeconds": 99_999_999_999_i64}),
        json!({"boundObjectRef": {"kind": "Pod", "name": "none", "apiVersion": "v1"}}),
        json!({"boundObjectRef": {"kind": "Job", "name": "none", "apiVersion": "v1"}}),
        json!({"audiences": "a"}),
    ];
    json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": specs.choose(random)})
}

fn approval(random: &mut StdRng) -> Value {
    let conditions = [
        json!([{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]),
        json!([{"type": "Approved", "status": "False"}]),
        json!([{"type": "Denied", "status": "True"}, {"type": "Approved", "status": "True"}]),
        json!([{"type": "", "status": "x"}]),
        json!(null),
    ];
    json!({"status": {"conditions": conditions.choose(random)}})
}

fn delete_options(random: &mut StdRng) -> Value {
    let options = [
        json!({"propagationPolicy": "Background", "orphanDependents": true}),
        json!({"propagationPolicy": "x"}),
        json!({"preconditions": {"uid": "x"}}),
        json!({"preconditions": {"resourceVersion": "1"}}),
        json!({"gracePeriodSeconds": -1}),
        json!({"gracePeriodSeconds": "x"}),
        json!({"dryRun": ["All"]}),
        json!({"dryRun": ["Some"]}),
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"}),
        json!({"kind": "Other", "apiVersion": "v1"}),
        json!([]),
    ];
    options.choose(random).cloned().unwrap_or_default()
}
