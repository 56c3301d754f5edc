//! `AuthenticationConfiguration`: read from a file or built from `--oidc-*` flags, and checked with upstream's messages.
//!
//! Upstream rules: apiserver/pkg/apis/apiserver/validation (`ValidateAuthenticationConfiguration`).

mod issuer;
mod mappings;
mod reader;
mod rules;

use portico_auth::authn::AnonymousAccess;
use portico_auth::oidc::{JwtAuthenticator, SigningAlgorithm};
use portico_machinery::field::{Error, Path as Field};
use portico_machinery::{Cursor, Object, aggregate};
use portico_schema::configuration::{ConfigKind, Scheme};

use super::address::IssuerAddress;
use reader::{EmailClaims, Reader};

const KIND: &str = "AuthenticationConfiguration";
const SCHEME: Scheme = Scheme {
    kinds: &[
        ConfigKind { version: "apiserver.config.k8s.io/v1", kind: KIND, ty: KIND },
        ConfigKind { version: "apiserver.config.k8s.io/v1beta1", kind: KIND, ty: KIND },
        ConfigKind { version: "apiserver.config.k8s.io/v1alpha1", kind: KIND, ty: KIND },
    ],
    types: r#"{
        "AuthenticationConfiguration": {"fields": {
            "kind": {"type": "string"}, "apiVersion": {"type": "string"},
            "jwt": {"type": "[]JWTAuthenticator"}, "anonymous": {"type": "AnonymousAuthConfig", "emit": "pointer"}
        }},
        "AnonymousAuthConfig": {"fields": {
            "enabled": {"type": "boolean"}, "conditions": {"type": "[]AnonymousAuthCondition"}
        }},
        "AnonymousAuthCondition": {"fields": {"path": {"type": "string"}}},
        "JWTAuthenticator": {"fields": {
            "issuer": {"type": "Issuer"}, "claimValidationRules": {"type": "[]ClaimValidationRule"},
            "claimMappings": {"type": "ClaimMappings"}, "userValidationRules": {"type": "[]UserValidationRule"}
        }},
        "Issuer": {"fields": {
            "url": {"type": "string"}, "discoveryURL": {"type": "string"}, "certificateAuthority": {"type": "string"},
            "audiences": {"type": "[]string"}, "audienceMatchPolicy": {"type": "string"},
            "egressSelectorType": {"type": "string"}
        }},
        "ClaimValidationRule": {"fields": {
            "claim": {"type": "string"}, "requiredValue": {"type": "string"}, "expression": {"type": "string"},
            "message": {"type": "string"}
        }},
        "ClaimMappings": {"fields": {
            "username": {"type": "PrefixedClaimOrExpression"}, "groups": {"type": "PrefixedClaimOrExpression"},
            "uid": {"type": "ClaimOrExpression"}, "extra": {"type": "[]ExtraMapping"}
        }},
        "PrefixedClaimOrExpression": {"fields": {
            "claim": {"type": "string"}, "prefix": {"type": "string", "emit": "pointer"}, "expression": {"type": "string"}
        }},
        "ClaimOrExpression": {"fields": {"claim": {"type": "string"}, "expression": {"type": "string"}}},
        "ExtraMapping": {"fields": {"key": {"type": "string"}, "valueExpression": {"type": "string"}}},
        "UserValidationRule": {"fields": {"expression": {"type": "string"}, "message": {"type": "string"}}}
    }"#,
    strict: true,
};

/// JWT issuers of one authentication configuration.
///
/// Limit (Authentication and authorization): the configuration is rejected.
const MAX_ISSUERS: usize = 64;

/// Authentication configuration.
#[derive(Debug)]
pub(super) struct Configuration {
    pub(super) issuers: Vec<IssuerConfiguration>,
    /// Configuration of anonymous access; `None` if the file does not have it.
    pub(super) anonymous: Option<AnonymousAccess>,
}

/// Address of an issuer, and the validation of its tokens.
#[derive(Debug)]
pub(super) struct IssuerConfiguration {
    pub(super) address: IssuerAddress,
    pub(super) authenticator: JwtAuthenticator,
}

