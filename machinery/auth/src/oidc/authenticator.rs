//! Mapping of claims to a user (upstream's `jwtAuthenticator`).

use portico_cel::Value;
use portico_machinery::UserInfo;

use super::expression::{Expression, texts, user_value};
use super::{RawClaims, SigningAlgorithm, TokenRequirements};

/// Key of the user's extra fields that contains the credential ID (`user.CredentialIDKey`).
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Source of an attribute of the user.
#[derive(Clone, Debug)]
pub enum ClaimMapping {
    /// Value of a claim with a prefix.
    Claim {
        /// Name of the claim.
        claim: String,
        /// Prefix of the value.
        prefix: String,
    },
    /// Expression over the claims.
    Expression(Expression),
}

/// Validation rule for claims.
#[derive(Clone, Debug)]
pub enum ClaimRule {
    /// A claim must have a value.
    Required {
        /// Name of the claim.
        claim: String,
        /// Required value.
        value: String,
    },
    /// A condition must hold.
    Condition {
        /// Condition over the claims.
        condition: Expression,
        /// Message if the condition does not hold.
        message: String,
    },
}

/// Validation rule for the user.
#[derive(Clone, Debug)]
pub struct UserRule {
    /// Condition over the user.
    pub condition: Expression,
    /// Message if the condition does not hold.
    pub message: String,
}

/// Configuration of one issuer.
#[derive(Clone, Debug)]
pub struct JwtAuthenticator {
    /// URL of the issuer.
    pub issuer: String,
    /// Accepted audiences; a token must name one of them.
    pub audiences: Vec<String>,
    /// Accepted signature algorithms.
    pub algorithms: Vec<SigningAlgorithm>,
    /// Source of the user name.
    pub username: ClaimMapping,
    /// Source of the groups.
    pub groups: Option<ClaimMapping>,
    /// Source of the uid.
    pub uid: Option<ClaimMapping>,
    /// Sources of the extra fields, by key.
    pub extra: Vec<(String, Expression)>,
    /// Validation rules for claims.
    pub claim_rules: Vec<ClaimRule>,
    /// Validation rules for the user.
    pub user_rules: Vec<UserRule>,
}

