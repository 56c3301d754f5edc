//! Claims that are to be had from somebody else (OpenID Connect Core 1.0, section 5.6.2; upstream's `claimResolver.expand`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Claims;
use super::json;

/// Names of claims, each with the name of its source.
const NAMES: &str = "_claim_names";
/// The sources by name.
const SOURCES: &str = "_claim_sources";

/// Where a claim is to be found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Source {
    /// What to GET; empty for claims that are aggregated, which are passed over.
    pub endpoint: String,
    /// The bearer token to ask with; may be empty.
    pub access_token: String,
}

fn names(claims: &Claims) -> Result<BTreeMap<String, String>, String> {
    let Some(raw) = claims.raw(NAMES).filter(|raw| !json::is_null(raw)) else { return Ok(BTreeMap::new()) };
    let read: Result<BTreeMap<String, Option<String>>, _> = serde_json::from_str(raw.get());
    let read = read.map_err(|_| json::mismatch(raw, "value of type map[string]string"))?;
    Ok(read.into_iter().map(|(claim, source)| (claim, source.unwrap_or_default())).collect())
}

fn sources(claims: &Claims) -> Result<BTreeMap<String, Source>, String> {
    let Some(raw) = claims.raw(SOURCES).filter(|raw| !json::is_null(raw)) else { return Ok(BTreeMap::new()) };
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get())
        .map_err(|_| json::mismatch(raw, "value of type map[string]oidc.endpoint"))?;
    let read = |(name, raw): (String, &RawValue)| {
        let source = portico_gostd::json::from_slice(raw.get().as_bytes());
        source.map(|source| (name, source)).map_err(|_| json::mismatch(raw, "value of type oidc.endpoint"))
    };
    members.into_iter().map(read).collect()
}

/// Every claim that is named has a source: go-oidc looks at all of them.
pub(super) fn check(claims: &Claims) -> Result<(), String> {
    let (names, sources) = (names(claims)?, sources(claims)?);
    for source in names.values() {
        if source.is_empty() {
            return Err("oidc: failed to obtain source from claim name".to_owned());
        }
        if !sources.contains_key(source) {
            return Err("oidc: source does not exist".to_owned());
        }
    }
    Ok(())
}

/// Where a claim is to be found that is not there itself.
pub(super) fn source(claims: &Claims, claim: &str) -> Result<Option<Source>, String> {
    if claims.has(claim) || !claims.has(NAMES) {
        return Ok(None);
    }
    let names =
        names(claims).map_err(|error| format!("oidc: error parsing distributed claim names: {error}"))?;
    if !claims.has(SOURCES) {
        return Err("oidc: no claim sources".to_owned());
    }
    let mut sources =
        sources(claims).map_err(|error| format!("oidc: could not parse claim sources: {error}"))?;
    let Some(name) = names.get(claim) else { return Ok(None) };
    let found = sources.remove(name).ok_or_else(|| {
        format!("id token _claim_names contained a source {name} missing in _claims_sources")
    })?;
    Ok(Some(found).filter(|source| !source.endpoint.is_empty()))
}
