//! The custom resource of these figures: 20 fields and three rules.

use std::fmt::Write as _;

use http::{Method, StatusCode};

use crate::Failure;
use crate::https::Endpoint;
use crate::process::wait_until;

pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(super) const GROUP: &str = "bench.example.com";
pub(super) const VERSION: &str = "v1";
pub(super) const KIND: &str = "THINGS";
/// Path of the collection of things.
pub(super) const COLLECTION: &str = "/apis/bench.example.com/v1/namespaces/default/things";

/// Returns the schema of objects whose spec has this schema.
pub(super) fn schema(spec: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"spec":{spec}}}}}"#)
}

/// Returns a definition of `plural` whose spec has this schema.
pub(super) fn definition(plural: &str, spec: &str) -> String {
    let (kind, schema) = (plural.to_uppercase(), schema(spec));
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"{plural}.{GROUP}"}},"spec":{{"group":"{GROUP}","scope":"Namespaced","names":{{"plural":"{plural}","singular":"{plural}one","kind":"{kind}","listKind":"{kind}List"}},"versions":[{{"name":"{VERSION}","served":true,"storage":true,"schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#
    )
}

/// Returns the schema of the spec: 20 fields and three rules.
pub(super) fn spec() -> String {
    let mut fields = String::new();
    for at in 0..10 {
        let comma = if at > 0 { "," } else { "" };
        // Writing into a String cannot fail.
        let _infallible = write!(
            fields,
            r#"{comma}"text{at}":{{"type":"string","maxLength":64}},"number{at}":{{"type":"integer","minimum":0}}"#
        );
    }
    let rules = r#"[{"rule":"self.number0 <= self.number1"},{"rule":"self.text0.startsWith('t')"},{"rule":"size(self.text1) + size(self.text2) < 64","message":"too long"}]"#;
    format!(r#"{{"type":"object","properties":{{{fields}}},"x-kubernetes-validations":{rules}}}"#)
}

/// Returns a thing with this name.
pub(super) fn thing(name: &str) -> String {
    let mut fields = String::new();
    for at in 0..10 {
        let comma = if at > 0 { "," } else { "" };
        let _infallible = write!(fields, r#"{comma}"text{at}":"text number {at}","number{at}":{at}"#);
    }
    format!(
        r#"{{"apiVersion":"{GROUP}/{VERSION}","kind":"{KIND}","metadata":{{"name":"{name}"}},"spec":{{{fields}}}}}"#
    )
}

/// Defines things, and waits until they are served and can be created.
pub(super) async fn define(endpoint: &Endpoint) -> Result<(), Failure> {
    let mut client = endpoint.client().await?;
    client.send_ok(Method::POST, DEFINITIONS, definition("things", &spec())).await?;
    wait_until("things are served", async || {
        Ok((client.get(COLLECTION).await? == StatusCode::OK).then_some(()))
    })
    .await?;
    // A server may delay the first creation for a short time.
    client.send_ok(Method::POST, COLLECTION, thing("first")).await.map(drop)
}
