//! Claims that are to be had from somebody else (OpenID Connect Core 1.0, section 5.6.2; upstream's `claimResolver.expand`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json;

/// Where a claim is to be found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Source {
    /// What to GET; empty for claims that are aggregated, which are passed over.
    pub endpoint: String,
    /// The bearer token to ask with; may be empty.
    pub access_token: String,
}

/// What a token says of claims that are elsewhere.
pub(super) struct Distributed<'a> {
    /// Names of claims, each with the name of its source (`_claim_names`).
    pub(super) names: Option<&'a RawValue>,
    /// The sources by name (`_claim_sources`).
    pub(super) sources: Option<&'a RawValue>,
}

impl Distributed<'_> {
    fn names(&self) -> Result<BTreeMap<String, String>, String> {
        let Some(raw) = self.names.filter(|raw| !json::is_null(raw)) else { return Ok(BTreeMap::new()) };
        let read: Result<BTreeMap<String, Option<String>>, _> = serde_json::from_str(raw.get());
        let read = read.map_err(|_| json::mismatch(raw, "value of type map[string]string"))?;
        Ok(read.into_iter().map(|(claim, source)| (claim, source.unwrap_or_default())).collect())
    }

    fn sources(&self) -> Result<BTreeMap<String, Source>, String> {
        let Some(raw) = self.sources.filter(|raw| !json::is_null(raw)) else { return Ok(BTreeMap::new()) };
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get())
            .map_err(|_| json::mismatch(raw, "value of type map[string]oidc.endpoint"))?;
        let read = |(name, raw): (String, &RawValue)| {
            let source = portico_gostd::json::from_slice(raw.get().as_bytes());
            source
                .map(|source| (name, source))
                .map_err(|_| json::mismatch(raw, "value of type oidc.endpoint"))
        };
        members.into_iter().map(read).collect()
    }

    /// Every claim that is named has a source: go-oidc looks at all of them.
    pub(super) fn check(&self) -> Result<(), String> {
        let unread = |error| format!("oidc: failed to unmarshal claims: {error}");
        let (names, sources) = (self.names().map_err(unread)?, self.sources().map_err(unread)?);
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
    pub(super) fn source(&self, claim: &str) -> Result<Option<Source>, String> {
        if self.names.is_none() {
            return Ok(None);
        }
        let names =
            self.names().map_err(|error| format!("oidc: error parsing distributed claim names: {error}"))?;
        if self.sources.is_none() {
            return Err("oidc: no claim sources".to_owned());
        }
        let mut sources =
            self.sources().map_err(|error| format!("oidc: could not parse claim sources: {error}"))?;
        let Some(name) = names.get(claim) else { return Ok(None) };
        let found = sources.remove(name).ok_or_else(|| {
            format!("id token _claim_names contained a source {name} missing in _claims_sources")
        })?;
        Ok(Some(found).filter(|source| !source.endpoint.is_empty()))
    }
}
