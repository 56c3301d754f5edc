//! Issuer configured by the `--oidc-*` flags: converted to the form of the file, and checked like the file.

use std::collections::BTreeMap;

use portico_auth::oidc::SigningAlgorithm;
use portico_machinery::Object;
use serde::Serialize;

use super::configuration::Configuration;
use crate::settings::OidcFlags;

/// Value of the flag that disables the prefix of names.
const NO_PREFIX: &str = "-";

#[derive(Serialize)]
struct ConfigurationFile<'a> {
    jwt: [Jwt<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Jwt<'a> {
    issuer: Issuer<'a>,
    claim_validation_rules: Vec<Rule<'a>>,
    claim_mappings: BTreeMap<&'a str, Mapping<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Issuer<'a> {
    url: &'a str,
    audiences: [&'a str; 1],
    certificate_authority: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule<'a> {
    claim: &'a str,
    required_value: &'a str,
}

#[derive(Serialize)]
struct Mapping<'a> {
    claim: &'a str,
    prefix: String,
}

/// Converts the flags to a configuration.
///
/// # Errors
/// The flags are invalid.
pub(super) fn configuration(flags: &OidcFlags, own_issuers: &[String]) -> Result<Configuration, String> {
    let algorithm = |name: &String| {
        SigningAlgorithm::from_name(name).ok_or_else(|| format!("oidc: unsupported signing alg: {name:?}"))
    };
    let algorithms = flags.signing_algs.iter().map(algorithm).collect::<Result<Vec<_>, _>>()?;
    let pem = match &flags.ca_file {
        None => String::new(),
        Some(file) => portico_kit::config_file::read_text(file)
            .map_err(|error| format!("open {}: {}", file.display(), portico_gostd::os::error_text(&error)))?,
    };
    let file = ConfigurationFile { jwt: [jwt(flags, &pem)] };
    let json = serde_json::to_vec(&file).map_err(|error| error.to_string())?;
    let object = Object::from_json(&json).map_err(|error| error.to_string())?;
    Configuration::from_object(&object, own_issuers, &algorithms, None)
}

fn jwt<'a>(flags: &'a OidcFlags, pem: &'a str) -> Jwt<'a> {
    let prefix = match flags.username_prefix.as_str() {
        "" if flags.username_claim != "email" => format!("{}#", flags.issuer_url),
        NO_PREFIX => String::new(),
        prefix => prefix.to_owned(),
    };
    let mut claim_mappings = BTreeMap::new();
    claim_mappings.insert("username", Mapping { claim: &flags.username_claim, prefix });
    if !flags.groups_claim.is_empty() {
        let prefix = flags.groups_prefix.clone();
        claim_mappings.insert("groups", Mapping { claim: &flags.groups_claim, prefix });
    }
    let rule = |(claim, required_value): (&'a String, &'a String)| Rule { claim, required_value };
    Jwt {
        issuer: Issuer { url: &flags.issuer_url, audiences: [&flags.client_id], certificate_authority: pem },
        claim_validation_rules: flags.required_claims.iter().map(rule).collect(),
        claim_mappings,
    }
}
