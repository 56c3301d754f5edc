//! Mapping of claims to user attributes (upstream's `validateClaimMappings`).

use portico_auth::oidc::{ClaimMapping, Expression};
use portico_gostd::apimachinery::validation::dns1123_subdomain;
use portico_machinery::Cursor;
use portico_machinery::field::Error;

use super::reader::{EmailClaims, Reader};

/// Characters of paths other than letters and digits (`httpPathFmt`).
const PATH_CHARACTERS: &str = "/:-._~%!$&'()*+,;=";

/// Mappings of one issuer.
pub(super) struct Mappings {
    pub(super) username: ClaimMapping,
    pub(super) groups: Option<ClaimMapping>,
    pub(super) uid: Option<ClaimMapping>,
    pub(super) extra: Vec<(String, Expression)>,
}

impl Reader<'_> {
    pub(super) fn mappings(&mut self, at: &Cursor<'_>, emails: &mut EmailClaims) -> Option<Mappings> {
        let username = self.prefixed_mapping(&at.field("username"), true);
        if let Some(ClaimMapping::Expression(expression)) = &username {
            emails.claim |= expression.uses_claim("email");
            emails.note(expression);
        }
        let groups = self.prefixed_mapping(&at.field("groups"), false);
        let uid = self.uid(&at.field("uid"));
        let extra = self.extra(&at.field("extra"), emails);
        if emails.claim && !emails.verified {
            let message = "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression";
            self.invalid(&at.field("username").field("expression"), message);
        }
        Some(Mappings { username: username?, groups, uid, extra })
    }

    /// Reads a mapping with a prefix (upstream's `validatePrefixClaimOrExpression`).
    fn prefixed_mapping(&mut self, at: &Cursor<'_>, is_required: bool) -> Option<ClaimMapping> {
        let (claim, expression, prefix) = (at.field("claim"), at.field("expression"), at.field("prefix"));
        match (claim.str(), expression.str()) {
            ("", "") => {
                if is_required {
                    self.errors.push(at.required("claim or expression is required"));
                }
                None
            }
            ("", _) => {
                if prefix.is_present() {
                    self.invalid(&prefix, "may not be specified when expression is set");
                }
                self.compile_expression(&expression, Expression::for_claims).map(ClaimMapping::Expression)
            }
            (name, "") => {
                let Some(prefix) = prefix.opt_str() else {
                    let message = "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
                    self.errors.push(prefix.required(message));
                    return None;
                };
                Some(ClaimMapping::Claim { claim: name.to_owned(), prefix: prefix.to_owned() })
            }
            _ => {
                let message = "claim and expression can't both be set";
                self.errors.push(Error::invalid(&at.path(), "", message));
                None
            }
        }
    }

    fn uid(&mut self, at: &Cursor<'_>) -> Option<ClaimMapping> {
        let (claim, expression) = (at.field("claim"), at.field("expression"));
        match (claim.str(), expression.str()) {
            ("", "") => None,
            ("", _) => {
                self.compile_expression(&expression, Expression::for_claims).map(ClaimMapping::Expression)
            }
            (name, "") => Some(ClaimMapping::Claim { claim: name.to_owned(), prefix: String::new() }),
            _ => {
                self.errors.push(Error::invalid(&at.path(), "", "claim and expression can't both be set"));
                None
            }
        }
    }

    fn extra(&mut self, list: &Cursor<'_>, emails: &mut EmailClaims) -> Vec<(String, Expression)> {
        let (mut seen, mut read) = (Vec::new(), Vec::new());
        for mapping in list.items() {
            let (key, value) = (mapping.field("key"), mapping.field("valueExpression"));
            self.check_key(&key);
            if seen.contains(&key.str()) {
                self.errors.push(Error::duplicate(&key.path(), key.str()));
                continue;
            }
            seen.push(key.str());
            if value.str().is_empty() {
                self.errors.push(value.required(""));
                continue;
            }
            if let Some(expression) = self.compile_expression(&value, Expression::for_claims) {
                emails.note(&expression);
                read.push((key.str().to_owned(), expression));
            }
        }
        read
    }

    /// Checks a key: a path below a domain that is not reserved for Kubernetes (`IsDomainPrefixedPath`).
    fn check_key(&mut self, at: &Cursor<'_>) {
        let key = at.str();
        let parts = key.split_once('/').filter(|(domain, path)| !domain.is_empty() && !path.is_empty());
        match parts {
            _ if key.is_empty() => self.errors.push(at.required("")),
            None => self.invalid(at, "must be a domain-prefixed path (such as \"acme.io/foo\")"),
            Some((domain, path)) => {
                for error in dns1123_subdomain(domain) {
                    self.errors.push(Error::invalid(&at.path(), domain, &error));
                }
                if !path.chars().all(|c| c.is_ascii_alphanumeric() || PATH_CHARACTERS.contains(c)) {
                    let message =
                        "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
                    self.errors.push(Error::invalid(&at.path(), path, message));
                }
            }
        }
        if key.chars().any(char::is_uppercase) {
            self.invalid(at, "must be lowercase");
        }
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let is_below = |reserved: &str| {
            domain.strip_suffix(reserved).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if is_below("kubernetes.io") || is_below("k8s.io") {
            self.invalid(at, "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use");
        }
    }
}
