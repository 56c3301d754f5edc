//! `/flagz`: the flags of the process and their values.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use serde::Serialize;

use super::negotiation::{Page, Version, answer, object};
use crate::endpoints::state::Shared;
use crate::request::Response;

/// Fields of the object.
#[derive(Serialize)]
struct Content<'a> {
    flags: &'a BTreeMap<String, String>,
}

struct Flags<'a>(&'a BTreeMap<String, String>);

pub async fn flagz(State(endpoints): Shared, request: Request) -> Response {
    let none = BTreeMap::new();
    answer(&request, &Flags(endpoints.chosen.zpages.flags.as_ref().unwrap_or(&none)))
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
