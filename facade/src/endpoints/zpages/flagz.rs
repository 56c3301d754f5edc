//! `/flagz`: the flags of the process and their values.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use serde::Serialize;

use super::negotiation::{Page, Version, object, serve_page};
use crate::endpoints::state::SharedEndpoints;
use crate::request::Response;

/// Fields of the object.
#[derive(Serialize)]
struct Content<'a> {
    flags: &'a BTreeMap<String, String>,
}

struct Flags<'a>(&'a BTreeMap<String, String>);

pub async fn flagz(State(endpoints): SharedEndpoints, request: Request) -> Response {
    let no_flags = BTreeMap::new();
    serve_page(&request, &Flags(endpoints.options.zpages.flags.as_ref().unwrap_or(&no_flags)))
}

impl Page for Flags<'_> {
    const KIND: &'static str = "Flagz";

    fn text(&self, delimiter: &str) -> String {
        self.0.iter().map(|(name, value)| format!("{name}{delimiter}{value}\n")).collect()
    }

    fn json(&self, version: Version) -> Vec<u8> {
        object::<Self>(version, &Content { flags: self.0 })
    }
}
