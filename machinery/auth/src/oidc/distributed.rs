//! Distributed claims, which another server provides (OpenID Connect Core 1.0, section 5.6.2; upstream's `claimResolver.expand`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json;

/// Source of a distributed claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClaimSource {
    /// URL to GET; empty for aggregated claims, which are ignored.
    pub endpoint: String,
    /// Bearer token for the request; may be empty.
    pub access_token: String,
}

/// Description of distributed claims in a token.
pub(super) struct DistributedClaims<'a> {
    /// Names of claims with the names of their sources (`_claim_names`).
    pub(super) names: Option<&'a RawValue>,
    /// Sources by name (`_claim_sources`).
    pub(super) sources: Option<&'a RawValue>,
}

impl DistributedClaims<'_> {
    fn names(&self) -> Result<BTreeMap<String, String>, String> {
        let Some(raw) = self.names.filter(|raw| !json::is_null(raw)) else { return Ok(BTreeMap::new()) };
        let decoded: Result<BTreeMap<String, Option<String>>, _> = serde_json::from_str(raw.get());
        let decoded = decoded.map_err(|_| json::mismatch(raw, "value of type map[string]string"))?;
        Ok(decoded.into_iter().map(|(claim, source)| (claim, source.unwrap_or_default())).collect())
    }

    fn sources(&self) -> Result<BTreeMap<String, ClaimSource>, String> {
        let Some(raw) = self.sources.filter(|raw| !json::is_null(raw)) else { return Ok(BTreeMap::new()) };
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get())
            .map_err(|_| json::mismatch(raw, "value of type map[string]oidc.endpoint"))?;
        let decode = |(name, raw): (String, &RawValue)| {
            let source = portico_gostd::json::from_slice(raw.get().as_bytes());
            source
                .map(|source| (name, source))
                .map_err(|_| json::mismatch(raw, "value of type oidc.endpoint"))
        };
        members.into_iter().map(decode).collect()
    }

    /// Checks that every named claim has a source; go-oidc checks all of them.
    pub(super) fn check(&self) -> Result<(), String> {
        let unmarshal_error = |error| format!("oidc: failed to unmarshal claims: {error}");
        let (names, sources) =
            (self.names().map_err(unmarshal_error)?, self.sources().map_err(unmarshal_error)?);
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

    /// Returns the source of a claim that the token does not contain itself.
    pub(super) fn source(&self, claim: &str) -> Result<Option<ClaimSource>, String> {
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
        let source = sources.remove(name).ok_or_else(|| {
            format!("id token _claim_names contained a source {name} missing in _claims_sources")
        })?;
        Ok(Some(source).filter(|source| !source.endpoint.is_empty()))
    }
}