impl Configuration {
    /// Reads the content of a file. `own_issuers` are the issuers of service account tokens, which the file must not contain.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub(super) fn read(
        bytes: &[u8],
        own_issuers: &[String],
        initial: Option<&InitialAnonymous>,
    ) -> Result<Self, String> {
        if bytes.is_empty() {
            return Err("empty config data".to_owned());
        }
        let object = SCHEME.decode(bytes).map_err(|error| error.to_string())?;
        Self::from_object(&object, own_issuers, &SigningAlgorithm::ALL, initial)
    }

    /// Checks a decoded configuration.
    ///
    /// # Errors
    /// All errors of the configuration.
    pub(super) fn from_object(
        object: &Object,
        own_issuers: &[String],
        algorithms: &[SigningAlgorithm],
        initial: Option<&InitialAnonymous>,
    ) -> Result<Self, String> {
        let mut reader = Reader { errors: Vec::new(), own: own_issuers, algorithms };
        let issuers = reader.issuers(&object.at(&["jwt"]));
        let anonymous = reader.anonymous(&object.at(&["anonymous"]));
        if initial.is_some_and(|initial| initial.0 != anonymous) {
            let path = Field::new("anonymous");
            reader.errors.push(Error::forbidden(&path, "changed from initial configuration file"));
        }
        if !reader.errors.is_empty() {
            return Err(format!("invalid authentication configuration: {}", aggregate(&reader.errors)));
        }
        Ok(Self { issuers, anonymous })
    }
}

/// Anonymous access in the first configuration, which later ones must not change.
#[derive(Debug)]
pub(super) struct InitialAnonymous(pub(super) Option<AnonymousAccess>);

impl Reader<'_> {
    fn issuers(&mut self, list: &Cursor<'_>) -> Vec<IssuerConfiguration> {
        if list.len() > MAX_ISSUERS {
            self.errors.push(Error::too_many(&list.path(), list.len(), MAX_ISSUERS));
            return Vec::new();
        }
        let (mut urls, mut discovery_urls, mut read) = (Vec::new(), Vec::new(), Vec::new());
        for item in list.items() {
            read.extend(self.issuer(&item));
            let issuer = item.field("issuer");
            let (url, discovery_url) = (issuer.field("url"), issuer.field("discoveryURL"));
            if urls.contains(&url.str()) {
                self.errors.push(Error::duplicate(&url.path(), url.str()));
            }
            urls.push(url.str());
            if !discovery_url.str().is_empty() {
                if discovery_urls.contains(&discovery_url.str()) {
                    self.errors.push(discovery_url.duplicate());
                }
                discovery_urls.push(discovery_url.str());
            }
        }
        read
    }

    /// Reads an issuer; `None` if it is invalid.
    fn issuer(&mut self, at: &Cursor<'_>) -> Option<IssuerConfiguration> {
        let address = self.address(&at.field("issuer"));
        let mut emails = EmailClaims::default();
        let claim_rules = self.claim_rules(&at.field("claimValidationRules"), &mut emails);
        let mappings = self.mappings(&at.field("claimMappings"), &mut emails);
        let user_rules = self.user_rules(&at.field("userValidationRules"));
        let (mappings, (address, audiences)) = (mappings?, address?);
        let authenticator = JwtAuthenticator {
            issuer: address.url.clone(),
            audiences,
            algorithms: self.algorithms.to_vec(),
            username: mappings.username,
            groups: mappings.groups,
            uid: mappings.uid,
            extra: mappings.extra,
            claim_rules,
            user_rules,
        };
        Some(IssuerConfiguration { address, authenticator })
    }

    fn anonymous(&mut self, at: &Cursor<'_>) -> Option<AnonymousAccess> {
        if !at.is_present() {
            return None;
        }
        let conditions = at.field("conditions");
        if !at.field("enabled").bool() {
            if !conditions.is_empty() {
                let message = "enabled should be set to true when conditions are defined";
                let paths: Vec<_> = conditions
                    .items()
                    .map(|condition| format!("{{\"path\":{:?}}}", condition.field("path").str()))
                    .collect();
                let printed = format!("[{}]", paths.join(","));
                self.errors.push(Error::invalid_printed(&conditions.path(), &printed, message));
            }
            return Some(AnonymousAccess::Denied);
        }
        let paths: Vec<_> =
            conditions.items().map(|condition| condition.field("path").str().to_owned()).collect();
        Some(if paths.is_empty() { AnonymousAccess::Allowed } else { AnonymousAccess::Paths(paths.into()) })
    }
}

#[cfg(test)]
mod tests;
