//! Claims of a token.

use std::collections::BTreeMap;

use portico_cel::value::{Key, MapBuilder, Text};
use portico_cel::{EvalError, Value};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::distributed::{ClaimSource, DistributedClaims};
use super::json::{self, object};

/// Claims by name, with undecoded values (upstream's `claims`).
#[derive(Debug, Default)]
pub struct RawClaims(BTreeMap<String, Box<RawValue>>);

/// Claims that every token must have.
pub(super) struct StandardClaims {
    pub(super) issuer: String,
    pub(super) audiences: Vec<String>,
    pub(super) expires: Option<i64>,
    pub(super) not_before: Option<i64>,
}

impl RawClaims {
    /// Parses a JSON object.
    ///
    /// # Errors
    /// Returns an error if the payload is not an object.
    pub fn parse(payload: &[u8]) -> Result<Self, String> {
        object(payload).map(Self)
    }

    /// Decodes the claims that go-oidc checks in every token.
    pub(super) fn standard(&self) -> Result<StandardClaims, String> {
        let type_error = |name: &str, ty: &str, raw: &RawValue| {
            json::mismatch(raw, &format!("struct field idToken.{name} of type {ty}"))
        };
        let text = |name: &str| match self.0.get(name) {
            None => Ok(String::new()),
            Some(raw) => json::text(raw).ok_or_else(|| type_error(name, "string", raw)),
        };
        let time = |name: &str| match self.0.get(name) {
            None => Ok(None),
            Some(raw) => {
                json::seconds(raw).map(Some).ok_or_else(|| json::mismatch(raw, "value of type json.Number"))
            }
        };
        let audiences = match self.0.get("aud") {
            None => Vec::new(),
            Some(raw) => json::text(raw)
                .map(|one| vec![one])
                .or_else(|| json::texts(raw))
                .ok_or_else(|| type_error("aud", "[]string", raw))?,
        };
        text("sub")?;
        time("iat")?;
        let not_before = match self.0.get("nbf") {
            Some(raw) if json::is_null(raw) => None,
            _ => time("nbf")?,
        };
        Ok(StandardClaims { issuer: text("iss")?, audiences, expires: time("exp")?, not_before })
    }

    /// Returns the undecoded value of a claim.
    #[must_use]
    pub(super) fn raw(&self, name: &str) -> Option<&RawValue> {
        self.0.get(name).map(|raw| &**raw)
    }

    /// True if the claim exists.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns a string claim (`unmarshalClaim`).
    pub(super) fn text(&self, name: &str) -> Result<String, String> {
        let raw = self.raw(name).ok_or("claim not present")?;
        json::text(raw).ok_or_else(|| json::mismatch(raw, "value of type string"))
    }

    /// Returns a boolean claim; `null` counts as false.
    pub(super) fn boolean(&self, name: &str) -> Result<bool, String> {
        let raw = self.raw(name).ok_or("claim not present")?;
        match raw.get() {
            "true" => Ok(true),
            "false" | "null" => Ok(false),
            _ => Err(json::mismatch(raw, "value of type bool")),
        }
    }

    /// Returns a claim that is a list of strings or one string (`stringOrArray`).
    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        let raw = self.raw(name).ok_or("claim not present")?;
        json::texts(raw)
            .or_else(|| json::text(raw).map(|one| vec![one]))
            .ok_or_else(|| json::mismatch(raw, "value of type string"))
    }

    /// Returns the source of a distributed claim; `None` if the token contains the claim itself or names no source.
    ///
    /// # Errors
    /// Returns an error if the token describes the source incorrectly.
    pub fn source(&self, claim: &str) -> Result<Option<ClaimSource>, String> {
        if self.has(claim) { Ok(None) } else { self.distributed().source(claim) }
    }

    /// Returns the distributed claims.
    pub(super) fn distributed(&self) -> DistributedClaims<'_> {
        DistributedClaims { names: self.raw("_claim_names"), sources: self.raw("_claim_sources") }
    }

    /// Moves a claim from another token into this one. Returns true if the other token has the claim.
    pub fn take_claim_from(&mut self, claim: &str, other: &mut Self) -> bool {
        let value = other.0.remove(claim);
        let exists = value.is_some();
        self.0.extend(value.map(|raw| (claim.to_owned(), raw)));
        exists
    }

    /// Returns the claims as a CEL value (`newClaimsValue`).
    pub(super) fn value(&self) -> Result<Value<'static>, EvalError> {
        let mut members = MapBuilder::default();
        for (name, raw) in &self.0 {
            let decoded: Result<GoValue, _> = serde_json::from_str(raw.get());
            let GoValue(value) =
                decoded.map_err(|_| EvalError::new(format!("claim {name:?} failed to unmarshal")))?;
            members.insert(Key::String(Text::from(name.clone())), value);
        }
        Ok(Value::Map(members.into()))
    }
}

/// JSON value decoded as Go decodes into `any`: every number is a double.
struct GoValue(Value<'static>);

impl<'de> Deserialize<'de> for GoValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GoValueVisitor).map(Self)
    }
}

struct GoValueVisitor;

impl<'de> Visitor<'de> for GoValueVisitor {
    type Value = Value<'static>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Value::Bool(value))
    }

    #[expect(clippy::cast_precision_loss, reason = "JSON numbers are decoded as doubles")]
    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Value::Double(value as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "JSON numbers are decoded as doubles")]
    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Value::Double(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Value::Double(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Value::text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(GoValue(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::list(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut members = MapBuilder::default();
        while let Some((name, GoValue(value))) = entries.next_entry::<String, GoValue>()? {
            members.insert(Key::String(Text::from(name)), value);
        }
        Ok(Value::Map(members.into()))
    }
}