impl JwtAuthenticator {
    /// Returns the requirements for tokens of this issuer.
    #[must_use]
    pub fn verification(&self, now: i64) -> TokenRequirements<'_> {
        TokenRequirements {
            issuer: &self.issuer,
            audiences: &self.audiences,
            algorithms: &self.algorithms,
            now,
        }
    }

    /// Returns the claim that another server may provide, which is the claim of the groups.
    #[must_use]
    pub fn distributed_claim(&self) -> Option<&str> {
        match &self.groups {
            Some(ClaimMapping::Claim { claim, .. }) => Some(claim),
            _ => None,
        }
    }

    /// Maps claims to a user, if all rules hold.
    ///
    /// # Errors
    /// Returns upstream's message about the failed rule or mapping.
    pub fn user(&self, claims: &RawClaims) -> Result<UserInfo, String> {
        let value = if self.uses_expressions() {
            claims.value().map_err(|error| format!("oidc: parse claims: {error}"))?
        } else {
            Value::Null
        };
        let mut user = UserInfo { name: self.username(claims, &value)?, ..UserInfo::default() };
        user.groups = self.groups(claims, &value)?;
        user.uid = self.uid(claims, &value)?;
        self.add_extra(&mut user, claims, &value)?;
        self.check_claims(claims, &value)?;
        let cel_user = user_value(&user);
        for rule in &self.user_rules {
            rule.condition
                .require(&cel_user, &rule.message)
                .map_err(|error| format!("oidc: error evaluating user info validation rule: {error}"))?;
        }
        Ok(user)
    }

    /// True if a mapping or rule is an expression over the claims.
    fn uses_expressions(&self) -> bool {
        let mapped = |mapping: Option<&ClaimMapping>| matches!(mapping, Some(ClaimMapping::Expression(_)));
        mapped(Some(&self.username))
            || mapped(self.groups.as_ref())
            || mapped(self.uid.as_ref())
            || !self.extra.is_empty()
            || self.claim_rules.iter().any(|rule| matches!(rule, ClaimRule::Condition { .. }))
    }

    fn username(&self, claims: &RawClaims, value: &Value<'static>) -> Result<String, String> {
        let (claim, prefix) = match &self.username {
            ClaimMapping::Claim { claim, prefix } => (claim, prefix),
            ClaimMapping::Expression(expression) => {
                let name = expression
                    .evaluate_text(value, "username")
                    .map_err(|error| format!("oidc: error evaluating username claim expression: {error}"))?;
                if name.is_empty() {
                    return Err("oidc: empty username via CEL expression is not allowed".to_owned());
                }
                return Ok(name);
            }
        };
        let name =
            claims.text(claim).map_err(|error| format!("oidc: parse username claims {claim:?}: {error}"))?;
        if claim == "email" && claims.has("email_verified") {
            let verified = claims.boolean("email_verified");
            if !verified.map_err(|error| format!("oidc: parse 'email_verified' claim: {error}"))? {
                return Err("oidc: email not verified".to_owned());
            }
        }
        Ok(format!("{prefix}{name}"))
    }

    fn groups(&self, claims: &RawClaims, value: &Value<'static>) -> Result<Vec<String>, String> {
        match &self.groups {
            Some(ClaimMapping::Claim { claim, prefix }) if claims.has(claim) => {
                let groups = claims
                    .texts(claim)
                    .map_err(|error| format!("oidc: parse groups claim {claim:?}: {error}"))?;
                Ok(groups.into_iter().map(|group| format!("{prefix}{group}")).collect())
            }
            Some(ClaimMapping::Expression(expression)) => {
                let result = expression.evaluate(value);
                result
                    .and_then(|result| texts(result).map_err(str::to_owned))
                    .map_err(|error| format!("oidc: error evaluating group claim expression: {error}"))
            }
            _ => Ok(Vec::new()),
        }
    }

    fn uid(&self, claims: &RawClaims, value: &Value<'static>) -> Result<String, String> {
        match &self.uid {
            None => Ok(String::new()),
            Some(ClaimMapping::Claim { claim, .. }) => {
                claims.text(claim).map_err(|error| format!("oidc: parse uid claim {claim:?}: {error}"))
            }
            Some(ClaimMapping::Expression(expression)) => expression
                .evaluate_text(value, "uid")
                .map_err(|error| format!("oidc: error evaluating uid claim expression: {error}")),
        }
    }

    fn add_extra(
        &self,
        user: &mut UserInfo,
        claims: &RawClaims,
        value: &Value<'static>,
    ) -> Result<(), String> {
        if let Ok(id) = claims.text("jti")
            && !id.is_empty()
        {
            user.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
        }
        for (key, expression) in &self.extra {
            let texts = texts(expression.evaluate(value)?).map_err(|error| {
                format!("oidc: error evaluating extra claim expression: {}: {error}", expression.text())
            })?;
            if !texts.is_empty() {
                user.extra.insert(key.clone(), texts);
            }
        }
        Ok(())
    }

    fn check_claims(&self, claims: &RawClaims, value: &Value<'static>) -> Result<(), String> {
        for rule in &self.claim_rules {
            let ClaimRule::Required { claim, value: wanted } = rule else { continue };
            if !claims.has(claim) {
                return Err(format!("oidc: required claim {claim} not present in ID token"));
            }
            let actual = claims.text(claim).map_err(|error| format!("oidc: parse claim {claim}: {error}"))?;
            if actual != *wanted {
                return Err(format!(
                    "oidc: required claim {claim} value does not match. Got = {actual}, want = {wanted}"
                ));
            }
        }
        for rule in &self.claim_rules {
            let ClaimRule::Condition { condition, message } = rule else { continue };
            condition
                .require(value, message)
                .map_err(|error| format!("oidc: error evaluating claim validation expression: {error}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(text: &str) -> ClaimMapping {
        match text.strip_prefix("cel:") {
            Some(expression) => ClaimMapping::Expression(Expression::for_claims(expression).unwrap()),
            None => ClaimMapping::Claim { claim: text.to_owned(), prefix: "p:".to_owned() },
        }
    }

    fn authenticator(username: &str, groups: &str) -> JwtAuthenticator {
        JwtAuthenticator {
            issuer: "https://issuer".to_owned(),
            audiences: vec!["us".to_owned()],
            algorithms: vec![SigningAlgorithm::Rs256],
            username: mapping(username),
            groups: (!groups.is_empty()).then(|| mapping(groups)),
            uid: None,
            extra: Vec::new(),
            claim_rules: Vec::new(),
            user_rules: Vec::new(),
        }
    }

    fn user(authenticator: &JwtAuthenticator, claims: &str) -> Result<UserInfo, String> {
        authenticator.user(&RawClaims::parse(claims.as_bytes()).unwrap())
    }

    #[test]
    fn names_and_groups_are_mapped_from_claims_or_expressions() {
        for (username, groups, claims, expected) in [
            ("sub", "", r#"{"sub":"s"}"#, Ok(("p:s", ""))),
            ("sub", "", "{}", Err("oidc: parse username claims \"sub\": claim not present")),
            (
                "sub",
                "",
                r#"{"sub":1}"#,
                Err(
                    "oidc: parse username claims \"sub\": json: cannot unmarshal number into Go value of type string",
                ),
            ),
            ("email", "", r#"{"email":"a@b"}"#, Ok(("p:a@b", ""))),
            ("email", "", r#"{"email":"a@b","email_verified":false}"#, Err("oidc: email not verified")),
            (
                "email",
                "",
                r#"{"email":"a@b","email_verified":"x"}"#,
                Err(
                    "oidc: parse 'email_verified' claim: json: cannot unmarshal string into Go value of type bool",
                ),
            ),
            ("sub", "g", r#"{"sub":"s"}"#, Ok(("p:s", ""))),
            ("sub", "g", r#"{"sub":"s","g":"one"}"#, Ok(("p:s", "p:one"))),
            ("sub", "g", r#"{"sub":"s","g":["a","b"]}"#, Ok(("p:s", "p:a p:b"))),
            (
                "sub",
                "g",
                r#"{"sub":"s","g":[1]}"#,
                Err(
                    "oidc: parse groups claim \"g\": json: cannot unmarshal array into Go value of type string",
                ),
            ),
            ("cel:claims.sub + '!'", "cel:claims.g", r#"{"sub":"s","g":["","b"]}"#, Ok(("s!", "b"))),
            (
                "cel:claims.sub",
                "cel:claims.g",
                r#"{"sub":"s","g":[1]}"#,
                Err(
                    "oidc: error evaluating group claim expression: expression must return a string or a list of strings",
                ),
            ),
            (
                "cel:claims.sub",
                "",
                r#"{"sub":""}"#,
                Err("oidc: empty username via CEL expression is not allowed"),
            ),
            (
                "cel:claims.sub",
                "",
                "{}",
                Err(
                    "oidc: error evaluating username claim expression: expression 'claims.sub' resulted in error: no such key: sub",
                ),
            ),
            (
                "cel:claims.n",
                "",
                r#"{"n":1}"#,
                Err(
                    "oidc: error evaluating username claim expression: username claim expression must return a string",
                ),
            ),
            ("cel:string(claims.n + 1.0)", "", r#"{"n":1}"#, Ok(("2", ""))),
            ("cel:claims.a__dot__b.c__slash__d", "", r#"{"a.b":{"c/d":"x"}}"#, Ok(("x", ""))),
            ("cel:claims['a.b']", "", r#"{"a.b":"x"}"#, Ok(("x", ""))),
        ] {
            let result = user(&authenticator(username, groups), claims);
            let result = result.map(|user| (user.name, user.groups.join(" ")));
            let expected = expected.map(|(name, groups)| (name.to_owned(), groups.to_owned()));
            assert_eq!(result, expected.map_err(str::to_owned), "{username} {groups} {claims}");
        }
    }

    #[test]
    fn claim_rules_are_checked_before_user_rules() {
        let mut authenticator = authenticator("sub", "");
        let condition = |text: &str| Expression::claims_condition(text).unwrap();
        authenticator.claim_rules = vec![
            ClaimRule::Condition { condition: condition("claims.n > 1.0"), message: "small".to_owned() },
            ClaimRule::Required { claim: "hd".to_owned(), value: "x".to_owned() },
        ];
        let rule = Expression::user_condition("!user.username.startsWith('p:system:')").unwrap();
        authenticator.user_rules = vec![UserRule { condition: rule, message: "reserved".to_owned() }];
        let name = |claims: &str| user(&authenticator, claims).map(|user| user.name);
        assert_eq!(name(r#"{"sub":"s","n":2,"hd":"x"}"#), Ok("p:s".to_owned()));
        for (claims, words) in [
            (
                r#"{"sub":"s","n":1,"hd":"x"}"#,
                "oidc: error evaluating claim validation expression: validation expression 'claims.n > 1.0' failed: small",
            ),
            (r#"{"sub":"s","n":1}"#, "oidc: required claim hd not present in ID token"),
            (
                r#"{"sub":"s","n":1,"hd":"y"}"#,
                "oidc: required claim hd value does not match. Got = y, want = x",
            ),
            (
                r#"{"sub":"system:a","n":2,"hd":"x"}"#,
                "oidc: error evaluating user info validation rule: validation expression '!user.username.startsWith('p:system:')' failed: reserved",
            ),
        ] {
            assert_eq!(name(claims), Err(words.to_owned()));
        }
        assert_eq!(Expression::claims_condition("claims.x").unwrap_err(), "must evaluate to bool");
        assert!(
            Expression::user_condition("user.name == ''").unwrap_err().contains("undefined field 'name'")
        );
    }

    #[test]
    fn extra_fields_are_the_non_empty_values_and_the_token_id() {
        let mut authenticator = authenticator("sub", "");
        authenticator.uid = Some(mapping("cel:claims.u"));
        authenticator.extra = ["claims.a", "claims.b", "''"]
            .into_iter()
            .enumerate()
            .map(|(n, text)| (format!("x/{n}"), Expression::for_claims(text).unwrap()))
            .collect();
        let mapped = user(&authenticator, r#"{"sub":"s","u":"7","a":"1","b":["2","3"],"jti":"j"}"#).unwrap();
        let extra: Vec<_> =
            mapped.extra.iter().map(|(key, values)| format!("{key}={}", values.join("+"))).collect();
        assert_eq!(mapped.uid, "7");
        assert_eq!(extra, ["authentication.kubernetes.io/credential-id=JTI=j", "x/0=1", "x/1=2+3"]);
        let wrong = user(&authenticator, r#"{"sub":"s","u":"7","a":{},"b":""}"#).unwrap_err();
        assert_eq!(
            wrong,
            "oidc: error evaluating extra claim expression: claims.a: expression must return a string or a list of strings"
        );
    }
}
