//! Validation rules for claims and for users (upstream's `validateClaimValidationRules`, `validateUserValidationRules`).

use portico_auth::oidc::{ClaimRule, Expression, UserRule};
use portico_machinery::Cursor;
use portico_machinery::field::Error;

use super::reader::{EmailClaims, Reader};

impl Reader<'_> {
    pub(super) fn claim_rules(&mut self, list: &Cursor<'_>, emails: &mut EmailClaims) -> Vec<ClaimRule> {
        let (mut claims, mut expressions, mut rules) = (Vec::new(), Vec::new(), Vec::new());
        for rule in list.items() {
            let (claim, expression) = (rule.field("claim"), rule.field("expression"));
            match (claim.str(), expression.str()) {
                ("", "") => self.errors.push(rule.required("claim or expression is required")),
                ("", _) => {
                    let condition = self.claim_condition(&rule, &expression, &mut expressions);
                    if let Some(condition) = condition {
                        emails.note(&condition);
                        rules.push(ClaimRule::Condition { condition, message: message(&rule) });
                    }
                }
                (name, "") => {
                    if !message(&rule).is_empty() {
                        self.invalid(&rule.field("message"), "may not be specified when claim is set");
                    }
                    if claims.contains(&name) {
                        self.errors.push(claim.duplicate());
                    }
                    claims.push(name);
                    let value = rule.field("requiredValue").str().to_owned();
                    rules.push(ClaimRule::Required { claim: name.to_owned(), value });
                }
                (name, _) => {
                    let message = "claim and expression can't both be set";
                    self.errors.push(Error::invalid(&rule.path(), name, message));
                }
            }
        }
        rules
    }

    fn claim_condition<'a>(
        &mut self,
        rule: &Cursor<'_>,
        at: &Cursor<'a>,
        seen: &mut Vec<&'a str>,
    ) -> Option<Expression> {
        let value = rule.field("requiredValue");
        if !value.str().is_empty() {
            self.invalid(&value, "may not be specified when expression is set");
        }
        self.check_unique(at, seen)?;
        self.compile_expression(at, Expression::claims_condition)
    }

    pub(super) fn user_rules(&mut self, list: &Cursor<'_>) -> Vec<UserRule> {
        let (mut seen, mut rules) = (Vec::new(), Vec::new());
        for rule in list.items() {
            let expression = rule.field("expression");
            if expression.str().is_empty() {
                self.errors.push(expression.required(""));
                continue;
            }
            if self.check_unique(&expression, &mut seen).is_none() {
                continue;
            }
            let condition = self.compile_expression(&expression, Expression::user_condition);
            rules.extend(condition.map(|condition| UserRule { condition, message: message(&rule) }));
        }
        rules
    }

    /// Returns `None` and adds an error if the text occurred before.
    fn check_unique<'a>(&mut self, at: &Cursor<'a>, seen: &mut Vec<&'a str>) -> Option<()> {
        if seen.contains(&at.str()) {
            self.errors.push(at.duplicate());
            return None;
        }
        seen.push(at.str());
        Some(())
    }

    /// Compiles an expression; adds an error if it is invalid.
    pub(super) fn compile_expression(
        &mut self,
        at: &Cursor<'_>,
        compile: fn(&str) -> Result<Expression, String>,
    ) -> Option<Expression> {
        compile(at.str()).map_err(|error| self.invalid(at, &error)).ok()
    }
}

fn message(rule: &Cursor<'_>) -> String {
    rule.field("message").str().to_owned()
}
